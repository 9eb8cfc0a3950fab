"""F-26: input during a compaction waits for the boundary after it, and runs whatever became of it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from concorde_trio._sansio.model_events import Purpose, UsageReport
from concorde_trio._sansio.session_compaction import GO_ON
from concorde_trio.events import Compacted, TurnEnded
from concorde_trio.messages import Role
from concorde_trio.records import Usage
from tests.field.ledger import LedgerStore
from tests.field.stage import FieldModel, FieldTool, Reply, S, Scene, calls, fails, play, says, stage

DRAFT, FINAL = Purpose.COMPACTION_DRAFT, Purpose.COMPACTION_FINAL
SLOW: list[Reply] = [says("draft", after=20), says("all of it", after=20)]


def used(tokens: int, reply: Any) -> Any:
    return [(0.0, UsageReport(Usage(input_tokens=tokens))), *reply]


async def some_history(scene: Scene) -> None:
    for number in range(3):
        await scene.harness.turn(S, f"question {number}")


def purposes(scene: Scene) -> list[Purpose]:
    return [each.purpose for _, each in scene.model.asked]


@pytest.mark.parametrize("fails_at", [None, 1, 2])
def test_input_during_a_compaction_from_idle_is_the_first_turn_after_it(fails_at: int | None) -> None:
    """F-26, SES-15: asked for by a person, from idle, 40 s; input at 1 s is the first turn after, on the new history, with

    its id; if a trip fails, on the old one. Asked for twice, it is done once.
    """

    async def main() -> None:
        trips = list(SLOW)
        if fails_at is not None:
            trips[fails_at - 1 :] = [fails(500, after=1)]
        async with stage(FieldModel(then=says("so"), summaries=trips)) as scene:
            await some_history(scene)
            before = await scene.messages()
            await scene.harness.compact(S)
            await scene.harness.compact(S)
            await trio.sleep_until(1)
            assert fails_at == 1 or (scene.status() == "compacting" and scene.loop().machine.waiting_on().left == 299)
            mine = await scene.say("and now?")
            await scene.harness.compact(S) if fails_at is None else None
            await scene.idle()
            last = scene.model.sent()[-1].messages
            assert [each.id for each in last[-1].inputs] == [mine]
            if fails_at is None:
                assert [each.role for each in last][:1] == [Role.SUMMARY] and last[0].text == "all of it"
                assert purposes(scene)[3:] == [DRAFT, FINAL, Purpose.TURN] and scene.model.times()[-1] == 40
            else:
                assert last[:-1] == tuple(before), "a failure leaves the transcript as it was"
            assert len(scene.told(Compacted)) == 1 and scene.told(TurnEnded)[-1].outcome == "ok"

    play(main)


@pytest.mark.parametrize("how", ["by itself", "asked for"])
@pytest.mark.parametrize("fails_at", [None, 1, 2])
def test_input_during_a_compaction_inside_a_turn_joins_it_afterwards(how: str, fails_at: int | None) -> None:
    """F-26, SES-15, SES-10: near the window, or asked for during a call; the input comes right after the compaction, before

    the next request. What the compaction keeps is the last message of a person, so the turn goes on from it.
    """

    async def main() -> None:
        trips = list(SLOW)
        if fails_at is not None:
            trips[fails_at - 1 :] = [fails(500, after=1)]
        wanted = calls(("a", "work"))
        model = FieldModel(
            says("so"),
            used(900, wanted) if how == "by itself" else wanted,
            summaries=trips,
            then=says("so"),
            context_window=1_000,
        )
        async with stage(model, FieldTool("work", 10.0)) as scene:
            await scene.harness.turn(S, "question " * 20)
            start = trio.current_time()
            first = await scene.say("go")
            await trio.sleep(5)
            if how == "asked for":
                await scene.harness.compact(S)
            await trio.sleep_until(start + 10.5)
            assert scene.status() == "compacting"
            mine = await scene.say("and now?")
            await scene.idle()
            last = scene.model.sent()[-1].messages
            assert [each.id for each in last[-1].inputs] == [mine]
            assert (last[0].role is Role.SUMMARY) == (fails_at is None)
            assert [first] in [[each.id for each in message.inputs] for message in last], "the last message of a person"
            ended = scene.told(TurnEnded)
            assert [each.outcome for each in ended] == ["ok", "ok"] and len(scene.told(Compacted)) == 1

    play(main)


def test_a_compaction_by_itself_before_the_first_request_of_a_turn() -> None:
    """F-26, SES-15: the transcript came near the window in the turn before; input meanwhile joins, and the ids are all there."""

    async def main() -> None:
        model = FieldModel(used(900, says("so")), summaries=list(SLOW), then=says("so"), context_window=1_000)
        async with stage(model) as scene:
            await scene.harness.turn(S, "question " * 20)
            one = await scene.say("one")
            await trio.sleep_until(1)
            two = await scene.say("two")
            await scene.idle()
            assert purposes(scene) == [Purpose.TURN, DRAFT, FINAL, Purpose.TURN]
            last = scene.model.sent()[-1].messages
            assert last[0].role is Role.SUMMARY
            assert [each.id for message in last for each in message.inputs] == [one, two]

    play(main)


@pytest.mark.parametrize("turn", [False, True])
def test_a_compaction_that_stalls_ends_at_its_deadline_and_input_runs(turn: bool) -> None:
    """F-26, SES-15, LSE-3: one lease for both trips, touched between them; 300 s without progress end it."""

    async def main() -> None:
        trips: list[Reply] = [says("draft", after=200), []]
        model = FieldModel(used(900, says("so")), summaries=trips, then=says("so"), context_window=1_000)
        async with stage(model, compact_at=0.8 if turn else None) as scene:
            await scene.harness.turn(S, "question " * 20)
            if turn:
                await scene.say("one")
            else:
                await scene.harness.compact(S)
            await trio.sleep_until(10)
            two = await scene.say("two")
            await scene.idle()
            assert trio.current_time() == 500, "the second trip began at 200 s and had its 300 s"
            last = scene.model.sent()[-1].messages
            assert last[0].role is Role.USER and [each.id for each in last[-1].inputs] == [two]

    play(main)


def test_an_interrupt_ends_a_compaction_and_leaves_the_transcript() -> None:
    """F-26, SES-12, SES-15: what waited runs next, on the old history."""

    async def main() -> None:
        async with stage(FieldModel(then=says("so"), summaries=list(SLOW))) as scene:
            await some_history(scene)
            before = await scene.texts()
            await scene.harness.compact(S)
            await trio.sleep_until(1)
            await scene.say("and now?")
            assert await scene.harness.interrupt(S)
            await scene.idle()
            assert trio.current_time() == 1 and await scene.texts() == [*before, "and now?", "so"]

    play(main)


def test_a_compacted_session_goes_on_from_its_summary_after_a_restart() -> None:
    """F-26, SES-15, SES-17: the first request of the next process is the summary and what it kept."""

    async def main() -> None:
        store = LedgerStore()
        async with stage(FieldModel(then=says("so"), summaries=list(SLOW)), store=store) as scene:
            await some_history(scene)
            await scene.harness.compact(S)
            await scene.idle()
        async with stage(FieldModel(then=says("so")), store=store) as scene:
            await scene.harness.turn(S, "next")
            first = scene.model.sent()[0].messages
            assert first[0].role is Role.SUMMARY and first[-1].text == "next" and len(first) < 6

    play(main)


@pytest.mark.parametrize("output", ["long", "short"])
def test_a_summary_of_work_for_the_request_that_stays_says_so(output: str) -> None:
    """SES-15: inside a turn. The last message of a person survives; where what was done for it is more than half of all, that

    is in the summary, which stands before it: who summarises sees the request in its place, and who goes on is told not to
    begin anew. Where it is less, it survives as well.
    """

    async def main() -> None:
        work = FieldTool("work", 1.0, output="x" * (900 if output == "long" else 9))
        model = FieldModel(
            says("so"), used(900, calls(("a", "work"))), says("done"), summaries=list(SLOW), context_window=1_000
        )
        store = LedgerStore()
        async with stage(model, work, store=store) as scene:
            await scene.harness.turn(S, "question " * 20)
            assert (await scene.harness.turn(S, "do it")).text == "done"
            draft, final = scene.model.sent(purpose=DRAFT)[0], scene.model.sent(purpose=FINAL)[0]
            roles = [each.role for each in draft.messages[:-1]]
            first = [Role.USER, Role.ASSISTANT]
            last = scene.model.sent()[-1].messages
            if output == "long":
                assert roles == [*first, Role.USER, Role.ASSISTANT, Role.TOOL] and draft.messages[2].text == "do it"
                assert final.messages[:-1] == draft.messages[:-1]
                for trip in (draft, final):
                    assert "stays in the conversation" in trip.messages[-1].text
                assert [each.role for each in last] == [Role.SUMMARY, Role.USER]
                assert last[0].text == "all of it" + GO_ON and last[1].text == "do it"
            else:
                assert roles == first and "stays in the conversation" not in draft.messages[-1].text
                assert [each.role for each in last] == [Role.SUMMARY, Role.USER, Role.ASSISTANT, Role.TOOL]
                assert last[0].text == "all of it"
        async with stage(FieldModel(then=says("so")), store=store) as scene:
            await scene.harness.turn(S, "next")
            again = scene.model.sent()[0].messages
            assert again[: len(last)] == last and again[-1].text == "next"

    play(main)
