"""A page that writes down whatever a hostile text or a mistake could do: dialogs, errors, violations of its policy, requests."""

from __future__ import annotations

import re
from typing import Any, Self

WATCH = """
globalThis.found = [];
addEventListener("securitypolicyviolation", (event) => found.push(`${event.violatedDirective}: ${event.blockedURI}`));
addEventListener("unhandledrejection", (event) => found.push(`rejected: ${event.reason}`));
"""
PATIENCE = 30_000
"""Milliseconds after which what is waited for has failed to come."""


class WatchedPage:
    """A page of its own context: no cookie and nothing stored at first. ``options``: of the context."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.hosts: set[str] = set()
        self.page.on("dialog", self._dialog)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("console", self._said)
        self.page.on("request", lambda request: self.hosts.add(re.sub(r"^(\w+://[^/]*).*", r"\1", request.url)))
        self.page.add_init_script(WATCH)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.context.close()

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _said(self, message: Any) -> None:
        # That a request was refused or not answered is said by the page, and asserted by who provokes it.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.wrong.append(f"console: {message.text}")

    def check(self) -> None:
        """AssertionError if anything went wrong, or anybody but the server was asked for anything."""
        assert self.wrong + self.page.evaluate("found") == []
        assert len(self.hosts) <= 1, self.hosts

    def open(self, link: str) -> None:
        """Go there, and wait until the page is live."""
        self.page.goto(link)
        self.live()

    def live(self) -> None:
        """Wait until the page says that it follows what happens."""
        self.page.wait_for_selector('#link[data-state="live"]')
        self.page.wait_for_selector("#board:not([hidden])")

    def show(self, view: str) -> None:
        """Choose a view by its tab."""
        self.page.click(f"#tab-{view}")
        self.page.wait_for_selector(f"#panel-{view}:not([hidden])")

    def texts(self, selector: str) -> list[str]:
        """What stands in the elements that are to be seen."""
        found: list[str] = self.page.locator(f"{selector}:visible").all_inner_texts()
        return found

    def until(self, script: str, argument: Any = None) -> Any:
        """What a JavaScript function gives, once that is true. Asked by the clock: a page in the background draws nothing."""
        return self.page.wait_for_function(script, arg=argument, polling=50).json_value()

    def until_text(self, selector: str, text: str) -> None:
        """Wait until an element says this."""
        self.until(
            "([selector, text]) => document.querySelector(selector)?.textContent.includes(text)", [selector, text]
        )
