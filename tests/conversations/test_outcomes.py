"""SES-21: a run's outcome is that of the turn that took its prompt, and what ends the run ends the turn properly."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio

from concorde_trio._sansio.model_events import ReplyEnd, TextDelta, UsageReport
from concorde_trio.events import TurnEnded
from concorde_trio.messages import CallOutcome, InputState, Role
from concorde_trio.records import RunState, SignalState, Usage
from tests.conversations.stage import S, WorkerStore, about, talking
from tests.field.ledger import Crash
from tests.field.stage import FieldModel, FieldTool, calls, fails, play, says


def test_a_run_that_went_well_has_the_answer_and_its_usage() -> None:
    """SES-21, RUN-5: ok, with the text of its turn's last reply."""

    async def main() -> None:
        used = [(0.0, UsageReport(Usage(input_tokens=7, output_tokens=3)))]
        model = FieldModel([*used, *calls(("a", "work"))], [*used, *says("done")])
        async with talking(model, FieldTool("work")) as talk:
            record = await talk.settled(await talk.chat("do it"))
            (run,) = await talk.runs()
            assert record.state is SignalState.DONE and run.state is RunState.DONE
            assert run.text == "done" and run.usage == Usage(input_tokens=14, output_tokens=6)
            assert [each.role.value for each in await talk.messages()] == ["user", "assistant", "tool", "assistant"]

    play(main)


def test_a_run_whose_turn_failed_is_failed_in_the_providers_words() -> None:
    """SES-21, SES-5, SES-11: and its session takes the next run."""

    async def main() -> None:
        async with talking(FieldModel(fails(400), [(1.0, TextDelta("x"))], says("so"))) as talk:
            failed = await talk.settled(await talk.chat("one"))
            assert failed.state is SignalState.FAILED and "the provider says 400" in (failed.error or "")
            stalled = await talk.settled(await talk.chat("two"))
            assert "no progress for 300 s" in (stalled.error or "") and about(301)
            assert (await talk.settled(await talk.chat("three"))).state is SignalState.DONE
            assert [run.state for run in await talk.runs()] == [RunState.FAILED, RunState.FAILED, RunState.DONE]

    play(main)


def test_a_run_over_its_usage_limit_is_limited_and_its_calls_say_so() -> None:
    """SES-21, SES-16: no further request; an answer that needed none is ok though it crossed the limit."""

    async def main() -> None:
        used = [(0.0, UsageReport(Usage(input_tokens=90, output_tokens=20)))]
        tool = FieldTool("work")
        model = FieldModel([*used, *calls(("a", "work"))], [*used, *says("so")])
        async with talking(model, tool) as talk:
            limited = await talk.settled(await talk.chat({"text": "one", "usage_limit": 100}))
            ok = await talk.settled(await talk.chat({"text": "two", "usage_limit": 100}))
            first, second = await talk.runs()
            assert (first.state, limited.state) == (RunState.LIMITED, SignalState.FAILED) and not tool.ran
            assert "110 of 100 tokens" in (first.error or "")
            assert (second.state, ok.state) == (RunState.DONE, SignalState.DONE)
            assert (await talk.messages())[2].outcome is CallOutcome.LIMITED

    play(main)


ENDS = ["an interrupt", "a cancel of the run", "a cancel of the signal", "its time limit", "a cancelling stop"]


@pytest.mark.parametrize("during", ["the model", "a call", "a back-off", "a question", "a summary"])
@pytest.mark.parametrize("end", ENDS)
def test_whatever_cuts_a_run_ends_its_turn_properly(end: str, during: str) -> None:
    """SES-21, SES-12, RUN-6, STP-3: cut at 5 s by any of these; nothing of the turn goes on, the transcript is valid, the run

    keeps its locks until all of that is over, and the next run of the session goes on from it.
    """

    async def main() -> None:
        ended: list[float] = []

        async def work(arguments: Any, context: Any) -> str:
            try:
                await trio.sleep(100)
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(2)
                ended.append(trio.current_time())
            return "never"

        tool = FieldTool("work", 1.0 if during == "a summary" else work, output="x" * 500)
        first: Any = {
            "the model": [(1.0, TextDelta("I was about"))],
            "a back-off": fails(503),
        }.get(during, calls(("a", "work")))
        model = FieldModel(first, then=says("so"), summaries=[[]])
        options: dict[str, Any] = {"backoff": 60.0, "backoff_cap": 60.0, "summarize_over": 100, "truncate_to": 10}
        if during == "a question":
            options["policy"] = lambda call, kind: "ask"
        store = None
        async with talking(model, tool, **options) as talk:
            store = talk.store
            limit = {"time_limit": 5.0} if end == "its time limit" else {}
            signal = await talk.chat({"text": "one", **limit})
            await trio.sleep_until(5)
            (run,) = await talk.runs()
            if end == "an interrupt":
                assert await talk.runtime.sessions.interrupt(S)
            elif end == "a cancel of the run":
                await talk.worker.cancel_run(run.id)
            elif end == "a cancel of the signal":
                await talk.worker.cancel_signal(signal)
            elif end == "a cancelling stop":
                talk.worker.stop("cancel")
            record = await talk.settled(signal)
            assert record.state is SignalState.FAILED
            assert about(7 if during == "a call" else 5) and len(ended) == (during == "a call")
            (run,) = await talk.runs()
            assert run.state is (RunState.FAILED if end == "its time limit" else RunState.CANCELLED)
            (turn,) = talk.told(TurnEnded)
            assert turn.outcome == "interrupted"
            if during == "the model":
                said = (await talk.messages())[-1]
                assert said.interrupted and said.text == "I was about" and [epoch for _, epoch in model.closed] == [1]
            if during in ("a call", "a question"):
                why = {"an interrupt": "person interrupted", "a cancelling stop": "the worker was stopped"}
                said = (await talk.messages())[-1]
                assert why.get(end, "the run was stopped").lower() in said.text.lower(), "SES-7: what is true"
        async with talking(model, tool, store=store) as talk:
            assert (await talk.settled(await talk.chat("two"))).state is SignalState.DONE
            results = [each for each in await talk.messages() if each.role is Role.TOOL]
            assert len(results) == (during in ("a call", "a question", "a summary"))

    play(main)


def test_a_restart_closes_the_prompt_of_a_run_that_a_crash_cut() -> None:
    """SES-21, REC-2, SES-17: it is in the transcript, delivered, and never run again; its call has a result."""

    async def main() -> None:
        store = WorkerStore()
        with suppress(Crash):
            async with talking(FieldModel(calls(("a", "work"))), FieldTool("work", 20.0), store=store) as talk:
                await talk.chat("one")
                await trio.sleep_until(5)
                await talk.die()
        store.revive()
        model = FieldModel(says("so"))
        async with talking(model, FieldTool("work", 20.0), store=store) as talk:
            await talk.quiet()
            assert model.asked == []
            (run,) = [each for each in await talk.runs() if each.started_at is not None]
            assert run.state is RunState.FAILED
            assert (await talk.settled(await talk.chat("two"))).state is SignalState.DONE
            roles = [each.role.value for each in model.sent()[0].messages]
            assert roles == ["user", "assistant", "tool", "user"]
            assert list(store.settled.values()) == [InputState.DELIVERED] * 2

    play(main)


def test_a_stream_without_an_answer_is_an_ok_run_without_text() -> None:
    """SES-21: an empty reply is a reply."""

    async def main() -> None:
        async with talking(FieldModel([(0.0, ReplyEnd())])) as talk:
            assert (await talk.settled(await talk.chat("one"))).state is SignalState.DONE

    play(main)
