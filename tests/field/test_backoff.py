"""F-33: how long a provider that refuses is waited for, and what input does meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from concorde_trio._sansio.input_queue import HEADER
from concorde_trio.errors import ModelError
from concorde_trio.events import ModelFailed, TurnEnded
from tests.field.stage import FieldModel, S, fails, play, says, stage

EPOCH = 1e9  # 9 September 2001, 01:46:40


def wall() -> float:
    """A wall clock that goes with Trio's."""
    return trio.current_time() + EPOCH


@pytest.mark.parametrize(
    ("header", "waits"),
    [
        ("7", 7.0),
        ("7.5", 7.5),
        ("Sun, 09 Sep 2001 01:47:10 GMT", 30.0),
        ("Sun, 09 Sep 2001 01:40:00 GMT", 1.0),
        ("-5", 1.0),
        ("0", 1.0),
        ("soon", 1.0),
        ("", 1.0),
        ("nan", 1.0),
        ("inf", 1.0),
        ("1e3", 1.0),
        ("٧", 1.0),
    ],
)
def test_a_provider_that_says_how_long_is_taken_at_its_word(header: str, waits: float) -> None:
    """F-33, SES-11: exactly Retry-After, as seconds or a date. A negative, garbage, zero or past one is none: the default."""

    async def main() -> None:
        busy = ModelError("busy", status=429, retry_after=header)
        async with stage(FieldModel([(0.0, busy)], says("so")), wall_clock=wall) as scene:
            assert (await scene.harness.turn(S, "hi")).outcome == "ok"
            assert scene.model.times() == [0, waits]

    play(main)


@pytest.mark.parametrize("header", ["18000", "301", "Sun, 09 Sep 2001 06:46:40 GMT"])
def test_a_wait_that_is_too_long_ends_the_turn_and_says_when(header: str) -> None:
    """F-33, SES-11: longer than max_backoff (300 s): no wait in silence."""

    async def main() -> None:
        busy = ModelError("busy", status=429, retry_after=header)
        async with stage(FieldModel([(0.0, busy)]), wall_clock=wall) as scene:
            result = await scene.harness.turn(S, "hi")
            assert result.outcome == "failed" and trio.current_time() == 0 and result.error is not None
            asked = 301 if header == "301" else 18_000
            assert f"come back in {asked:,} s" in result.error and "max_backoff (300 s)" in result.error

    play(main)


def test_input_during_a_back_off_is_sent_once_when_it_ends() -> None:
    """F-33, SES-10, SES-11: not by any heartbeat in between, and it joins the turn that is waiting."""

    async def main() -> None:
        busy = ModelError("busy", status=429, retry_after="60")
        async with stage(FieldModel([(0.0, busy)], says("so")), heartbeat=1.0) as scene:
            first = await scene.say("first")
            await trio.sleep_until(10)
            ids = [await scene.say("second"), await scene.say("third")]
            waits = scene.loop().machine.waiting_on()
            assert (waits.on, waits.since, waits.left, waits.then) == ("backoff", 10, 50, "the model is asked again")
            await trio.sleep_until(59.5)
            assert scene.model.times() == [0] and not scene.loop().machine.books.lock.is_locked()
            await scene.idle()
            assert scene.model.times() == [0, 60]
            messages = await scene.messages()
            assert [each.id for message in messages for each in message.inputs] == [first, *ids]
            assert messages[1].text == f"{HEADER}\nsecond\n---\nthird" and len(messages) == 3

    play(main)


@pytest.mark.parametrize("failure", [429, 529, 500, 502, 503, 504, "connection"])
def test_what_may_pass_is_tried_again_with_growing_pauses_and_then_no_more(failure: Any) -> None:
    """F-33, SES-11: 1, 2, 4, 8, 8 s (a cap of 8), and after six tries the turn fails in the provider's words."""

    async def main() -> None:
        status = None if failure == "connection" else failure
        again = fails(status, connection=status is None)
        async with stage(FieldModel(then=again), backoff_cap=8.0) as scene:
            result = await scene.harness.turn(S, "hi")
            assert scene.model.times() == [0, 1, 3, 7, 15, 23] and result.outcome == "failed"
            assert result.error is not None and f"the provider says {status}" in result.error
            assert [each.retry_in for each in scene.told(ModelFailed)] == [1, 2, 4, 8, 8, None]

    play(main)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 501, None])
def test_what_cannot_pass_fails_the_turn_at_once(status: int | None) -> None:
    """F-33, SES-11: any other error, in the provider's words."""

    async def main() -> None:
        async with stage(FieldModel(fails(status), says("so"))) as scene:
            result = await scene.harness.turn(S, "hi")
            assert (result.outcome, result.error, trio.current_time()) == ("failed", f"the provider says {status}", 0)
            assert (await scene.harness.turn(S, "again")).outcome == "ok"

    play(main)


def test_jitter_makes_a_pause_shorter_and_never_longer() -> None:
    """F-33, SES-11: between half of the exponent's pause and all of it."""

    async def main() -> None:
        draws = iter([0.0, 0.5, 1.0])
        model = FieldModel(fails(500), fails(500), fails(500), says("so"))
        async with stage(model, jitter=lambda: next(draws)) as scene:
            await scene.harness.turn(S, "hi")
            assert [each.retry_in for each in scene.told(ModelFailed)[:3]] == [0.5, 1.5, 4.0]

    play(main)


def test_a_success_makes_the_next_failure_a_first_one() -> None:
    """F-33, SES-11: the tries are those of one request."""

    async def main() -> None:
        model = FieldModel(fails(500), fails(500), says("one"), fails(500), says("two"))
        async with stage(model) as scene:
            await scene.harness.turn(S, "hi")
            await scene.harness.turn(S, "again")
            assert [each.retry_in for each in scene.told(ModelFailed)] == [1, 2, 1]
            assert [each.outcome for each in scene.told(TurnEnded)] == ["ok", "ok"]

    play(main)
