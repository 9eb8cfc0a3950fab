"""A page that is open while its server goes away and comes back."""

from __future__ import annotations

import pytest

from tests.dashboard.house import House
from tests.dashboard.watched_page import WatchedPage

pytestmark = pytest.mark.slow


def test_a_restart_is_survived_and_said(house: House, page: WatchedPage) -> None:
    """SRV-4: the page says that it is not connected, comes back by itself, and shows what is so now."""
    cut = house.start_run("ann", "kitchen")
    waiting = house.queue_run("bob", "kitchen", text="wait")
    page.page.wait_for_selector(f'.bar[data-run="{cut}"][data-phase="running"]')
    page.page.click(f'.chip[data-run="{waiting}"]')
    page.until_text("#detail h2", "bob")
    house.kill()
    page.page.wait_for_selector('#link[data-state="lost"]')
    page.until_text("#banner", "Not connected")
    page.until_text("#banner", "What you see is how it was at")
    assert page.page.locator("#banner button").inner_text() == "Try now"

    house.start()
    page.page.wait_for_selector('#link[data-state="live"]')
    page.until_text("#banner", "The server was started anew")
    house.until(f"/runs/{waiting}", lambda found: found["state"] == "running")
    page.page.wait_for_selector(f'.bar[data-run="{cut}"][data-phase="failed"]')
    page.page.wait_for_selector(f'.bar[data-run="{waiting}"][data-phase="running"]')
    page.until("() => document.querySelector('#detail .badge').dataset.phase === 'running'")
    new = house.start_run("cleo")
    page.page.wait_for_selector(f'.bar[data-run="{new}"][data-phase="running"]')
    page.until_text("#panel-lanes", "cleo")


def test_a_dropped_connection_is_taken_up_where_it_was(house: House, page: WatchedPage) -> None:
    """SRV-4: without a restart the page goes on from its last event, and has missed nothing."""
    first = house.start_run("ann")
    page.page.wait_for_selector(f'.bar[data-run="{first}"][data-phase="running"]')
    asked: list[str] = []
    page.page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[1]))
    with house.cut_off():
        page.page.wait_for_selector('#link[data-state="lost"]')
        house.ask("POST", f"/runs/{first}/cancel", {})
        second = house.start_run("bob")
    page.page.wait_for_selector('#link[data-state="live"]')
    page.page.wait_for_selector(f'.bar[data-run="{second}"][data-phase="running"]')
    page.page.wait_for_selector(f'.bar[data-run="{first}"][data-phase="cancelled"]')
    assert "events" in asked
    assert not [each for each in asked if each.startswith("snapshot")]
