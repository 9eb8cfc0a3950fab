"""F-06 to F-08, F-10, F-11: whose hold it is, when it is over, and what comes for it too late."""

from __future__ import annotations

import pytest
import trio

from concorde_trio._sansio.model_events import ModelRequest, Purpose, ReplyEnd, TextDelta
from concorde_trio._sansio.session_terms import StartRequest
from concorde_trio.errors import ModelError
from concorde_trio.events import HoldExpired, ModelFailed, ReplyDropped, TurnEnded
from concorde_trio.messages import Role
from concorde_trio.sessions.host import Port
from tests.field.hosts import deaf_host
from tests.field.stage import FieldModel, OnEvent, S, play, says, stage
from tests.signals.stage import play as seeded_play


@pytest.mark.parametrize("what", ["progress", "completion"])
@pytest.mark.parametrize("at", [299.5, 300.0, 300.5])
def test_a_hold_that_moved_or_ended_since_it_looked_expired_is_left_alone(what: str, at: float) -> None:
    """F-06, LSE-11, SES-3: progress or the end within half a second of the deadline, in 12 orders of Trio's tasks.

    Before the deadline it counts, after it is late; at the very instant either is right, and nothing is counted twice. That
    the sweep itself has no await between look and act is pinned by tests/sansio.
    """

    async def main() -> None:
        moved = (at, TextDelta("x")) if what == "progress" else (at, ReplyEnd())
        model = FieldModel([moved, (0.0, ReplyEnd())], says("later"))
        async with stage(model) as scene:
            result = await scene.harness.turn(S, "hi")
            expired = scene.told(HoldExpired)
            assert len(expired) == (result.outcome == "failed")
            assert at == 300.0 or (result.outcome == "ok") == (at < 300)
            assert (await scene.harness.turn(S, "again")).outcome == "ok", "and the session goes on"

    for seed in range(12):
        seeded_play(main, seed=seed)


@pytest.mark.parametrize("jump", [2_400.0, -3_600.0])
def test_a_jump_of_the_wall_clock_changes_no_deadline(jump: float) -> None:
    """F-07, LSE-10: 40 minutes ahead or an hour back; the budget is still 300 s of the monotonic clock."""
    wall = {"offset": 1e6}

    async def main() -> None:
        model = FieldModel([(1.0, TextDelta("x"))])
        async with stage(model, wall_clock=lambda: trio.current_time() + wall["offset"]) as scene:
            await scene.say("hi")
            await trio.sleep_until(50)
            wall["offset"] += jump
            await trio.sleep_until(300)
            assert scene.status() == "model" and not scene.told(HoldExpired)
            await trio.sleep_until(302)
            assert [each.waited for each in scene.told(HoldExpired)] == [300]

    play(main)


def test_a_jump_of_the_wall_clock_changes_no_back_off() -> None:
    """F-07, SES-11: a Retry-After date is turned into seconds once, when it comes."""
    wall = {"offset": 1e9}

    async def main() -> None:
        gone = ModelError("busy", status=429, retry_after="Sun, 09 Sep 2001 01:47:40 GMT")  # 1e9 + 60
        async with stage(
            FieldModel([(0.0, gone)], says("so")), wall_clock=lambda: trio.current_time() + wall["offset"]
        ) as scene:
            await scene.say("hi")
            await trio.sleep_until(10)
            wall["offset"] -= 3600
            await trio.sleep_until(100)
            assert scene.model.times() == [0, 60]

    play(main)


def test_a_connection_that_died_in_a_gap_is_one_ordinary_retry() -> None:
    """F-07, SES-11: the machine slept; the first request after it finds a dead connection, and pays no more than any."""

    async def main() -> None:
        dead = [(3.0, ModelError("the peer is gone", connection=True))]
        async with stage(FieldModel(says("one"), dead, says("two"))) as scene:
            await scene.harness.turn(S, "hi")
            await trio.sleep(40 * 60)
            start = trio.current_time()
            assert (await scene.harness.turn(S, "again")).text == "two"
            assert trio.current_time() == start + 3 + 1, "backoff (1 s), as for a first failure"
            assert [each.retry_in for each in scene.told(ModelFailed)] == [1]

    play(main)


def test_the_late_reply_of_an_earlier_request_is_dropped_by_its_epoch() -> None:
    """F-08, SES-2, SES-5: a host that can't stop a request hands back A's reply at 310 s, after B's at 305 s."""

    async def main() -> None:
        async def late(request: ModelRequest, on_event: OnEvent) -> None:
            await trio.sleep(310)
            on_event(TextDelta("A"))
            on_event(ReplyEnd())

        model = FieldModel(late, says("B", after=5))
        async with stage(model, make_host=deaf_host) as scene:
            await scene.say("first")
            await trio.sleep_until(100)
            await scene.say("second")
            await trio.sleep_until(400)
            assert model.times() == [0, 300]
            assistant = [each.text for each in await scene.messages() if each.role is Role.ASSISTANT]
            assert assistant == ["B"]
            (dropped,) = scene.told(ReplyDropped)
            assert (dropped.what, dropped.epoch) == ("reply", 1)

    play(main)


def test_the_connection_of_an_expired_request_is_closed_at_its_deadline() -> None:
    """F-08, SES-3: at 300 s, not when its reply would have come; and nothing of it comes later."""

    async def main() -> None:
        model = FieldModel(says("A", after=310), says("B", after=5))
        async with stage(model) as scene:
            await scene.say("first")
            await trio.sleep_until(100)
            await scene.say("second")
            await trio.sleep_until(400)
            assert model.closed == [(300, 1)] and not scene.told(ReplyDropped)
            assert await scene.texts() == ["first", "second", "B"]

    play(main)


@pytest.mark.parametrize("late", ["reply", "progress", "failure", "stop", "fired"])
def test_the_end_of_an_earlier_request_does_not_touch_the_next(late: str) -> None:
    """F-10, LSE-11: request 1 is being cleaned up while request 2 is out; whatever 1 still does acts on 1 alone."""

    async def main() -> None:
        ports: list[tuple[Port, StartRequest]] = []
        model = FieldModel([(0.0, TextDelta("one"))], [(30.0, TextDelta("two")), (0.0, ReplyEnd())])
        async with stage(model, make_host=lambda *given: deaf_host(*given, starts=ports)) as scene:
            await scene.say("first")
            await trio.sleep_until(10)
            await scene.harness.interrupt(S)
            await scene.say("second")
            await trio.sleep_until(20)
            (port, first), (_, second) = ports
            assert (first.epoch, second.epoch) == (1, 2)
            before = scene.loop().machine.books.lock.llm
            if late == "reply":
                port.progress(1, Purpose.TURN, ReplyEnd())
                port.request_over(1, Purpose.TURN)
            elif late == "progress":
                port.progress(1, Purpose.TURN, TextDelta("one and a half"))
            elif late == "failure":
                port.request_over(1, Purpose.TURN, None)
            elif late == "stop":
                port.request_stopped(1)
            else:
                port.request_fired(1)
            await trio.sleep_until(25)
            assert scene.loop().machine.books.lock.llm is before, "neither moved nor ended"
            await trio.sleep_until(60)
            assert [each.outcome for each in scene.told(TurnEnded)] == ["interrupted", "ok"]
            assert (await scene.messages())[-1].text == "two"

    play(main)


def test_a_scope_that_fires_ends_its_hold_though_progress_had_moved_it() -> None:
    """SES-3: at that instant, and not at the deadline that the progress gave; what waits runs next."""

    async def main() -> None:
        ports: list[tuple[Port, StartRequest]] = []
        model = FieldModel([(0.0, TextDelta("one")), (15.0, TextDelta("more")), (900.0, ReplyEnd())], then=says("two"))
        async with stage(model, make_host=lambda *given: deaf_host(*given, starts=ports)) as scene:
            await scene.say("first")
            await scene.say("second")
            await trio.sleep_until(20.25)
            lease = scene.loop().machine.books.lock.llm
            assert lease is not None and lease.deadline == 315
            ports[0][0].request_fired(1)
            assert not scene.loop().machine.books.lock.is_locked(), "LSE-1: taken at once"
            await trio.sleep_until(20.5)
            (ended, *_) = scene.told(TurnEnded)
            assert ended.outcome == "failed" and [each.reason for each in scene.told(HoldExpired)] == ["progress"]
            assert model.times() == [0, 20.25]

    play(main)


def test_a_budget_starts_when_its_work_is_dispatched() -> None:
    """F-11, LSE-2: an input that waited 400 s in the queue gets the whole 300 s for its own request."""

    async def main() -> None:
        slow = [(200.0, TextDelta("x")), (200.0, TextDelta("y")), (0.0, ReplyEnd())]
        model = FieldModel(slow, says("used", after=299))
        async with stage(model) as scene:
            await scene.say("first")
            await trio.sleep_until(1)
            waited = await scene.harness.turn(S, "second")
            assert model.times() == [0, 400] and waited.text == "used" and waited.ended == 699
            assert not scene.told(HoldExpired)

    play(main)
