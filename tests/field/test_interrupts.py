"""F-16, F-17, F-20, F-34: whatever ends a turn, every call has one result in its place, and nothing that ended comes back."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from concorde_trio._sansio.input_queue import HEADER
from concorde_trio._sansio.model_events import (
    CallStarted,
    Purpose,
    ReplyEnd,
    StopReason,
    TextDelta,
    UsageReport,
)
from concorde_trio.errors import ModelError
from concorde_trio.events import TurnEnded
from concorde_trio.messages import CallOutcome, Role
from concorde_trio.records import Usage
from tests.field.ledger import Crash, LedgerStore
from tests.field.stage import FieldModel, FieldTool, S, Scene, calls, fails, play, says, stage


@pytest.mark.parametrize(("flying", "finished"), [(n, k) for n in (1, 2, 5) for k in range(n + 1)])
def test_the_next_prompt_is_accepted_however_many_calls_an_interrupt_cut(flying: int, finished: int) -> None:
    """F-16, SES-9, SES-12: n calls in flight, k of them finished; what is finished is kept, the rest says what became of it."""

    async def main() -> None:
        async def work(arguments: Any, context: Any) -> str:
            await trio.sleep(1 if int(context.call_id[1:]) < finished else 50)
            return f"{context.call_id} done"

        tool = FieldTool("work", work, concurrent=True)
        wanted = calls(*((f"c{number}", "work") for number in range(flying)))
        async with stage(FieldModel(wanted, says("after"), says("more")), tool) as scene:
            await scene.say("go")
            await trio.sleep_until(2)
            stopped = await scene.harness.interrupt(S)
            assert stopped == (finished < flying)
            result = await scene.harness.turn(S, "next")
            assert result.outcome == "ok"
            _, reply, *rest = await scene.messages()
            results = rest[:flying]
            assert [each.call_id for each in results] == [call.id for call in reply.calls]
            outcomes = [CallOutcome.OK] * finished + [CallOutcome.INTERRUPTED] * (flying - finished)
            assert [each.outcome for each in results] == outcomes
            assert [each.text for each in results[:finished]] == [f"c{number} done" for number in range(finished)]

    play(main)


async def _start(scene: Scene) -> None:
    """One call is done, one runs, one has not started."""
    await scene.say("go")
    await trio.sleep_until(3)


THREE = calls(("a", "quick"), ("b", "slow"), ("c", "quick"), text="let me see")
ENDS = ["a person", "a crash", "a timeout", "the provider", "the limit", "the harness"]


@pytest.mark.parametrize("end", ENDS)
def test_three_calls_have_three_results_in_order_before_the_next_request(end: str) -> None:
    """F-17, SES-9: one done, one running, one not started, when a person interrupts, the process dies, its time is up, the

    provider drops the next request, a usage limit is hit, or the harness is closed. The text that came with the calls is in
    their own message, before them; a model's text after a call joins it there.
    """

    async def main() -> None:
        store = LedgerStore()
        quick, slow = FieldTool("quick", 1.0), FieldTool("slow", 50.0, timeout=10 if end == "a timeout" else 60)
        first: Any = THREE
        if end == "the limit":
            first = [(0.0, UsageReport(Usage(input_tokens=100))), *THREE]
        replies = [first, *([fails(None)] if end == "the provider" else [])]
        model = FieldModel(*replies, then=says("so"))
        options: dict[str, Any] = {"usage_limit": 50} if end == "the limit" else {}
        try:
            async with stage(model, quick, slow, store=store, **options) as scene:
                await _start(scene)
                if end == "a person":
                    assert await scene.harness.interrupt(S)
                elif end == "a crash":
                    await scene.die()
                if end != "the harness":
                    await scene.idle()
        except Crash:
            assert end == "a crash"
        store.revive()
        async with stage(model, quick, slow, store=store) as scene:
            assert (await scene.harness.turn(S, "next")).outcome == "ok"
            messages = await scene.messages()
        assert model.wrong == []
        _, reply, *rest = messages
        assert reply.text == "let me see" and [call.id for call in reply.calls] == ["a", "b", "c"]
        results = rest[:3]
        assert [each.call_id for each in results] == ["a", "b", "c"] and all(each.role is Role.TOOL for each in results)
        done, cut = CallOutcome.OK, CallOutcome.INTERRUPTED
        wanted = {
            "a person": (done, cut, cut),
            "a crash": (done, cut, cut),
            "a timeout": (done, CallOutcome.TIMEOUT, done),
            "the provider": (done, done, done),
            "the limit": (CallOutcome.LIMITED,) * 3,
            "the harness": (done, cut, cut),
        }[end]
        assert tuple(each.outcome for each in results) == wanted
        assert len(quick.ran) == {"the limit": 0, "a timeout": 2, "the provider": 2}.get(end, 1)

    play(main)


def test_text_after_a_call_is_sent_before_it() -> None:
    """F-17, SES-9: nothing stands after the calls of a message; what a model said after one joins the text before them."""

    async def main() -> None:
        script = [
            (0.0, TextDelta("before ")),
            (0.0, CallStarted(0, "a", "quick", "{}")),
            (0.0, TextDelta("after")),
            (0.0, ReplyEnd(StopReason.CALLS)),
        ]
        async with stage(FieldModel(script, says("so")), FieldTool("quick")) as scene:
            await scene.harness.turn(S, "go")
            request = scene.model.sent()[1]
            assert [each.role for each in request.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
            assert request.messages[1].text == "before after"

    play(main)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("policy", ["run_queue", "hold_queue"])
def test_an_interrupt_in_a_back_off_sends_nothing_of_its_turn_again(policy: Any, asked: bool) -> None:
    """F-20, SES-12: a back-off of 60 s, 3 queued, an interrupt at 10 s. F-20 wants no request until a person acts: that is

    on_interrupt="hold_queue". By default the rule wins: the three that waited run next as one turn, at once, or at the end
    of the provider's own Retry-After (SES-11).
    """

    async def main() -> None:
        busy = ModelError("busy", status=503, retry_after="60" if asked else None)
        model = FieldModel([(0.0, busy)], says("so"), says("more"))
        async with stage(model, on_interrupt=policy, backoff=60.0, backoff_cap=60.0) as scene:
            await scene.say("first")
            for at in (1, 2, 3):
                await trio.sleep_until(at)
                await scene.say(f"queued {at}")
            await trio.sleep_until(10)
            assert scene.status() == "backoff"
            assert await scene.harness.interrupt(S)
            await trio.sleep_until(200)
            if policy == "hold_queue":
                assert model.times() == [0] and scene.loop().machine.books.queue.held
                await scene.say("act")
                await scene.idle()
                assert model.times() == [0, 200]
                assert (await scene.texts())[1] == f"{HEADER}\nqueued 1\n---\nqueued 2\n---\nqueued 3\n---\nact"
            else:
                assert model.times() == [0, 60 if asked else 10]
                assert await scene.texts() == ["first", f"{HEADER}\nqueued 1\n---\nqueued 2\n---\nqueued 3", "so"]

    play(main)


def test_held_input_waits_for_an_explicit_resume_and_sets_no_timer() -> None:
    """F-20, SES-12, SES-10b: and a resume lets it run; an interrupt with nothing in flight does nothing."""

    async def main() -> None:
        model = FieldModel([], says("so"))
        async with stage(model, on_interrupt="hold_queue") as scene:
            await scene.say("first")
            queued = await scene.say("second")
            await scene.harness.interrupt(S)
            await trio.sleep(500)
            assert len(model.asked) == 1 and scene.loop().machine.next_due() == float("inf")
            assert not await scene.harness.interrupt(S)
            assert await scene.harness.resume(S) and not await scene.harness.resume(S)
            await scene.idle()
            assert [each.id for each in (await scene.messages())[1].inputs] == [queued]

    play(main)


def test_held_input_is_still_held_after_a_restart() -> None:
    """F-20, SES-12, SES-17: the hold is stored with the session."""

    async def main() -> None:
        store = LedgerStore()
        async with stage(FieldModel([]), store=store, on_interrupt="hold_queue") as scene:
            await scene.say("first")
            await scene.say("second")
            await scene.harness.interrupt(S)
        async with stage(FieldModel(says("so")), store=store, on_interrupt="hold_queue") as scene:
            await trio.sleep(100)
            assert not scene.model.asked and scene.loop().machine.books.queue.held
            await scene.say("third")
            await scene.idle()
            assert (await scene.texts())[1] == f"{HEADER}\nsecond\n---\nthird"

    play(main)


def test_an_interrupt_ends_a_back_off_at_once() -> None:
    """F-34, SES-11, SES-12: at 3 s of 60 s; waiting for input within a second, and no further attempt."""

    async def main() -> None:
        model = FieldModel(fails(503))
        async with stage(model, backoff=60.0, backoff_cap=60.0) as scene:
            await scene.say("hi")
            await trio.sleep_until(3)
            assert scene.status() == "backoff" and scene.loop().machine.waiting_on().on == "backoff"
            assert await scene.harness.interrupt(S)
            assert trio.current_time() == 3 and scene.status() == "waiting_for_input"
            await trio.sleep_until(500)
            assert model.times() == [0] and [each.outcome for each in scene.told(TurnEnded)] == ["interrupted"]

    play(main)


def test_a_provider_that_asked_for_time_gets_it_after_an_interrupt_too() -> None:
    """F-34, SES-11: the next request waits out the Retry-After; a second interrupt meanwhile changes nothing of that."""

    async def main() -> None:
        model = FieldModel([(0.0, ModelError("slow down", status=429, retry_after="60"))], says("so"))
        async with stage(model) as scene:
            await scene.say("hi")
            await trio.sleep_until(3)
            await scene.harness.interrupt(S)
            await trio.sleep_until(5)
            await scene.say("again")
            assert scene.status() == "backoff"
            await trio.sleep_until(6)
            await scene.harness.interrupt(S)
            await scene.say("and again")
            await scene.idle()
            assert model.times() == [0, 60] and len(model.sent(purpose=Purpose.TURN)) == 2

    play(main)
