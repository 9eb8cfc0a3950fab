"""What the dashboard shows of a house at work: chains, lanes, locks, sessions, signals. Real Chromium, real server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.dashboard.house import House
from tests.dashboard.watched_page import WatchedPage

pytestmark = pytest.mark.slow


def chain_of(house: House, run: str) -> list[str]:
    """The runs from this one to the root of its chain, as the server says it."""
    found = [run]
    while (waits := house.get(f"/runs/{found[-1]}")["waits_for"]) is not None:
        found.append(waits["edges"][0]["blocker"]["run_id"])
    return found


def shortened(chain: list[str]) -> list[str | None]:
    """A chain as it is shown: of a long one the ends, and in between one line that says how many more there are."""
    return list(chain) if len(chain) < 8 else [*chain[:3], None, *chain[-3:]]


def shown_chain(page: WatchedPage, place: str) -> list[str | None]:
    """The runs of the chain that stands in this element."""
    found: list[str | None] = page.page.locator(f"{place} .chain li").evaluate_all(
        "all => all.map(each => each.dataset.run)"
    )
    return found


def test_a_waiting_run_shows_the_whole_chain_to_its_root_when_pointed_at_and_pressed(
    house: House, page: WatchedPage
) -> None:
    """LCK-7: who it waits for and why, hop by hop, is what the server says."""
    root = house.start_run("ann", "kitchen")
    second = house.queue_run("bob", "kitchen", "garden")
    third = house.queue_run("cleo", "garden", text="wait")
    last = house.queue_run("dora", "pool", "garden")
    assert chain_of(house, last) == [last, third, second, root]

    page.page.hover(f'.chip[data-run="{last}"]')
    page.page.wait_for_selector("#card:not([hidden])")
    assert shown_chain(page, "#card") == chain_of(house, last)
    said = page.page.inner_text("#card")
    assert "resource “garden”" in said
    assert "resource “kitchen”" in said
    assert "number 3 in line" in said
    assert "is busy with wait" in said, "the root says what it does itself"
    assert page.page.get_attribute(f'.bar[data-run="{root}"]:not(.wait)', "class").endswith("linked")

    page.page.click(f'.chip[data-run="{last}"]')
    page.until_text("#detail h2", "dora")
    assert shown_chain(page, "#detail") == chain_of(house, last)
    page.page.keyboard.press("Escape")
    house.ask("POST", f"/runs/{second}/cancel", {})
    house.until(f"/runs/{second}", lambda found: found["state"] == "cancelled")
    page.until(
        "([selector, number]) => document.querySelectorAll(selector).length === number", ["#detail .chain li", 2]
    )
    assert shown_chain(page, "#detail") == chain_of(house, last) == [last, third]


def test_every_waiting_run_has_the_edges_and_the_root_that_the_server_says(house: House, page: WatchedPage) -> None:
    """LCK-7: the lines that the page keeps beside the worker's give the same blockers, positions and roots."""
    house.start_run("ann", "a", "b")
    house.emit({"session": "bob", "text": "say x", "resources": ["c"]}, kind="shop", post=600)
    house.until("/signals", lambda found: any(signal["phase"] == "posting" for signal in found["signals"]))
    for session, resources in (("cleo", "ac"), ("bob", ""), ("dora", "bc"), ("cleo", "d"), ("eve", "dab")):
        house.queue_run(session, *resources)
    many = house.emit(*({"session": f"s{n % 3}", "text": "say y", "resources": ["a"]} for n in range(9)))
    house.until(f"/signals/{many}", lambda found: len(found["runs"]) == 9)
    waiting = {run["id"]: run["waits_for"] for run in house.get("/runs?state=pending&limit=200")["runs"]}
    assert len(waiting) == 14
    page.until("number => Number(document.querySelector('#counts div:nth-child(2) dd').textContent) === number", 14)
    for run, waits in waiting.items():
        page.page.evaluate("id => location.hash = `#runs/run/${id}`", run)
        page.until_text("#detail dl", run)
        assert shown_chain(page, "#detail") == shortened(chain_of(house, run))
        assert shown_chain(page, "#detail")[-1] == waits["root"]["run_id"]
        first = page.page.locator("#detail .chain li").first.inner_text()
        for edge in waits["edges"]:
            assert f"{edge['space']} “{edge['name']}”" in first
            if edge["position"] > 1:
                assert f"number {edge['position'] + 1} in line" in first


def test_a_lane_shows_waiting_running_and_post_and_the_time_that_is_left(house: House, page: WatchedPage) -> None:
    """SES-12a: bars by session; what holds a session is drawn until the end of its bound."""
    running = house.start_run("ann", "kitchen")
    waiting = house.queue_run("bob", "kitchen")
    posting = f"{house.emit({'session': 'cleo', 'text': 'say x'}, kind='shop', post=600)}-1"
    page.page.wait_for_selector(f'.bar[data-run="{running}"][data-phase="running"]')
    page.page.wait_for_selector(f'.bar.wait[data-run="{waiting}"]')
    page.page.wait_for_selector(f'.bar[data-run="{posting}"][data-phase="post"]')
    page.until(
        "run => /^0:[0-5][0-9] left$/.test(document.querySelector(`.bar.left[data-run='${run}']`)?.textContent)",
        running,
    )
    assert page.texts("#counts div")[:3] == ["running\n1", "waiting\n1", "held or in post\n1"]
    house.ask("POST", f"/runs/{running}/cancel", {})
    page.page.wait_for_selector(f'.bar[data-run="{running}"][data-phase="cancelled"]')
    page.page.wait_for_selector(f'.bar[data-run="{waiting}"][data-phase="done"]')


def test_locks_sessions_and_signals_are_listed_with_what_the_server_says_of_them(
    house: House, page: WatchedPage
) -> None:
    """SRV-2: the lock table, what sessions wait for, payloads and outcomes."""
    house.start_run("ann", "kitchen")
    house.queue_run("bob", "kitchen")
    refused = house.ask("POST", "/signals", {"kind": "unheard.of", "payload": {"what": "no handler has this"}})["id"]
    page.show("locks")
    page.until_text("#panel-locks .row:first-child, #panel-locks .row", "kitchen")
    rows = {row.split("\n")[1]: row.split("\n") for row in page.texts("#panel-locks .row")}
    assert rows["kitchen"][0] == "resource"
    assert rows["kitchen"][2].startswith("ann ·")
    assert rows["kitchen"][3] == "1"
    page.show("sessions")
    page.until("() => document.querySelector('#panel-sessions .row')?.textContent.includes('left, then it is stopped')")
    page.page.click("#panel-sessions .row >> text=ann")
    page.until_text("#detail", "What holds it")
    page.until_text("#detail", "since")
    page.show("signals")
    page.until_text("#panel-signals .grid", "no handler has this")
    page.page.click("#panel-signals .row >> text=unheard.of")
    page.until_text("#detail", "no handler for the kind")
    page.until_text("#detail pre", '"what": "no handler has this"')
    assert page.page.get_attribute("#detail a", "href") == f"signals/{refused}"


def test_an_empty_house_says_what_to_do(page: WatchedPage) -> None:
    """The dashboard: where there is nothing, a command stands that makes something."""
    for view, words in {
        "lanes": "concorde-trio emit",
        "runs": "concorde-trio emit",
        "locks": "concorde-trio emit",
        "sessions": "concorde-trio send",
        "signals": "concorde-trio emit",
    }.items():
        page.show(view)
        page.until_text(f"#panel-{view} .empty:not([hidden])", words)
    page.until_text("#stuck", "Nothing is stuck")


def test_the_page_follows_the_systems_theme_until_one_is_chosen(chromium: Any, house: House) -> None:
    """The dashboard: light and dark, by the system's wish or by a button, and kept."""
    ground = "() => getComputedStyle(document.body).backgroundColor"
    colours = {}
    for scheme in ("light", "dark"):
        with WatchedPage(chromium, color_scheme=scheme) as page:
            page.open(house.link)
            colours[scheme] = page.page.evaluate(ground)
    assert len(set(colours.values())) == 2
    with WatchedPage(chromium, color_scheme="light") as page:
        page.open(house.link)
        page.page.click("#theme")
        page.page.click("#theme")
        assert page.page.inner_text("#theme") == "Theme: dark"
        assert page.page.evaluate(ground) == colours["dark"]
        page.page.reload()
        page.live()
        assert page.page.evaluate(ground) == colours["dark"]
        page.check()
