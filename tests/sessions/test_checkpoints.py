"""A session's whole life, ended at each of its checkpoints in turn: by a cancellation, an exception, an operator.

The law: the number of checkpoints is asserted, so that none is forgotten when sessions change.
"""

from __future__ import annotations

import attrs
import pytest
import trio

from concorde_trio import MemoryStore
from tests.sessions.life import Life, S, cancel_runs, guarded, judge, process
from tests.signals.stage import play
from tests.signals.test_worker_checkpoints import AtCheckpoint

CHECKPOINTS = {"harness": 100, "worker": 163}
"""Steps of all tasks from the start of the program to its end, with scheduler seed 0."""


class Mine(Exception):
    """Raised in the block."""


@attrs.define
class Lived:
    """What a life came to."""

    store: MemoryStore
    steps: int
    accepted: list[str]


def live(door: str, how: str, at: int, seed: int = 0) -> Lived:
    """The life, with this happening before step ``at`` (0: not at all)."""
    store, happens, done, outer = MemoryStore(), trio.Event(), trio.Event(), trio.CancelScope()
    accepted: list[str] = []

    def act() -> None:
        outer.cancel() if how == "cancel" else happens.set()

    async def happen(life: Life) -> None:
        await happens.wait()
        if how == "raise":
            raise Mine
        if how == "submit":
            await guarded(lambda: life.say("by the way", "extra"))
        elif how == "operator":
            await cancel_runs(life)
        elif how == "interrupt":
            await life.sessions.interrupt(S)
        done.set()

    async def main() -> None:
        with outer:
            async with process(store, worker=door == "worker") as life:
                life.accepted = accepted
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(happen, life)
                    await life.live()
                    if happens.is_set():
                        await done.wait()
                        await life.rest()
                        assert not await store.unsettled_inputs(), "SES-10b: it waits for another act"
                    nursery.cancel_scope.cancel()

    instrument = AtCheckpoint(at, act)
    try:
        play(main, seed=seed, instruments=(instrument,))
    except BaseExceptionGroup as group:
        assert how == "raise" and group.split(Mine)[1] is None, group
    except Mine:
        assert how == "raise"
    return Lived(store, instrument.steps, accepted)


def judged(door: str, how: str, at: int, seed: int = 0) -> int:
    """One life, and the next process; the steps of the life."""
    lived = live(door, how, at, seed)
    play(lambda: judge(lived.store, lived.accepted, worker=door == "worker"))
    return lived.steps


@pytest.mark.parametrize("door", ["harness", "worker"])
def test_the_life_has_as_many_checkpoints_as_it_had(door: str) -> None:
    """SES-1: when this number changes, so does what the tests below go through; set it anew."""
    lived = live(door, "cancel", 0)
    assert lived.accepted == ["i1", "i2", "i3"] if door == "harness" else ["i1", "i3"]
    assert lived.steps == CHECKPOINTS[door]


FAST = [("harness", "interrupt")]
SLOW = [
    *(("harness", how) for how in ("cancel", "raise", "submit")),
    *(("worker", how) for how in ("cancel", "raise", "interrupt", "submit", "operator")),
]


@pytest.mark.parametrize(("door", "how"), [*FAST, *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW)])
def test_whatever_checkpoint_something_happens_at_the_books_are_even_and_it_goes_on(door: str, how: str) -> None:
    """SES-9, SES-10a, SES-10b, SES-12, SES-17, SES-21, F-21, F-23, F-35: whatever happens, wherever.

    Each input ends once; the transcript is valid; the lock is free after at most one budget; the next turn works.
    """
    for at in range(1, CHECKPOINTS[door] + 1):
        judged(door, how, at)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize(("door", "how"), [*FAST, *SLOW])
def test_and_in_whatever_order_trio_wakes_the_tasks(door: str, how: str, seed: int) -> None:
    """SES-1: the same for some of the checkpoints, with other seeds of Trio's scheduler."""
    at, steps = seed, CHECKPOINTS[door]
    while at <= steps + 1:
        steps = judged(door, how, at, seed)
        at += 6
