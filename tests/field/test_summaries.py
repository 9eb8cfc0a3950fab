"""F-32: whatever becomes of the summary model, the call has one result in bounded time, and the turn goes on."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from concorde_trio._sansio.model_events import Purpose, ReplyEnd, TextDelta
from concorde_trio.events import HoldExpired, ReplyDropped
from concorde_trio.messages import CallOutcome
from tests.field.hosts import deaf_host
from tests.field.stage import FieldModel, FieldTool, S, calls, fails, play, says, stage

OUTPUT = "".join(f"line {number}\n" for number in range(2_000))
SMALL: dict[str, Any] = {"summarize_over": 1_000, "truncate_to": 100}


class _LeftOut(str):
    """The output with its middle cut out, wherever all of it is said to be."""

    __slots__ = ()

    def __eq__(self, text: object) -> bool:
        first, last = f"{OUTPUT[:50]}\n[... {len(OUTPUT) - 100:,} characters left out", f" ...]\n{OUTPUT[-50:]}"
        return isinstance(text, str) and text.startswith(first) and text.endswith(last) and len(text) < 500

    __hash__ = str.__hash__


LEFT_OUT = _LeftOut("cut")


def tool() -> FieldTool:
    return FieldTool("work", 1.0, output=OUTPUT)


STALLS: list[Any] = [(5.0, TextDelta("so f"))]


@pytest.mark.parametrize(
    ("reply", "at", "outcome"),
    [
        pytest.param([], 181, "truncated", id="stalls from the start"),
        pytest.param(STALLS, 186, "truncated", id="stalls after 5 s"),
        pytest.param(says("late", after=181), 181, "truncated", id="181 s late"),
        pytest.param(fails(500, after=2), 3, "truncated", id="errors at 2 s"),
        pytest.param(says("", after=2), 3, "truncated", id="empty"),
        pytest.param(says(" \n ", after=2), 3, "truncated", id="blank"),
        pytest.param(says("x" * (len(OUTPUT) + 1), after=2), 3, "truncated", id="longer"),
        pytest.param(
            [*((60.0, TextDelta("x")) for _ in range(4)), (0.0, ReplyEnd())], 241, "summarized", id="moves for 240 s"
        ),
        pytest.param(says("short", after=2), 3, "summarized", id="good"),
    ],
)
def test_a_long_output_has_one_result_whatever_becomes_of_its_summary(reply: Any, at: float, outcome: str) -> None:
    """F-32, SES-6, SES-14, LSE-3: at 180 s without progress, or at once; cut in the middle, with sizes, or the summary

    unchanged. The turn goes on, and input waited no longer than that.
    """

    async def main() -> None:
        model = FieldModel(calls(("a", "work")), says("so"), summaries=[reply])
        async with stage(model, tool(), **SMALL) as scene:
            await scene.say("go")
            await trio.sleep_until(2)
            queued = await scene.say("by the way")
            await trio.sleep_until(at + 30)
            _, _, result, joined, answer = await scene.messages()
            assert result.outcome is CallOutcome(outcome) and answer.text == "so"
            summary = {241: "xxxx", 3: "short"}.get(int(at)) if outcome == "summarized" else None
            assert (summary or LEFT_OUT) == result.text
            assert [each.id for each in joined.inputs] == [queued]
            assert scene.model.times()[-1] == at, "the next request goes out when the result stands"
            expired = [(each.what, each.reason) for each in scene.told(HoldExpired)]
            assert expired == ([("summarizing", "progress")] if outcome == "truncated" and at > 100 else [])

    play(main)


def test_a_summary_that_comes_too_late_is_dropped_by_its_epoch() -> None:
    """F-32, SES-2, SES-6: from a host that can't stop it, at 181 s; the result stays as it was cut."""

    async def main() -> None:
        model = FieldModel(calls(("a", "work")), says("so"), summaries=[says("late", after=181)])
        async with stage(model, tool(), make_host=deaf_host, **SMALL) as scene:
            await scene.harness.turn(S, "go")
            assert trio.current_time() == 181
            await trio.sleep_until(300)
            assert LEFT_OUT == (await scene.messages())[2].text
            assert [(each.what, each.epoch) for each in scene.told(ReplyDropped)] == [("summary", 2)]

    play(main)


def test_several_long_outputs_are_summarised_one_after_another() -> None:
    """F-32, SES-14: one stalls and is cut, the next is summarised; each call's result is its own, in its place."""

    async def main() -> None:
        work = FieldTool("work", 1.0, output=OUTPUT, concurrent=True)
        model = FieldModel(
            calls(("a", "work"), ("b", "work"), ("c", "work")),
            says("so"),
            summaries=[[], says("short b", after=1), fails(500)],
        )
        async with stage(model, work, **SMALL) as scene:
            await scene.harness.turn(S, "go")
            results = (await scene.messages())[2:5]
            assert [LEFT_OUT, LEFT_OUT] == [each.text for each in results if each.text != "short b"]
            assert [each.call_id for each in results] == ["a", "b", "c"]
            assert [at for at, each in scene.model.asked if each.purpose is Purpose.SUMMARY] == [1, 181, 182]

    play(main)


def test_an_interrupt_during_a_summary_keeps_what_the_tool_gave() -> None:
    """F-32, SES-12: finished results are kept: the output is cut, at once, and the call ended as a finished one."""

    async def main() -> None:
        model = FieldModel(calls(("a", "work")), says("so"), summaries=[[]])
        async with stage(model, tool(), **SMALL) as scene:
            await scene.say("go")
            await trio.sleep_until(10)
            assert scene.status() == "summarizing" and scene.loop().machine.waiting_on().on == "summary"
            await scene.harness.interrupt(S)
            assert trio.current_time() == 10 and scene.status() == "waiting_for_input"
            result = (await scene.messages())[2]
            assert result.outcome is CallOutcome.TRUNCATED and LEFT_OUT == result.text
            assert (await scene.harness.turn(S, "next")).outcome == "ok"

    play(main)
