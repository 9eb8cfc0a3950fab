"""SES-2: a host that drops the context is not starved: what it reports is of the one request that is out."""

from __future__ import annotations

import pytest

from concorde_trio._sansio.model_events import Purpose, TextDelta
from concorde_trio.events import Compacted, ReplyDropped
from concorde_trio.messages import CallOutcome, Role
from tests.field.hosts import forgetful_host
from tests.field.stage import FieldModel, FieldTool, S, calls, play, says, stage


def test_every_kind_of_request_comes_back_without_its_context() -> None:
    """SES-2, SES-3, SES-19: a turn, a summary, both trips of a compaction, a call; and nothing of them is left over."""

    async def main() -> None:
        model = FieldModel(
            calls(("a", "work")),
            says("done"),
            summaries=[says("short", after=2), says("draft", after=2), says("all of it", after=2)],
            then=says("so"),
        )
        options = {"summarize_over": 100, "truncate_to": 20, "make_host": forgetful_host, "unload_after": 60.0}
        async with stage(model, FieldTool("work", output="x" * 500), **options) as scene:
            assert (await scene.harness.turn(S, "go")).text == "done"
            (result,) = [each for each in await scene.messages() if each.role is Role.TOOL]
            assert (result.outcome, result.text) == (CallOutcome.SUMMARIZED, "short")
            await scene.harness.compact(S)
            await scene.idle()
            assert [each.error for each in scene.told(Compacted)] == [None]
            assert (await scene.harness.turn(S, "next")).text == "so"
            assert not scene.told(ReplyDropped)
            assert scene.loop().unused, "nothing is taken for work that goes on"

    play(main)


def test_a_watcher_sees_no_summary_as_what_the_model_says() -> None:
    """SES-2: whatever the context was, a summary is no reply."""

    async def main() -> None:
        model = FieldModel(calls(("a", "work")), says("done"), summaries=[says("short")])
        options = {"summarize_over": 100, "truncate_to": 20, "make_host": forgetful_host}
        async with stage(model, FieldTool("work", output="x" * 500), **options) as scene:
            loop = await scene.harness.loop(S)
            with loop.watchers.watch(1000) as seen:
                await scene.harness.turn(S, "go")
                said = []
                while seen.statistics().current_buffer_used:
                    each = seen.receive_nowait()
                    said += [each.text] if isinstance(each, TextDelta) else []
            assert "done" in said and "short" not in said

    play(main)


@pytest.mark.parametrize("purpose", [None, Purpose.TURN, Purpose.SUMMARY])
def test_what_names_an_epoch_that_is_over_is_dropped_whatever_else_it_says(purpose: Purpose | None) -> None:
    """SES-2: once, and nothing that is out ends by it."""

    async def main() -> None:
        async with stage(FieldModel(says("so", after=50))) as scene:
            await scene.say("go")
            await scene.loop().ask(lambda: scene.loop().machine.request_over(77, purpose, None))
            assert len(scene.told(ReplyDropped)) == 1 and scene.status() == "model"
            await scene.idle()
            assert (await scene.texts())[-1] == "so"

    play(main)
