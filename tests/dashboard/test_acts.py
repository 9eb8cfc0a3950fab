"""What an operator does from the dashboard: interrupt, cancel, answer. A question comes first, and its no changes nothing."""

from __future__ import annotations

import pytest

from tests.dashboard.house import House
from tests.dashboard.watched_page import WatchedPage

pytestmark = pytest.mark.slow


def say_no_then_yes(page: WatchedPage, press: str, words: str, yes: str) -> None:
    """Press a button, look at the question, refuse it by Escape and by its other button, and then say yes to it."""
    for refuse in ("Escape", "button"):
        page.page.click(press)
        page.page.wait_for_selector("#ask[open]")
        assert words in page.page.inner_text("#ask")
        # The harmless answer is at hand: who presses Enter by habit changes nothing.
        assert page.page.evaluate("() => document.activeElement.value") == "no"
        if refuse == "Escape":
            page.page.keyboard.press("Escape")
        else:
            page.page.keyboard.press("Enter")
        page.page.wait_for_selector("#ask:not([open])", state="attached")
    page.page.click(press)
    page.page.click(f"#ask button >> text={yes}")
    page.page.wait_for_selector("#ask:not([open])", state="attached")


def test_an_interrupt_is_asked_for_first_and_ends_the_turn(house: House, page: WatchedPage) -> None:
    """SRV-3, SES-12: from the list of what is stuck, for who holds up others."""
    run = house.start_run("ann", "kitchen")
    other = house.queue_run("bob", "kitchen")
    page.until_text("#stuck", "holds up 1 run")
    changes: list[str] = []
    page.page.on("request", lambda request: changes.append(request.url) if request.method == "POST" else None)
    say_no_then_yes(page, '#stuck button[aria-label^="Interrupt ann"]', "Interrupt ann?", "Interrupt")
    house.until(f"/runs/{run}", lambda found: found["state"] == "cancelled")
    house.until(f"/runs/{other}", lambda found: found["state"] == "done")
    assert [url.rsplit("/", 3)[1:] for url in changes] == [["sessions", "ann", "interrupt"]]
    page.until_text("#said", "interrupted")
    page.until_text("#stuck", "Nothing is stuck")


def test_a_run_and_a_signal_are_cancelled_where_they_are_shown(house: House, page: WatchedPage) -> None:
    """SRV-3, RUN-6: cancels of a run that works and of a signal whose runs wait."""
    run = house.start_run("ann", "kitchen")
    waiting = house.emit(
        *({"session": session, "text": "say x", "resources": ["kitchen"]} for session in ("bob", "cleo"))
    )
    house.until(f"/signals/{waiting}", lambda found: len(found["runs"]) == 2)
    page.show("signals")
    page.page.click("#panel-signals .row >> nth=0")
    page.until_text("#detail", waiting)
    say_no_then_yes(page, "#detail button >> text=Cancel the signal", "Cancel the signal work #2?", "Cancel the signal")
    found = house.until(f"/signals/{waiting}", lambda found: found["state"] == "failed")
    assert [each["state"] for each in found["runs"]] == ["cancelled", "cancelled"]
    page.page.wait_for_selector('#detail .badge[data-phase="failed"]')
    assert house.get(f"/runs/{run}")["state"] == "running"

    page.show("runs")
    page.page.click("#panel-runs .row >> text=running")
    page.until_text("#detail", run)
    say_no_then_yes(page, "#detail button >> text=Cancel the run", "Cancel this run of ann?", "Cancel the run")
    house.until(f"/runs/{run}", lambda found: found["state"] == "cancelled")
    page.page.wait_for_selector('#detail .badge[data-phase="cancelled"]')
    page.page.wait_for_selector("#detail button >> text=Its signal")
    assert page.page.locator("#detail button >> text=Cancel the run").count() == 0, "it is over"


def test_a_call_is_allowed_or_denied_by_who_has_seen_its_arguments(house: House, page: WatchedPage) -> None:
    """SES-18: the question shows the whole call; the answer is for this one."""
    house.start_run("ann", text="ask delete the backups")
    house.start_run("bob", text="ask feed the cat")
    page.until("() => document.querySelectorAll('#stuck li[data-kind=ask]').length === 2")
    page.until_text("#stuck", "feed the cat")
    say_no_then_yes(
        page, '#stuck button[aria-label="Deny risky of ann"]', '{"what": "delete the backups"}', "Deny the call"
    )
    house.until("/sessions/ann", lambda found: found["run"] is None)
    assert house.get("/sessions/bob")["approvals"], "bob's call is another"
    say_no_then_yes(
        page, '#stuck button[aria-label="Allow risky of bob"]', '{"what": "feed the cat"}', "Allow the call"
    )
    house.until("/sessions/bob", lambda found: found["run"] is None)
    said = [house.get(f"/sessions/{name}/messages")["messages"][-1]["text"] for name in ("ann", "bob")]
    assert "did feed the cat" in said[1]
    assert "did delete" not in said[0]


def test_what_cannot_be_done_is_said(house: House, page: WatchedPage) -> None:
    """SRV-5: the server's own words stand on the page, and the page goes on."""
    run = house.start_run("ann")
    page.show("runs")
    page.page.click("#panel-runs .row >> nth=0")
    page.page.click("#detail button >> text=Cancel the run")
    page.page.wait_for_selector("#ask[open]")
    house.ask("POST", f"/runs/{run}/cancel", {})
    house.until(f"/runs/{run}", lambda found: found["state"] == "cancelled")
    page.page.click("#ask button >> text=Cancel the run")
    page.page.wait_for_selector('#banner[data-kind="bad"]:not([hidden])')
    assert "cancelled" in page.page.inner_text("#banner")
    page.page.wait_for_selector('#link[data-state="live"]')
