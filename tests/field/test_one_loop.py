"""F-25, F-27, F-35, F-36: one loop a session, sessions that do not wait for each other, holds that outlive nobody."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio import SessionHarness, SqliteStore
from concorde_trio._sansio.session_calls import Calls
from concorde_trio._sansio.session_course import SessionCourse
from concorde_trio.errors import QueueTaken
from concorde_trio.events import (
    CallEnded,
    HoldExpired,
    InputAccepted,
    SessionLoaded,
    SettleFailed,
    TurnEnded,
    TurnStarted,
)
from tests.field.ledger import Crash, LedgerStore
from tests.field.stage import FieldModel, FieldTool, S, calls, play, says, stage


def test_the_second_of_two_inputs_queues_though_the_first_has_not_reached_the_model() -> None:
    """F-25, SES-0, SES-10: A and B 1 ms apart, and 10 s between accepting A and its request; one turn, B joins the queue."""

    async def main() -> None:
        store = LedgerStore()

        async def slow(number: int, changes: Sequence[Any]) -> None:
            if number <= 2:
                await trio.sleep(10)

        store.on_commit = slow
        async with (
            stage(FieldModel(says("A", after=1), says("B")), store=store) as scene,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(lambda: scene.say("a", id="a"))
            await trio.sleep(0.001)
            nursery.start_soon(lambda: scene.say("b", id="b"))
            await trio.sleep_until(100)
            assert [each.input_ids for each in scene.told(TurnStarted)] == [("a",), ("b",)]
            assert [each.waits_for is None for each in scene.told(InputAccepted)] == [True, False]
            assert len(scene.told(SessionLoaded)) == 1

    play(main)


def test_opening_a_session_with_a_running_turn_gives_the_same_one() -> None:
    """F-25, SES-0, SES-19: asked for by ten at once, while it runs, and again after it left memory."""

    async def main() -> None:
        async with stage(FieldModel(says("so", after=290), then=says("so")), unload_after=100.0) as scene:
            loops: list[Any] = []

            async def ask() -> None:
                loops.append(await scene.harness.loop(S))

            async with trio.open_nursery() as nursery:
                for _ in range(10):
                    nursery.start_soon(ask)
            await scene.say("hi")
            await trio.sleep_until(280)
            await ask()
            assert len(set(map(id, loops))) == 1, "a session that works does not leave memory"
            await trio.sleep_until(600)
            assert scene.harness.loaded(S) is None
            await ask()
            assert len(set(map(id, loops))) == 2 and len(scene.told(SessionLoaded)) == 2
            assert (await scene.harness.turn(S, "again")).outcome == "ok"
            assert [len(each.messages) for each in scene.model.sent()] == [1, 3]

    play(main)


def test_a_second_process_is_refused_while_the_first_keeps_the_sessions(tmp_path: Path) -> None:
    """F-25, REC-1: whoever has the store's lock has its sessions; the other is told who that is, and takes over afterwards."""

    async def main() -> None:
        def harness(model: FieldModel) -> SessionHarness:
            return SessionHarness(store=SqliteStore(tmp_path / "q.db", inline=True), model=model)

        async with harness(FieldModel(says("one"))).open() as first:
            await first.turn(S, "hi")
            with pytest.raises(QueueTaken):
                async with harness(FieldModel()).open():
                    raise AssertionError("two of them")
        second = FieldModel(says("two"))
        async with harness(second).open() as after:
            assert (await after.turn(S, "again")).text == "two"
        assert len(second.sent()[0].messages) == 3

    play(main)


def test_a_long_hold_of_one_session_holds_up_no_other() -> None:
    """F-27, SES-1, SES-4: ann's request is out for 600 s; 25 others are started at once."""

    async def main() -> None:
        names = [f"s{number}" for number in range(25)]
        async with stage(FieldModel(says("slow", after=250), then=says("so"))) as scene:
            await scene.say("hi")
            await trio.sleep_until(100)
            async with trio.open_nursery() as nursery:
                for name in names:
                    nursery.start_soon(scene.say, "hi", name)
            await trio.testing.wait_all_tasks_blocked()
            assert trio.current_time() == 100 and scene.status() == "model"
            assert scene.model.times() == [0, *[100] * 25]
            assert [each.outcome for each in scene.told(TurnEnded)] == ["ok"] * 25

    play(main)


def test_waiting_in_the_queue_takes_nothing_of_the_budget() -> None:
    """F-27, LSE-2: 50 s in the queue, with a budget of 60 s, and 59 s of work: it has them."""

    async def main() -> None:
        async with stage(FieldModel(says("one", after=50), says("two", after=59)), llm_timeout=60.0) as scene:
            await scene.say("first")
            result = await scene.harness.turn(S, "second")
            assert (result.started, result.ended, result.outcome) == (50, 109, "ok")

    play(main)


def test_a_process_that_dies_with_a_hold_leaves_none() -> None:
    """F-35, LSE-5, SES-17: it dies at each commit of a turn; the next one's first submit runs at once, under a new epoch."""

    async def once(number: int, *, after: bool) -> bool:
        store = LedgerStore()
        store.crash_at, store.after = number, after
        model = FieldModel(calls(("a", "work"), after=1), then=says("so", after=1))
        with suppress(Crash):
            async with stage(model, FieldTool("work"), store=store) as scene:
                await scene.harness.turn(S, "go")
            return False
        store.revive()
        last = max((request.context["concorde.epoch"] for _, request in model.asked), default=0)
        async with stage(FieldModel(then=says("after")), FieldTool("work"), store=store) as scene:
            start = trio.current_time()
            assert (await scene.harness.turn(S, "next")).outcome == "ok" and trio.current_time() == start
            epochs = [each.context["concorde.epoch"] for each in scene.model.sent()]
            assert all(each > last for each in epochs), "an epoch names one hold for the life of the session"
        return True

    async def main() -> None:
        for after in (False, True):
            number = 1
            while await once(number, after=after):
                number += 1
            assert number > 4

    play(main)


@pytest.mark.parametrize("what", ["raises", "stalls", "cancelled"])
def test_a_hold_ends_with_its_work(what: str) -> None:
    """F-35, SES-3: the client raises what is no ModelError, or stalls, or its turn is cut off; the next submit runs at once,

    and what is told is the client's fault or the stall, never a lock.
    """

    async def broken(request: Any, on_event: Any) -> None:
        if what == "raises":
            raise ZeroDivisionError("a bug of the client")
        await trio.sleep_forever()

    async def main() -> None:
        async with stage(FieldModel(broken, says("so"))) as scene:
            await scene.say("hi")
            if what == "cancelled":
                await trio.sleep(1)
                await scene.harness.interrupt(S)
            await scene.idle()
            assert not scene.loop().machine.books.lock.is_locked()
            (ended,) = scene.told(TurnEnded)
            words = {"raises": "a bug of the client", "stalls": "no progress for 300 s", "cancelled": "interrupted"}
            assert words[what] in ended.error and "lock" not in ended.error and "lease" not in ended.error
            assert (await scene.harness.turn(S, "again")).outcome == "ok"

    play(main)


def test_a_settle_step_that_raises_stops_neither_the_others_nor_the_next_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """F-36, SES-4: of three calls that expire at once, settling the first raises; it is told once, its hold is gone, and the

    others were settled in the same sweep. The call has its result all the same.
    """
    settle = Calls.expired

    def raises(self: Calls, expired: Any) -> None:
        if expired.call_id == "a":
            raise RuntimeError("settling went wrong")
        settle(self, expired)

    monkeypatch.setattr(Calls, "expired", raises)

    async def main() -> None:
        tool = FieldTool("work", 1000.0, timeout=10, concurrent=True)
        async with stage(FieldModel(calls(("a", "work"), ("b", "work"), ("c", "work")), says("so")), tool) as scene:
            scene.settle_failures = 1
            await scene.say("go")
            await trio.sleep_until(30)
            (failed,) = scene.told(SettleFailed)
            assert failed.what == "call a" and "settling went wrong" in failed.error
            assert scene.when(HoldExpired) == [10, 10, 10]
            assert [each.outcome for each in scene.told(TurnEnded)] == ["ok"]
            assert sorted(each.call_id for each in scene.told(CallEnded)) == ["a", "b", "c"]

    play(main)


def test_a_settle_step_of_the_model_that_raises_leaves_a_session_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """F-36, SES-4: the hold is gone in that sweep, told once, and the session goes on."""

    def raises(self: SessionCourse, expired: Any) -> None:
        raise RuntimeError("settling went wrong")

    async def main() -> None:
        async with stage(FieldModel([], then=says("so"))) as scene:
            scene.settle_failures = 1
            with monkeypatch.context() as patch:
                patch.setattr(SessionCourse, "_model_expired", raises)
                await scene.say("go")
                await trio.sleep_until(302)
            await trio.sleep_until(303)
            assert len(scene.told(SettleFailed)) == 1 and not scene.loop().machine.books.lock.is_locked()
            assert scene.model.closed == [(300, 1)], "its work is stopped all the same"
            assert [each.outcome for each in scene.told(TurnEnded)] == ["failed"]
            assert (await scene.harness.turn(S, "again")).outcome == "ok"

    play(main)
