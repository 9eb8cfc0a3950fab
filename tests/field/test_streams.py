"""F-01 to F-05: what counts as progress of a model's stream, and what becomes of one that makes none."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import trio

from concorde_trio._sansio.input_queue import HEADER
from concorde_trio._sansio.model_events import (
    CallDelta,
    CallStarted,
    ModelEvent,
    ModelRequest,
    Ping,
    ReasoningDelta,
    ReplyEnd,
    StopReason,
    TextDelta,
    TextSnapshot,
    UsageReport,
)
from concorde_trio.errors import ModelError
from concorde_trio.events import HoldExpired, ModelFailed, TurnEnded
from concorde_trio.records import Usage
from tests.field.stage import FieldModel, OnEvent, S, play, says, stage


def test_a_stalled_stream_gives_up_its_hold_and_what_waited_runs_as_one_turn() -> None:
    """F-01, SES-5, LSE-3: 300 s after its last delta, with one notice that names the stall and its length."""

    async def main() -> None:
        model = FieldModel([(1.0, TextDelta(text)) for text in "abc"], says("yes"))
        async with stage(model) as scene:
            await scene.say("first")
            await trio.sleep_until(20)
            one, two = await scene.say("second"), await scene.say("third")
            await trio.sleep_until(302.9)
            assert scene.status() == "model" and len(model.asked) == 1
            await trio.sleep_until(304)
            assert not scene.loop().machine.books.lock.is_locked() and scene.status() == "waiting_for_input"
            assert model.times() == [0, 303] and model.closed == [(303, 1)]
            (expired,) = scene.told(HoldExpired)
            assert (expired.what, expired.epoch, expired.waited, expired.reason) == ("llm", 1, 300, "progress")
            failed, ok = scene.told(TurnEnded)
            assert failed.outcome == "failed" and "no progress for 300 s" in failed.error and ok.outcome == "ok"
            first, both, answer = await scene.messages()
            assert [each.id for each in both.inputs] == [one, two] and both.text == f"{HEADER}\nsecond\n---\nthird"
            assert (first.text, answer.text) == ("first", "yes"), "the partial text is dropped"

    play(main)


PHASES = ("DNS", "connect", "TLS", "headers", "first byte", "mid body", "trailer")


class Connection:
    """A connection that stands still in one phase of a request, or breaks off there; what came before has come."""

    def __init__(self, phase: str, *, breaks: bool = False) -> None:
        self.phase, self.breaks = phase, breaks

    async def __call__(self, request: ModelRequest, on_event: OnEvent) -> None:
        for phase in PHASES:
            if phase == self.phase:
                if self.breaks:
                    raise ModelError(f"the connection broke off in {phase}", connection=True)
                await trio.sleep_forever()
            if phase == "first byte":
                on_event(TextDelta("half"))
            if phase == "mid body":
                on_event(TextDelta(" and half"))


@pytest.mark.parametrize("phase", PHASES)
def test_a_request_that_stands_still_in_any_phase_is_held_to_the_same_budget(phase: str) -> None:
    """F-02, LSE-3: the budget covers name, connection, headers, first byte, body and trailer alike."""

    async def main() -> None:
        model = FieldModel(Connection(phase), says("yes"))
        async with stage(model) as scene:
            await scene.say("hi")
            await trio.sleep_until(299)
            assert scene.loop().machine.books.lock.is_locked()
            await trio.sleep_until(301)
            assert model.closed == [(300, 1)] and scene.status() == "waiting_for_input"
            assert [each.outcome for each in scene.told(TurnEnded)] == ["failed"]
            result = await scene.harness.turn(S, "again")
            assert result.outcome == "ok" and await scene.texts() == ["hi", "again", "yes"]

    play(main)


@pytest.mark.parametrize("phase", PHASES)
def test_a_connection_that_breaks_off_in_any_phase_is_tried_again(phase: str) -> None:
    """F-02, F-07, SES-11: one ordinary retry; nothing of the broken stream stays."""

    async def main() -> None:
        model = FieldModel(Connection(phase, breaks=True), says("whole"))
        async with stage(model) as scene:
            result = await scene.harness.turn(S, "hi")
            assert result.outcome == "ok" and model.times() == [0, 1] and await scene.texts() == ["hi", "whole"]
            (failed,) = scene.told(ModelFailed)
            assert failed.retry_in == 1 and phase in failed.error

    play(main)


def test_a_stream_that_ends_without_saying_so_is_no_reply() -> None:
    """F-02, SES-11: a stream that just ends is a broken connection, and tried again."""

    async def ends(request: ModelRequest, on_event: OnEvent) -> None:
        on_event(TextDelta("half"))

    async def main() -> None:
        model = FieldModel(ends, says("whole"))
        async with stage(model) as scene:
            assert (await scene.harness.turn(S, "hi")).text == "whole"
            assert await scene.texts() == ["hi", "whole"]

    play(main)


KEEP_ALIVES: dict[str, tuple[list[Any], Any]] = {
    "pings": ([], lambda: (15.0, Ping())),
    "an unchanged buffer": ([(0.0, TextSnapshot("so far"))], lambda: (5.0, TextSnapshot("so far"))),
    "usage alone": ([], lambda: (30.0, UsageReport(Usage(input_tokens=9)))),
    "empty deltas": ([], lambda: (10.0, TextDelta(""))),
    "empty reasoning": ([], lambda: (10.0, ReasoningDelta(""))),
    "a shorter buffer": ([(0.0, TextSnapshot("so far"))], lambda: (10.0, TextSnapshot("so"))),
}


@pytest.mark.parametrize("kind", KEEP_ALIVES)
def test_what_only_shows_that_the_connection_lives_moves_no_deadline(kind: str) -> None:
    """F-03, F-04, LSE-3: keep-alives, unchanged buffers and usage are no progress."""
    first, again = KEEP_ALIVES[kind]

    async def main() -> None:
        model = FieldModel([*first, *(again() for _ in range(120))])
        async with stage(model) as scene:
            await scene.say("hi")
            await trio.sleep_until(299)
            assert scene.status() == "model" and not scene.told(HoldExpired)
            await trio.sleep_until(301)
            (expired,) = scene.told(HoldExpired)
            assert (expired.waited, expired.reason) == (300, "progress") and model.closed == [(300, 1)]

    play(main)


def test_a_buffer_that_grows_is_progress() -> None:
    """F-03, LSE-3: a host that is polled shows all of the text each time; a longer one has moved."""

    async def main() -> None:
        grows = [(100.0, TextSnapshot("x" * size)) for size in range(1, 11)]
        async with stage(FieldModel([*grows, (0.0, ReplyEnd())])) as scene:
            assert (await scene.harness.turn(S, "hi")).text == "x" * 10
            assert trio.current_time() == 1000 and not scene.told(HoldExpired)

    play(main)


def test_real_progress_for_ever_ends_at_the_ceiling() -> None:
    """F-04, LSE-9: one character a minute is progress, and the ceiling of 60 minutes stands; its reason says so."""

    async def main() -> None:
        model = FieldModel([(60.0, TextDelta("x")) for _ in range(100)])
        async with stage(model) as scene:
            await scene.say("hi")
            await trio.sleep_until(3599)
            assert scene.status() == "model" and not scene.told(HoldExpired)
            await trio.sleep_until(3601)
            (expired,) = scene.told(HoldExpired)
            assert (expired.reason, expired.waited) == ("ceiling", 3600) and model.closed == [(3600, 1)]
            (ended,) = scene.told(TurnEnded)
            assert "ceiling" in ended.error and "3,600 s in all" in ended.error

    play(main)


def test_reasoning_that_nobody_sees_is_progress() -> None:
    """F-05, LSE-3: reasoning every 20 s for 20 minutes, swept every 5 s, is never reclaimed; the text may be a stand-in."""

    async def main() -> None:
        thinks: list[tuple[float, ModelEvent]] = [(20.0, ReasoningDelta("…")) for _ in range(60)]
        async with stage(FieldModel([*thinks, *says("so")])) as scene:
            result = await scene.harness.turn(S, "hi")
            assert (result.outcome, result.text, trio.current_time()) == ("ok", "so", 1200)
            assert not scene.told(HoldExpired) and await scene.texts() == ["hi", "so"]

    play(main)


def test_arguments_of_a_call_that_grow_are_progress() -> None:
    """F-05, LSE-3: a long file written as an argument keeps its request alive; a name alone does too, once."""

    async def main() -> None:
        pieces = ['{"a": "', *itertools.repeat("x", 10), '"}']
        script: list[Any] = [(250.0, CallStarted(0, "c1", "nobody"))]
        script += [(250.0, CallDelta(0, piece)) for piece in pieces]
        async with stage(FieldModel([*script, (0.0, ReplyEnd(StopReason.CALLS))], says("so"))) as scene:
            assert (await scene.harness.turn(S, "hi")).outcome == "ok"
            assert not scene.told(HoldExpired)

    play(main)
