"""The lock lines that the page keeps, in a real browser, against the worker's own table over random histories."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from concorde_trio._sansio.lock_table import LockTable
from tests.dashboard.house import House
from tests.dashboard.watched_page import WatchedPage

pytestmark = pytest.mark.slow

HISTORIES = 60
STEPS = 60

FOLLOW = """async (histories) => {
    const { Model } = await import(new URL("dashboard/model.js", document.baseURI));
    return histories.map((events) => {
        const model = new Model();
        return events.map((event) => {
            model.take(event);
            const found = {};
            const waiting = [...model.live.values()].filter((run) => run.state === "pending");
            for (const run of model.live.values()) {
                const chain = model.lines.chain(run);
                found[run.id] = {
                    missing: model.lines.missing(run).map((edge) => [edge.space, edge.name, edge.blocker.id, edge.position]),
                    root: chain.at(-1).run.id,
                };
            }
            const roots = {};
            for (const [root, total] of model.lines.roots(waiting)) roots[root.id] = total.count;
            return [found, roots];
        });
    });
}"""


class History:
    """Random events of a worker, and what its own lock table says after each of them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._table: LockTable[str, str] = LockTable()
        self._open: dict[str, list[str]] = {}
        self._holds: dict[str, bool] = {}
        self._running: list[str] = []
        self._signals = 0
        self.events: list[dict[str, Any]] = []
        self.said: list[list[Any]] = []
        while len(self.events) < STEPS:
            self._step()

    def _tell(self, **event: Any) -> None:
        self.events.append({"at": float(len(self.events)), **event})
        found = {}
        roots: dict[str, int] = {}
        for run, why in zip(self._table, self._table.why_all(self._table), strict=True):
            missing = [[each.lock.space, each.lock.name, each.blocker, each.position] for each in why.missing]
            found[run] = {"missing": missing, "root": why.root}
            if missing:
                roots[why.root] = roots.get(why.root, 0) + 1
        self.said.append([found, roots])

    def _step(self) -> None:
        ready = [run for run in self._table if self._table.may_start(run) and run not in self._running]
        choice = self._random.random()
        if choice < 0.35 or not len(self._table):
            self._queue()
        elif ready and choice < 0.7:
            run = self._random.choice(ready)
            self._running.append(run)
            self._tell(event="RunStarted", run_id=run, signal_id=run.split("-")[0], session="")
        elif self._running and choice < 0.92:
            self._end(self._random.choice(self._running), started=True)
        else:
            waiting = [run for run in self._table if run not in self._running and not self._table.is_held(run)]
            if waiting:
                self._end(self._random.choice(waiting), started=False)

    def _queue(self) -> None:
        self._signals += 1
        signal = f"signal{self._signals}"
        self._holds[signal] = self._random.random() < 0.5
        self._open[signal] = []
        self._tell(event="SignalClaimed", signal_id=signal, kind=f"holds {self._holds[signal]}")
        for index in range(self._random.randint(1, 3)):
            run = f"{signal}-{index + 1}"
            session = self._random.choice("ab") + self._random.choice("xy")
            resources = self._random.sample(["r1", "r2", "r3"], self._random.randint(0, 2))
            self._open[signal].append(run)
            self._table.enqueue(run, signal, session=session, resources=resources)
            self._tell(event="RunQueued", run_id=run, signal_id=signal, session=session, resources=resources)

    def _end(self, run: str, *, started: bool) -> None:
        signal = run.split("-")[0]
        held = started and self._holds[signal]
        if started:
            self._running.remove(run)
            self._table.end(run, hold=held)
        else:
            self._table.withdraw(run)
        self._open[signal].remove(run)
        state = "done" if started else "cancelled"
        self._tell(
            event="RunEnded",
            run_id=run,
            signal_id=signal,
            session="",
            state=state,
            error=None,
            started=started,
            held=held,
        )
        if not self._open[signal]:
            if self._holds[signal]:
                self._tell(event="PostStarted", signal_id=signal)
                self._table.release(signal)
                self._tell(event="PostEnded", signal_id=signal, error=None)
            self._tell(event="SignalSettled", signal_id=signal, kind="", state="done", error=None)


def test_the_pages_lock_lines_are_the_workers_after_every_event(page: WatchedPage) -> None:
    """LCK-2, LCK-4, LCK-7: what each run misses, behind whom, at which place, and the root of its chain."""
    histories = [History(seed) for seed in range(HISTORIES)]
    assert sum(bool(found["missing"]) for each in histories for found in each.said[-1][0].values()) > HISTORIES
    told = page.page.evaluate(FOLLOW, [each.events for each in histories])
    for history, said in zip(histories, told, strict=True):
        for event, ours, theirs in zip(history.events, history.said, said, strict=True):
            assert json.loads(json.dumps(theirs)) == ours, event


def test_a_page_that_followed_and_one_that_was_just_opened_show_the_same(
    chromium: Any, house: House, page: WatchedPage
) -> None:
    """SRV-4: snapshot and events lead to one picture, whatever happened in between."""
    house.start_run("ann", "kitchen")
    house.emit(
        {"session": "bob", "text": "say x", "resources": ["garden"]},
        {"session": "cleo", "text": "wait", "resources": ["garden"]},
        kind="shop",
        post=600,
    )
    house.queue_run("dora", "garden", "kitchen")
    house.queue_run("ann")
    house.emit({"session": "eve", "text": "ask something"}, {"session": "finn", "text": "nap 600"})
    house.until("/sessions/eve", lambda found: found["approvals"] != [])
    cancelled = house.queue_run("gus", "kitchen")
    house.ask("POST", f"/runs/{cancelled}/cancel", {})
    house.until(f"/runs/{cancelled}", lambda found: found["state"] == "cancelled")
    page.show("runs")
    page.until("() => document.querySelectorAll('#panel-runs .row:not([hidden])').length >= 8")
    page.until_text("#panel-runs", "cancelled")
    with WatchedPage(chromium) as new:
        new.open(house.link)
        for view in ("runs", "locks", "sessions"):
            columns = {"runs": (0, 1, 2, 4, 5), "locks": (0, 1, 3), "sessions": (0, 1)}[view]
            tables = []
            for each in (page, new):
                each.show(view)
                each.page.wait_for_selector(f"#panel-{view} .row")
                rows = each.page.locator(f"#panel-{view} .row:visible").evaluate_all(
                    "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
                )
                tables.append(sorted([row[place] for place in columns] for row in rows))
            assert tables[0] == tables[1], view
        new.check()
