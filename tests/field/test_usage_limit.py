"""SES-16: a usage limit that is reached by any request, a summary's or a compaction's too, is the last one's."""

from __future__ import annotations

from typing import Any

import trio

from concorde_trio._sansio.model_events import Purpose, UsageReport
from concorde_trio.events import Compacted, TurnEnded
from concorde_trio.messages import CallOutcome, Role
from concorde_trio.records import RunState, Usage
from tests.conversations.stage import talking
from tests.field.stage import FieldModel, FieldTool, S, Scene, calls, play, says, stage

LONG: dict[str, Any] = {"summarize_over": 100, "truncate_to": 20, "usage_limit": 100}


def used(tokens: int, reply: Any) -> Any:
    return [(0.0, UsageReport(Usage(input_tokens=tokens))), *reply]


async def outcomes(scene: Scene) -> list[CallOutcome | None]:
    return [each.outcome for each in await scene.messages() if each.role is Role.TOOL]


def test_calls_after_a_summary_that_reached_the_limit_are_not_run() -> None:
    """SES-16: they get results that say so; the turn ends as limited, without a further request."""

    async def main() -> None:
        one, two = FieldTool("one", output="x" * 500), FieldTool("two")
        model = FieldModel(
            used(50, calls(("a", "one"), ("b", "two"), ("c", "two"))), summaries=[used(60, says("short"))]
        )
        async with stage(model, one, two, **LONG) as scene:
            result = await scene.harness.turn(S, "go")
            assert result.outcome == "limited" and "110 of 100 tokens" in (result.error or "")
            assert await outcomes(scene) == [CallOutcome.SUMMARIZED, CallOutcome.LIMITED, CallOutcome.LIMITED]
            assert not two.ran and "was not run: usage limit reached" in (await scene.texts())[-1]
            assert result.usage.input_tokens == 110

    play(main)


def test_outputs_that_wait_for_a_summary_when_the_limit_is_reached_are_cut() -> None:
    """SES-16, SES-6: a summary is a request; what is running ends, and what it gives is kept as well as it can be."""

    async def main() -> None:
        tools = [
            FieldTool(name, seconds, output="x" * 500, concurrent=True)
            for name, seconds in (("one", 1.0), ("two", 1.0), ("three", 20.0))
        ]
        model = FieldModel(
            used(50, calls(("a", "one"), ("b", "two"), ("c", "three"))), summaries=[used(60, says("short", after=5))]
        )
        async with stage(model, *tools, **LONG) as scene:
            result = await scene.harness.turn(S, "go")
            assert result.outcome == "limited" and trio.current_time() == 20
            cut = CallOutcome.TRUNCATED
            assert await outcomes(scene) == [CallOutcome.SUMMARIZED, cut, cut]
            assert [each.purpose for _, each in model.asked] == [Purpose.TURN, Purpose.SUMMARY]

    play(main)


def test_a_call_that_a_person_is_asked_about_is_not_run_once_the_limit_is_reached() -> None:
    """SES-16, SES-18: it has not started; the question is over."""

    def policy(call: Any, kind: Any) -> Any:
        return "ask" if call.name == "two" else "allow"

    async def main() -> None:
        one, two = FieldTool("one", output="x" * 500, concurrent=True), FieldTool("two", concurrent=True)
        model = FieldModel(used(50, calls(("a", "one"), ("b", "two"))), summaries=[used(60, says("short", after=5))])
        async with stage(model, one, two, policy=policy, **LONG) as scene:
            result = await scene.harness.turn(S, "go")
            assert result.outcome == "limited" and trio.current_time() == 6
            assert await outcomes(scene) == [CallOutcome.SUMMARIZED, CallOutcome.LIMITED] and not two.ran

    play(main)


def test_a_compaction_whose_first_trip_reached_the_limit_makes_no_second() -> None:
    """SES-16, SES-15: the transcript stays as it was."""

    async def main() -> None:
        model = FieldModel(
            says("so"), used(90, calls(("a", "work"))), summaries=[used(60, says("draft"))], context_window=100
        )
        async with stage(model, FieldTool("work"), usage_limit=100) as scene:
            await scene.harness.turn(S, "hello there")
            result = await scene.harness.turn(S, "go")
            assert result.outcome == "limited" and "150 of 100 tokens" in (result.error or "")
            assert [each.purpose for _, each in model.asked][2:] == [Purpose.COMPACTION_DRAFT]
            (told,) = scene.told(Compacted)
            assert "usage limit reached" in told.error and len(await scene.messages()) == 5

    play(main)


def test_a_run_has_used_what_all_its_turns_used() -> None:
    """SES-16, SES-21, RUN-5: input that ran inside it too, and what counts for its limit is the same sum."""

    async def main() -> None:
        model = FieldModel(used(10, says("one", after=5)), used(20, says("two")), used(40, says("three")))
        async with talking(model) as talk:
            signal = await talk.chat({"text": "go", "usage_limit": 30})
            await trio.sleep(1)
            await talk.say("more")
            await talk.settled(signal)
            await talk.quiet()
            (run,) = await talk.runs()
            assert (run.state, run.text, run.usage) == (RunState.DONE, "one", Usage(input_tokens=30))
            assert [each.outcome for each in talk.told(TurnEnded)] == ["ok", "ok"]

    play(main)


def test_input_that_a_run_over_its_limit_can_not_take_gets_a_run_of_its_own() -> None:
    """SES-16, SES-21: the first turn reached the limit, and its answer counts all the same."""

    async def main() -> None:
        model = FieldModel(used(40, says("one", after=5)), used(20, says("two")))
        async with talking(model) as talk:
            signal = await talk.chat({"text": "go", "usage_limit": 30})
            await trio.sleep(1)
            await talk.say("more")
            await talk.settled(signal)
            await talk.quiet()
            assert [(run.state, run.text, run.usage) for run in await talk.runs()] == [
                (RunState.DONE, "one", Usage(input_tokens=40)),
                (RunState.DONE, "two", Usage(input_tokens=20)),
            ]

    play(main)
