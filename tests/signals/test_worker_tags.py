"""TAG at the worker's door: which run a request comes from, and what is shown of tags."""

from __future__ import annotations

import json
import logging

import pytest
import trio
import trio.testing

from concorde_trio.errors import InvalidTag
from concorde_trio.records import RunInfo, RunOutcome, RunPrompt, RunState
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock
TAG = "T-0123456789abcdef"
OTHER = "U-0123456789abcdef"


async def test_a_tag_is_live_while_its_run_runs_and_at_no_other_time(autojump_clock: Clock) -> None:
    """TAG-1: not while it waits, not during post, not after."""
    stage = Stage()
    async with stage.serve() as worker:
        await stage.emit("free", run("R1", 5, session="s"))
        signal_id = await stage.emit("held", run("R2", 5, session="s", tag=TAG, context={"a": [1]}), post=5)
        seen = []
        for _ in range(5):
            await trio.sleep(2.5)
            seen.append(worker.attribute([TAG]))
            await trio.sleep(0.5)
    info = RunInfo(id=f"{signal_id}-1", signal_id=signal_id, session="s", context={"a": [1]})
    assert seen == [None, info, info, None, None]


async def test_a_tag_dies_in_the_instant_in_which_its_runtime_returns(autojump_clock: Clock) -> None:
    """TAG-1: before the worker has even looked at the end, a request that comes late is nobody's."""
    stage, seen = Stage(), []

    async def settle() -> None:
        await trio.testing.wait_all_tasks_blocked()
        if stage.worker is not None and stage.noted("start"):
            row = (await stage.runs())["R1"]
            seen.append((stage.noted("end"), row.state, stage.worker.attribute([TAG]) is not None))

    async with stage.serve(settle=settle):
        await stage.emit("free", run("R1", 5, tag=TAG))
        await stage.all_settled()
    assert (["R1"], RunState.RUNNING, False) in seen
    assert not [each for each in seen if each[0] and each[2]]


@pytest.mark.parametrize(
    "values", [[], [""], ["nope"], [TAG, TAG], [TAG, OTHER], [f"{TAG},{OTHER}"], [f" {TAG}"], [TAG.lower()], [TAG[:-1]]]
)
async def test_anything_but_one_live_tag_is_attributed_to_nothing(autojump_clock: Clock, values: list[str]) -> None:
    """TAG-3: no fallback, not even with a single run in flight."""
    stage = Stage()
    async with stage.serve() as worker:
        assert worker.attribute([TAG]) is None
        await stage.emit("free", run("R1", 5, tag=TAG))
        await trio.sleep(1)
        assert worker.attribute([TAG]) is not None
        assert worker.attribute(values) is None


async def test_a_tag_that_is_live_elsewhere_fails_the_later_run(autojump_clock: Clock) -> None:
    """TAG-2: which never started; the other keeps its identity, and those behind the refused one go on."""
    stage = Stage()
    async with stage.serve() as worker:
        first = await stage.emit("free", run("R1", 5, tag=TAG))
        second = await stage.emit("held", run("R2", 1, tag=TAG, session="s"), run("R3", 1, session="s"))
        record = await worker.wait_settled(second)
        assert worker.attribute([TAG]).id == f"{first}-1"  # type: ignore[union-attr]
        refused = (await stage.runs())["R2"]
        await stage.all_settled()
    assert (refused.state, refused.started_at, refused.ended_at, refused.tag) == (RunState.FAILED, None, 0, None)
    assert record.error == "its tag is live on another run; make a new tag for each run"
    assert stage.when("start", "R3") == [0] and "R2" not in stage.noted("start")


async def test_two_runs_of_one_tag_in_one_instant_first_come_first_served(
    autojump_clock: Clock, some_seed: int
) -> None:
    """TAG-2, LCK-5: in emission order; and a tag can be used again once its run has ended."""
    stage = Stage()
    async with stage.serve(settle=trio.lowlevel.checkpoint):
        await stage.emit("free", run("R1", 5, tag=TAG), run("R2", 5, tag=TAG), run("R3", 1, session="s"))
        await stage.emit("free", run("R4", 5, tag=TAG, session="s"))
        await stage.all_settled()
        again = await stage.emit("free", run("R5", 5, tag=TAG))
        await stage.worker.wait_settled(again)  # type: ignore[union-attr]
    assert await stage.states() == {"R1": "done", "R2": "failed", "R3": "done", "R4": "failed", "R5": "done"}


@pytest.mark.parametrize(
    "tag", ["", "short", "x" * 129, "with,comma-and-more", "with space-and-more", "ünïcode-ünïcode-ü", 7]
)
async def test_a_bad_tag_fails_its_run_and_nothing_else(autojump_clock: Clock, tag: object) -> None:
    """TAG-6: its siblings run, and what it would have locked is free."""
    stage = Stage()
    async with stage.serve() as worker:
        signal_id = await stage.emit("held", run("R1", 5, tag=tag, session="s"), run("R2", 1, session="s"))
        record = await worker.wait_settled(signal_id)
    runs = await stage.runs()
    assert (runs["R1"].state, runs["R1"].started_at, runs["R2"].state) == (RunState.FAILED, None, RunState.DONE)
    assert "new_tag() makes one" in (record.error or "")
    assert InvalidTag.__doc__ and stage.when("start", "R2") == [0]


async def test_a_context_that_json_cannot_hold_fails_its_run(autojump_clock: Clock) -> None:
    """REC-3: when it is queued; the place is named."""
    from concorde_trio.records import Prompt

    stage = Stage()
    handlers = {
        "a": lambda signal: [
            Prompt(text='["R1", 1, "ok"]', context={"who": {1, 2}}),
            Prompt(text='["R2", 1, "ok"]', context={"who": [1, 2]}),
        ]
    }
    async with stage.serve(handlers=handlers) as worker:
        record = await worker.wait_settled(await worker.emit("a"))
    assert await stage.states() == {"R1": "failed", "R2": "done"}
    assert "context.who" in (record.error or "")


async def test_a_tag_is_erased_from_all_that_is_kept_when_its_run_ends(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """TAG-4: prompt, context, error, text, events and logs; stored until then, for a crash (REC-3)."""
    caplog.set_level(logging.DEBUG, logger="concorde_trio")
    stage = Stage()
    store = stage.store

    async def leak(prompt: RunPrompt) -> RunOutcome:
        await trio.sleep(1)
        if "raise" in prompt.text:
            raise ValueError(f"my tag is {TAG}!")
        return RunOutcome.failed(f"I am {OTHER}", text=f"they call me {OTHER}{OTHER}")

    stage.run = leak  # type: ignore[method-assign]
    async with stage.serve() as worker:
        await stage.emit(
            "held",
            {"text": json.dumps(["R1", TAG, "raise"]), "tag": TAG, "context": {TAG: [f"<{TAG}>"]}},
            {"text": json.dumps(["R2", OTHER]), "tag": OTHER},
        )
        await trio.sleep(0.5)
        assert sorted(await store.tags()) == [TAG, OTHER]
        assert TAG in (await stage.runs())["R1"].prompt
        assert worker.mask(f"{TAG} or {OTHER}") == "[run tag] or [run tag]"
        await stage.all_settled()
        assert await store.tags() == []
    kept = repr([await stage.runs(), stage.events, stage.outcomes]) + "".join(
        each.getMessage() for each in caplog.records
    )
    kept += repr([record.error for record in (await stage.signals()).values()])
    assert TAG not in kept and OTHER not in kept and "[run tag]" in kept
    assert "my tag is [run tag]!" in caplog.text
    runs = await stage.runs()
    assert runs["R1"].context == {"[run tag]": ["<[run tag]>"]}
    assert runs["R2"].text == "they call me [run tag][run tag]"


@pytest.mark.parametrize("how", ["cancel", "refused"])
async def test_a_tag_of_a_run_that_never_started_is_erased_too(autojump_clock: Clock, how: str) -> None:
    """TAG-4."""
    stage = Stage()
    async with stage.serve() as worker:
        await stage.emit("free", run("R1", 5, session="s", tag=OTHER if how == "cancel" else TAG))
        text = json.dumps(["R2", TAG])
        second = await stage.emit("free", {"text": text, "tag": TAG, "session": "s" if how == "cancel" else None})
        await trio.sleep(1)
        if how == "cancel":
            await worker.cancel_run(f"{second}-1")
            await worker.wait_settled(second)
            assert worker.mask(TAG) == TAG
        run_row = await worker.store.run(f"{second}-1")
    assert run_row is not None and (run_row.tag, run_row.prompt) == (None, '["R2", "[run tag]"]')


async def test_an_event_never_carries_the_live_tag_of_another_run(autojump_clock: Clock) -> None:
    """TAG-4: an agent that met it may write it into its error; the error is stored, and masked in what is told."""
    stage = Stage()

    async def quote(prompt: RunPrompt) -> RunOutcome:
        await trio.sleep(5 if "R1" in prompt.text else 1)
        return RunOutcome.failed(f"I saw {TAG}")

    stage.run = quote  # type: ignore[method-assign]
    async with stage.serve() as worker:
        await stage.emit("free", run("R1", tag=TAG), run("R2", session=f"for {OTHER}"))
        second = await stage.emit("free", run("R3", session=f"for {TAG}"))
        await worker.wait_settled(second)
        assert "I saw [run tag]" in repr(stage.events) and "for [run tag]" in repr(stage.events)
        assert TAG not in repr(stage.events) and f"for {OTHER}" in repr(stage.events)
        await stage.all_settled()
