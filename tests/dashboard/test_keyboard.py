"""The dashboard without a pointer, and what somebody hears who does not see it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dashboard.house import House
from tests.dashboard.watched_page import WatchedPage

pytestmark = pytest.mark.slow

ACTIVE = """() => {
    const focused = document.activeElement;
    const id = focused.getAttribute("aria-activedescendant");
    const active = id === null ? null : document.getElementById(id);
    return active === null ? null : {role: active.role, label: active.getAttribute("aria-label") ?? active.textContent};
}"""


def active(page: WatchedPage) -> Any:
    """What the keyboard is on in a grid: its role and what is heard of it."""
    return page.page.evaluate(ACTIVE)


def test_tab_goes_through_the_whole_page_and_out_of_it_with_the_focus_to_be_seen(
    house: House, page: WatchedPage
) -> None:
    """The dashboard: no trap, forward or back; each stop has a name and a ring around it."""
    house.start_run("ann", "kitchen")
    house.queue_run("bob", "kitchen")
    page.until_text("#stuck", "holds up 1 run")
    for key in ("Tab", "Shift+Tab"):
        page.page.evaluate("() => document.activeElement.blur()")
        stops = []
        for _ in range(60):
            page.page.keyboard.press(key)
            stop = page.page.evaluate(
                """() => {
                    const at = document.activeElement;
                    if (at === document.body) return null;
                    const style = getComputedStyle(at);
                    const name = at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent ?? at.textContent.trim();
                    return [at.id || at.className || at.tagName, name !== "", style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2];
                }"""
            )
            if stop is None:
                break
            stops.append(stop)
        assert len(stops) < 60, f"{key} never leaves the page"
        assert len(stops) > 8
        assert [stop for stop in stops if not (stop[1] and stop[2])] == []


def test_a_waiting_run_is_reached_and_read_and_its_chain_is_opened_by_keys_alone(
    house: House, page: WatchedPage
) -> None:
    """LCK-7: arrows move between lanes and runs; what is heard says for whom it waits; Enter shows all, Escape hides the card."""
    house.start_run("ann", "kitchen")
    run = house.queue_run("bob", "kitchen")
    page.page.wait_for_selector(f'.chip[data-run="{run}"]')
    page.page.focus("#tab-lanes")
    while page.page.evaluate("() => document.activeElement.role") != "grid":
        page.page.keyboard.press("Tab")
    assert active(page)["role"] == "row"
    assert active(page)["label"].startswith("ann: wait")
    page.page.keyboard.press("ArrowDown")
    assert active(page)["label"].startswith("bob: waits")
    assert "1 in line" in active(page)["label"]
    page.page.keyboard.press("ArrowRight")
    heard = active(page)
    assert heard["role"] == "gridcell"
    assert "waits for" in heard["label"]
    assert "resource “kitchen”" in heard["label"]
    assert "of ann, which is busy with wait" in heard["label"]
    page.page.wait_for_selector("#card:not([hidden])")
    page.page.keyboard.press("Escape")
    page.page.wait_for_selector("#card", state="hidden")
    page.page.keyboard.press("Enter")
    page.until_text("#detail h2", "bob ·")
    assert page.page.locator("#detail .chain li").count() == 2


def test_a_change_is_made_by_keys_alone_and_the_focus_comes_back(house: House, page: WatchedPage) -> None:
    """SRV-3: from the tab of the runs to a cancelled run, and back to where the hands were."""
    run = house.start_run("ann")
    page.page.focus("#tab-lanes")
    page.page.keyboard.press("ArrowRight")
    assert page.page.evaluate("() => document.activeElement.id") == "tab-runs"
    while page.page.evaluate("() => document.activeElement.role") != "grid":
        page.page.keyboard.press("Tab")
    page.page.keyboard.press("Enter")
    page.until_text("#detail h2", "ann ·")
    while page.page.evaluate("() => document.activeElement.textContent") != "Cancel the run":
        page.page.keyboard.press("Tab")
    page.page.keyboard.press("Enter")
    page.page.wait_for_selector("#ask[open]")
    page.page.keyboard.press("Escape")
    assert page.page.evaluate("() => document.activeElement.textContent") == "Cancel the run"
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("Tab")
    page.page.keyboard.press("Enter")
    house.until(f"/runs/{run}", lambda found: found["state"] == "cancelled")


def test_every_row_of_a_long_list_is_reached_by_keys_though_few_are_in_the_document(
    house: House, page: WatchedPage
) -> None:
    """The dashboard: a list tells how long it is and which row is active, wherever it is scrolled to."""
    house.start_run("ann", "kitchen")
    many = house.emit(*({"session": f"s{n}", "text": "say x", "resources": ["kitchen"]} for n in range(500)))
    house.until(f"/signals/{many}", lambda found: found["runs"] != [])
    page.show("runs")
    page.until("() => document.querySelector('#panel-runs .grid').getAttribute('aria-rowcount') === '501'")
    assert page.page.locator("#panel-runs .row").count() < 60
    page.page.focus("#panel-runs .grid")
    page.page.keyboard.press("End")
    assert "s499" in active(page)["label"]
    page.page.keyboard.press("ArrowUp")
    assert "s498" in active(page)["label"]
    page.page.keyboard.press("Home")
    assert "ann" in active(page)["label"]
    page.page.keyboard.press("PageDown")
    assert "s1" in active(page)["label"] or "s2" in active(page)["label"]


def test_a_page_has_landmarks_and_says_politely_what_changes(house: House, page: WatchedPage) -> None:
    """The dashboard: header, main, complementary and tabs have names; the state is told in words, not with each event."""
    tree = page.page.locator("body").aria_snapshot()
    for part in ("banner", "main", 'tablist "Views"', 'complementary "What went wrong lately"', "region"):
        assert part in tree
    assert page.page.get_attribute("#said", "aria-live") == "polite"
    house.start_run("ann", "kitchen")
    house.queue_run("bob", "kitchen")
    page.until_text("#said", "1 running, 1 waiting")


def test_nothing_moves_for_who_wants_less_motion(chromium: Any, house: House) -> None:
    """The dashboard: prefers-reduced-motion; no animation, no transition, and lanes that are drawn once a second."""
    house.start_run("ann")
    with WatchedPage(chromium, reduced_motion="reduce") as page:
        page.open(house.link)
        page.page.wait_for_selector('.bar[data-phase="running"]')
        moving = page.page.evaluate(
            """() => [...document.querySelectorAll("*")].filter((each) => {
                const style = getComputedStyle(each);
                return style.animationName !== "none" || parseFloat(style.transitionDuration) > 0;
            }).length"""
        )
        assert moving == 0
        page.check()
