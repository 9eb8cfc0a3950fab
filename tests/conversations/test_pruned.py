"""STP-5: a session that is pruned while it is in memory begins anew, and the outputs of one that is gone go with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio import InProcessRuntime, MemoryStore, Prompt, SessionHarness, open_worker
from concorde_trio._sansio.session_changes import AddInput
from concorde_trio.conversations.views import session_view
from concorde_trio.messages import Input
from concorde_trio.models.scripted import ScriptedModel
from concorde_trio.sessions.output_folders import output_folder, remove_outputs
from concorde_trio.testing.session_store_checks.samples import save
from tests.field.stage import FieldModel, FieldTool, calls, play, says


def test_a_session_that_was_pruned_in_memory_begins_anew() -> None:
    """STP-5, SES-17: what the model sees is what is stored, and what it used is counted anew."""

    async def main() -> None:
        store, model = MemoryStore(), FieldModel(then=says("so"))
        harness = SessionHarness(store=store, model=model, wall_clock=trio.current_time)
        async with harness.open():
            await harness.turn("ann", "one")
            await trio.sleep(10)
            assert await store.prune_sessions(trio.current_time()) == 1
            loop = harness.loaded("ann")
            assert loop is not None, "it is younger than unload_after"
            shown: Any = await session_view(
                "ann", sessions=store, signals=store, loop=loop, why=lambda run: None, mask=lambda value: value, now=1.0
            )
            assert shown["created_at"] is None and shown["updated_at"] is None
            await harness.turn("ann", "two")
            await harness.turn("ann", "three")
            texts = [[message.text for message in request.messages] for _, request in model.asked]
            assert texts == [["one"], ["two"], ["two", "so", "three"]]
            stored = await store.messages("ann", limit=10)
            assert [each.seq for each in stored] == [1, 2, 3, 4]
        async with harness.open():
            await harness.turn("ann", "four")
            assert len(model.asked[-1][1].messages) == 5, "and so it is after a restart"

    play(main)


@pytest.mark.parametrize("how", ["a prompt", "an input"])
def test_a_session_of_a_worker_that_was_pruned_in_memory_begins_anew(how: str) -> None:
    """STP-5, SES-20: the worker prunes by its schedule what its own sessions still have in memory."""

    async def main() -> None:
        model = FieldModel(then=says("so"))
        runtime = InProcessRuntime(model=model, wall_clock=trio.current_time)
        handlers = {"chat": lambda signal: [Prompt(session="ann", text=signal.payload)]}
        async with open_worker(MemoryStore(), runtime, handlers, wall_clock=trio.current_time, sweep=None) as worker:
            for text in ("one", "two"):
                if how == "a prompt":
                    await worker.wait_settled(await worker.emit("chat", text))
                else:
                    await runtime.sessions.turn("ann", text)
                await trio.sleep(10)
                assert (await worker.prune(0)).sessions == 1
        assert [[message.text for message in request.messages] for _, request in model.asked] == [["one"], ["two"]]

    play(main)


LONG = "Ä" * 60
"""A name whose folder has a hash in it."""


async def test_outputs_go_with_their_session_and_no_others(tmp_path: Path) -> None:
    """STP-5, SES-6: of sessions that are gone, and of an earlier life of one that was begun anew."""
    store = MemoryStore()
    async with store.open():
        await store.apply(
            [save("ann", at=1.0), save("bob", at=1.0), AddInput(session="new", input=Input(id="i", text="hi", at=5e8))]
        )
        for name in ("ann", "bob", "gone", LONG, "new"):
            folder = output_folder(tmp_path, name)
            folder.mkdir(exist_ok=True)
            for number, at in enumerate((4e8, 6e8)):
                (folder / f"{number}.txt").write_text("all of it")
                os.utime(folder / f"{number}.txt", (at, at))
        just_now = output_folder(tmp_path, "gone") / "just_now.txt"
        just_now.write_text("written at this instant")
        (tmp_path / "somebody else's").mkdir()
        (tmp_path / "somebody else's" / "file").write_text("x")
        os.utime(tmp_path / "somebody else's" / "file", (1, 1))
        assert await remove_outputs(tmp_path, store) == 5
    left = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()}
    kept = {f"{name}/{number}.txt" for name in ("ann", "bob") for number in (0, 1)}
    assert left == kept | {"gone/just_now.txt", "new/1.txt", "somebody else's/file"}
    assert not output_folder(tmp_path, LONG).joinpath("0.txt").exists()
    assert await remove_outputs(tmp_path / "nowhere", store) == 0


async def test_a_worker_that_prunes_removes_the_outputs_too(tmp_path: Path) -> None:
    """STP-5: an output that was cut is whole in its session's folder until then."""
    model = ScriptedModel([calls(("a", "work")), says("so")])
    tool = FieldTool("work", 0.0, output="x" * 500)
    runtime = InProcessRuntime(
        model=model,
        tools=[tool],
        outputs=tmp_path,
        summarize_over=100,
        summary_model=ScriptedModel([], summaries=[says("short")]),
    )
    async with open_worker(MemoryStore(), runtime, {}) as worker:
        await runtime.sessions.turn("ann", "go")
        (file,) = (tmp_path / "ann").iterdir()
        assert file.read_text() == "x" * 500
        os.utime(file, (1, 1))
        while not (await worker.prune(0)).sessions:  # its run ends
            await trio.sleep(0.01)
        while (tmp_path / "ann").exists():
            await trio.sleep(0.01)
