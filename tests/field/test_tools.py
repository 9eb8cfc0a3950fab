"""F-12 to F-15, F-19, F-24: approvals, late results, ids that come again, results out of order, input between calls."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio

from concorde_trio._sansio.session_terms import CallReport
from concorde_trio.events import CallEnded, HoldExpired, ReplyDropped
from concorde_trio.messages import CallOutcome, Role
from tests.field.hosts import deaf_host
from tests.field.ledger import Crash, LedgerStore
from tests.field.stage import FieldModel, FieldTool, S, calls, fails, play, says, stage


def asks(call: Any, kind: Any) -> str:
    """A policy that asks about everything."""
    return "ask"


@pytest.mark.parametrize("works", [29.0, 31.0])
def test_a_call_gets_its_whole_time_after_a_long_approval(works: float) -> None:
    """F-12, SES-18, SES-12a: 360 s of waiting for a person are not its 30 s; the status shows both times."""

    async def main() -> None:
        tool = FieldTool("work", works, timeout=30)
        async with stage(FieldModel(calls(("a", "work")), says("so")), tool, policy=asks) as scene:
            await scene.say("go")
            await trio.sleep_until(359)
            waits = scene.loop().machine.waiting_on()
            assert (waits.on, waits.since, waits.left, waits.then) == ("approval", 359, 3241, "the call is denied")
            assert "tool work (call a) for 359.0 s" in scene.loop().machine.books.lock.hold_summary()
            await trio.sleep_until(360)
            await scene.harness.answer(S, "a", allow=True)
            await trio.sleep_until(370)
            waits = scene.loop().machine.waiting_on()
            assert (waits.on, waits.since, waits.left) == ("tool", 10, 20)
            await scene.idle()
            assert tool.ran == [(360, "a")]
            (ended,) = scene.told(CallEnded)
            assert ended.outcome is (CallOutcome.OK if works < 30 else CallOutcome.TIMEOUT)
            assert [each.waited for each in scene.told(HoldExpired)] == ([] if works < 30 else [30])

    play(main)


def test_a_question_that_nobody_answers_ends_as_no() -> None:
    """F-12, SES-18: the approval has its own bound, is shown as a hold, and its end means deny; the tool never ran."""

    async def main() -> None:
        tool = FieldTool("work")
        async with stage(
            FieldModel(calls(("a", "work")), says("so")), tool, policy=asks, approval_timeout=100.0
        ) as scene:
            assert (await scene.harness.turn(S, "go")).outcome == "ok"
            assert trio.current_time() == 100 and not tool.ran
            result = (await scene.messages())[2]
            assert result.outcome is CallOutcome.DENIED and "100 s" in result.text

    play(main)


def test_an_answer_for_one_call_releases_no_other() -> None:
    """F-12, F-14, SES-18: nor does one that comes late for an earlier call of the same id."""

    async def main() -> None:
        tool = FieldTool("work", concurrent=True)
        model = FieldModel(calls(("a", "work"), ("b", "work")), calls(("a", "work")), says("so"))
        async with stage(model, tool, policy=asks) as scene:
            await scene.say("go")
            await trio.sleep_until(1)
            await scene.harness.answer(S, "b", allow=True)
            await trio.sleep_until(10)
            assert tool.ran == [(1, "b")]
            await scene.harness.answer(S, "a", allow=False)
            await trio.sleep_until(11)
            assert tool.ran == [(1, "b")] and scene.status() == "approval", "the new call a is asked about by itself"
            with pytest.raises(LookupError, match="asks about no call 'b'"):
                await scene.harness.answer(S, "b", allow=True)
            await scene.harness.answer(S, "a", allow=True)
            await scene.idle()
            assert tool.ran == [(1, "b"), (11, "a")]

    play(main)


@pytest.mark.parametrize("host", ["deaf", "local"])
def test_a_result_that_comes_after_the_synthetic_one_is_never_a_second(host: str) -> None:
    """F-13, SES-7: the call's time is up at 10 s, the real result comes at 11 s: kept on the abandoned record, told as

    dropped. The synthetic text says that it may still complete; it never calls the work failed.
    """

    async def main() -> None:
        async def stubborn(arguments: Any, context: Any) -> str:
            with trio.CancelScope(shield=True):
                await trio.sleep(11)
            return "the real result"

        tool = FieldTool("work", stubborn, timeout=10)
        options: dict[str, Any] = {"make_host": deaf_host} if host == "deaf" else {"stop_wait": 0.5}
        async with stage(FieldModel(calls(("c1", "work")), says("so")), tool, **options) as scene:
            await scene.harness.turn(S, "go")
            assert trio.current_time() < 11
            await trio.sleep_until(20)
            results = [each for each in await scene.messages() if each.role is Role.TOOL]
            assert [(each.call_id, each.outcome) for each in results] == [("c1", CallOutcome.TIMEOUT)]
            assert "after 10 s" in results[0].text and "may still complete" in results[0].text
            assert "fail" not in results[0].text.lower()
            (record,) = scene.loop().machine.calls.abandoned.records
            assert (record.call_id, record.what, record.late) == (
                "c1",
                "call",
                "the real result",
            ) and record.ended == 11
            assert [(each.what, each.call_id) for each in scene.told(ReplyDropped)] == [("result", "c1")]

    play(main)


def test_a_call_that_ends_while_it_is_being_stopped_has_one_result_and_a_record() -> None:
    """F-13, SES-7: the timeout at 10 s, the real result at 11 s, while the session waits for the call to stop."""

    async def main() -> None:
        async def stubborn(arguments: Any, context: Any) -> str:
            with trio.CancelScope(shield=True):
                await trio.sleep(11)
            return "the real result"

        tool = FieldTool("work", stubborn, timeout=10)
        async with stage(FieldModel(calls(("c1", "work")), says("so")), tool) as scene:
            await scene.say("go")
            await trio.sleep_until(10.5)
            waits = scene.loop().machine.waiting_on()
            assert waits.on == "stopping" and waits.left == 9.5
            await scene.idle()
            (result,) = [each for each in await scene.messages() if each.role is Role.TOOL]
            assert result.outcome is CallOutcome.TIMEOUT and trio.current_time() == 11
            (record,) = scene.loop().machine.calls.abandoned.records
            assert record.late == "the real result" and record.ended is not None

    play(main)


def test_an_id_that_a_provider_uses_again_is_a_new_call() -> None:
    """F-14, SES-13, SES-17: ``call-1`` of turn 1 has its result; ``call-1`` of turn 5, which a crash cut, gets its own."""

    async def main() -> None:
        store = LedgerStore()
        tool = FieldTool("work", 1.0, timeout=1000)
        turns = [reply for _ in range(4) for reply in (calls(("call-1", "work")), says("so"))]
        with suppress(Crash):
            async with stage(FieldModel(*turns, calls(("call-1", "work"))), tool, store=store) as scene:
                for number in range(4):
                    assert (await scene.harness.turn(S, f"turn {number}")).outcome == "ok"
                tool.body = 100.0
                await scene.say("turn 4")
                await trio.sleep(1)
                await scene.die()
        store.revive()
        async with stage(FieldModel(says("after")), tool, store=store) as scene:
            assert (await scene.harness.turn(S, "turn 5")).outcome == "ok"
            results = [each for each in await scene.messages() if each.role is Role.TOOL]
            assert [each.call_id for each in results] == ["call-1"] * 5
            assert [each.outcome for each in results] == [CallOutcome.OK] * 4 + [CallOutcome.INTERRUPTED]

    play(main)


def test_results_keep_their_ids_whatever_order_they_come_in() -> None:
    """F-15, SES-9, LSE-6: three calls to ``weather`` finish as c, a, b; the request has each text under its own id."""

    async def main() -> None:
        async def weather(arguments: Any, context: Any) -> str:
            await trio.sleep({"c": 1, "a": 2, "b": 3}[context.call_id])
            return f"weather of {context.call_id}"

        tool = FieldTool("weather", weather, concurrent=True)
        model = FieldModel(calls(("a", "weather"), ("b", "weather"), ("c", "weather")), says("so"))
        async with stage(model, tool) as scene:
            await scene.harness.turn(S, "go")
            assert [each.call_id for each in scene.told(CallEnded)] == ["c", "a", "b"]
            results = scene.model.sent()[1].messages[2:]
            assert [(each.call_id, each.text) for each in results] == [
                (each, f"weather of {each}") for each in ("a", "b", "c")
            ]

    play(main)


def test_a_result_without_an_id_is_refused_and_not_guessed() -> None:
    """F-15, SES-13: with two calls open, and with one; a result for an id that is not open is dropped and told as well."""

    async def main() -> None:
        tool = FieldTool("weather", 20.0, concurrent=True)
        async with stage(FieldModel(calls(("a", "weather"), ("b", "weather")), says("so")), tool) as scene:
            await scene.say("go")
            await trio.sleep_until(1)
            scene.loop().call_over(None, None, CallReport("whose?"))
            scene.loop().call_over("weather", None, CallReport("whose?"))
            scene.loop().call_over("b", None, CallReport("b's, by its id"))
            await trio.sleep_until(2)
            assert [each.call_id for each in scene.told(ReplyDropped)] == [None, "weather"]
            assert [each.call_id for each in scene.told(CallEnded)] == ["b"]
            scene.loop().call_over(None, None, CallReport("whose?"))
            await scene.idle()
            texts = {each.call_id: each.text for each in await scene.messages() if each.role is Role.TOOL}
            assert texts == {"a": "a done", "b": "b's, by its id"}

    play(main)


def test_a_tool_is_not_run_again_because_a_later_request_failed() -> None:
    """F-19, SES-13: tool ok, then 500, 500, ok; the tool ran once and its result stands."""

    async def main() -> None:
        tool = FieldTool("work")
        model = FieldModel(calls(("a", "work")), fails(500), fails(500), says("so"))
        async with stage(model, tool) as scene:
            assert (await scene.harness.turn(S, "go")).outcome == "ok"
            assert len(tool.ran) == 1
            requests = scene.model.sent()
            assert len(requests) == 4 and requests[1].messages == requests[3].messages

    play(main)


def test_input_during_a_call_waits_for_all_calls_of_the_reply() -> None:
    """F-24, SES-9, SES-10: submitted during tool 2 of 4. Our policy: all 4 are finished, then it joins the turn, after the

    last result and before the next request.
    """

    async def main() -> None:
        tool = FieldTool("work", 10.0)
        model = FieldModel(calls(*((f"c{number}", "work") for number in range(1, 5))), says("so"))
        async with stage(model, tool) as scene:
            await scene.say("go")
            await trio.sleep_until(15)
            late = await scene.say("by the way")
            await scene.idle()
            messages = await scene.messages()
            assert [each.role.value for each in messages] == ["user", "assistant", *["tool"] * 4, "user", "assistant"]
            assert [each.id for each in messages[6].inputs] == [late] and len(tool.ran) == 4
            assert scene.model.sent()[1].messages == tuple(messages[:7]) and scene.model.times() == [0, 40]

    play(main)
