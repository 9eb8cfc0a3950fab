"""What very many runs that end at one instant cost those that are released first: a commit holds a part of them, never all."""

from __future__ import annotations

from collections.abc import Sequence

import trio
import trio.testing

from concorde_trio._sansio.changes import Change, EndRun
from concorde_trio.stores.memory import MemoryStore
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock
TOGETHER = 120


class Watched(MemoryStore):
    """Notes which runs end in each commit."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[list[str]] = []

    async def apply(self, changes: Sequence[Change]) -> None:  # type: ignore[override]
        ends = [change.run_id for change in changes if isinstance(change, EndRun)]
        if ends:
            self.parts.append(ends)
        await super().apply(changes)


async def test_what_is_released_first_does_not_wait_for_all_that_ended_at_the_same_instant(
    autojump_clock: Clock, some_seed: int
) -> None:
    """LCK-5: what ended together is applied in run order, a part at a time: what one part releases starts with it."""
    store = Watched()
    stage = Stage(store)
    async with stage.serve(settle=None):
        for number in range(TOGETHER):
            name, session = f"{number:03}", str(number)
            await stage.emit("free", run(f"first {name}", session=session), run(f"then {name}", session=session))
        await stage.all_settled()
    runs = await stage.runs()
    places = {each.id: each.position for each in runs.values()}
    first = {each.id for name, each in runs.items() if name.startswith("first")}
    in_order = [places[run_id] for part in store.parts for run_id in part if run_id in first]
    assert sum(map(len, store.parts)) == 2 * TOGETHER and max(map(len, store.parts)) <= TOGETHER // 4
    assert in_order == sorted(in_order)
    assert {each.state.value for each in runs.values()} == {"done"}
    for number in range(TOGETHER):
        assert stage.when("end", f"first {number:03}") <= stage.when("start", f"then {number:03}")


async def test_a_cancelling_stop_writes_down_all_that_has_ended(autojump_clock: Clock) -> None:
    """STP-3: it is the last commit that counts, so nothing that ended is left for another one."""
    store = Watched()
    stage = Stage(store)
    async with stage.serve(settle=None) as worker:
        for number in range(TOGETHER):
            await stage.emit("free", run(f"R{number}", 50, session=str(number)))
        await trio.sleep(1)
        worker.stop("cancel")
    assert list(map(len, store.parts)) == [TOGETHER]
    assert set((await stage.states()).values()) == {"cancelled"}
