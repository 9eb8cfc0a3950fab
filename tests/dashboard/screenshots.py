"""The pictures of the dashboard in ``docs/``, taken of the demo: ``python -m tests.dashboard.screenshots``."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.dashboard.conftest import ARGUMENTS, CHROMIUM_PATH
from tests.structure.tree import ROOT

SIZE = {"width": 1280, "height": 800}
MOMENT = """() => document.querySelectorAll(".bar[data-phase=done]:not([hidden])").length >= 5
    && document.querySelectorAll(".chip[data-run]:not([hidden])").length >= 4"""
"""Enough has been done, and enough is in line."""


def main() -> None:
    """Take both."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM_PATH, args=list(ARGUMENTS))
        for scheme in ("light", "dark"):
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", "concorde_trio", "demo", "--svg", f"{folder}/drawing.svg"]
                demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                assert demo.stdout is not None
                link = next(found[1] for line in demo.stdout if (found := re.search(r"in a browser: (\S+)", line)))
                page = browser.new_page(viewport=SIZE, color_scheme=scheme)
                page.goto(link)
                page.wait_for_selector('#link[data-state="live"]')
                page.select_option("#panel-lanes select", "30")
                page.wait_for_function(MOMENT)
                page.click(".chip[data-run]:visible >> nth=-1")
                page.mouse.move(5, 5)
                page.wait_for_selector("#card", state="hidden")
                page.wait_for_selector("#detail pre")
                page.screenshot(path=ROOT / "docs" / f"dashboard-{scheme}.png")
                demo.communicate()
                page.close()
        browser.close()
    for scheme in ("light", "dark"):
        size = Path(ROOT / "docs" / f"dashboard-{scheme}.png").stat().st_size
        print(f"dashboard-{scheme}.png: {size:,} bytes")


if __name__ == "__main__":
    main()
