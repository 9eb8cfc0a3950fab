"""A gateway whose runtime keeps sessions: its door to them, the resources of input from outside, input of another process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from concorde_trio import FunctionRuntime, Gateway, InProcessRuntime, Prompt, ScriptedModel, SqliteStore
from concorde_trio._sansio.model_events import ModelRequest, ReplyEnd, TextDelta
from concorde_trio.conversations.outside import submit_from_outside
from concorde_trio.errors import InputConflict, UsageError, WrongState
from concorde_trio.messages import InputState
from concorde_trio.sessions.inputs import new_input
from concorde_trio.signals.store import RunFilter

pytestmark = pytest.mark.slow


def echo() -> ScriptedModel:
    """A model that says again what was said last."""

    def reply(request: ModelRequest) -> list[tuple[float, TextDelta | ReplyEnd]]:
        return [(0, TextDelta(f"you said: {request.messages[-1].text}")), (0, ReplyEnd())]

    return ScriptedModel(reply)


@asynccontextmanager
async def running(gateway: Gateway) -> AsyncIterator[Gateway]:
    """Serve it for a while."""
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        yield gateway
        gateway.stop()


async def test_input_from_outside_gets_the_resources_that_its_session_needs(tmp_path: Path) -> None:
    """SES-20: session_resources is a function of the session's name."""
    gateway = Gateway(
        store=str(tmp_path / "queue.db"),
        runtime=InProcessRuntime(model=echo()),
        session_resources=lambda name: [f"desk of {name}"],
    )
    with pytest.raises(WrongState, match="not open"):
        _ = gateway.sessions
    async with running(gateway):
        result = await gateway.sessions.turn("ann", "hello")
        assert result.text == "you said: hello"
        (run,) = await gateway.store.runs(RunFilter(session="ann"))
        assert run.resources == ("desk of ann",)


async def test_a_users_handler_for_input_takes_the_place_of_the_built_in_one(tmp_path: Path) -> None:
    """SES-20: registered before or after session_resources was said, it is theirs that counts."""
    gateway = Gateway(
        store=str(tmp_path / "queue.db"),
        runtime=InProcessRuntime(model=echo()),
        session_resources=lambda name: ["never"],
    )

    @gateway.handler("session.input")
    def on_input(signal: object) -> list[Prompt]:
        payload = signal.payload  # type: ignore[attr-defined]
        return [Prompt(session=payload["session"], text=payload["text"].upper(), resources=["mine"])]

    async with running(gateway):
        result = await gateway.sessions.turn("ann", "hello")
        assert result.text == "you said: HELLO"
        (run,) = await gateway.store.runs(RunFilter(session="ann"))
        assert run.resources == ("mine",)


async def test_a_runtime_without_sessions_has_no_door_to_them(tmp_path: Path) -> None:
    """SES-20: said where it is written."""

    async def agent(prompt: object) -> str:
        return "done"

    path = str(tmp_path / "queue.db")
    with pytest.raises(UsageError, match="FunctionRuntime keeps none"):
        Gateway(store=path, runtime=FunctionRuntime(agent), session_resources=lambda name: [])
    with pytest.raises(UsageError, match="a function of a session's name"):
        Gateway(store=path, runtime=InProcessRuntime(model=echo()), session_resources=["x"])  # type: ignore[arg-type]
    gateway = Gateway(store=path, runtime=FunctionRuntime(agent))
    with pytest.raises(UsageError, match="InProcessRuntime"):
        _ = gateway.sessions


async def send(path: Path, session: str, text: str, id: str | None = None) -> tuple[str, str | None, bool]:
    """Another process's submit: its store is its own."""
    store = SqliteStore(path)
    async with store.open():
        sent = await submit_from_outside(store, session, new_input(text, at=time.time(), id=id))
    return sent.receipt.id, sent.signal_id, sent.again


async def test_what_was_sent_while_nobody_served_is_the_next_workers(tmp_path: Path) -> None:
    """SES-20, SES-10a: one ledger row and its signal in one commit; delivered under the same id, once."""
    path = tmp_path / "queue.db"
    first, signal_id, again = await send(path, "ann", "hello", "mine")
    assert (first, again) == ("mine", False)
    assert await send(path, "ann", "hello", "mine") == ("mine", signal_id, True)
    with pytest.raises(InputConflict):
        await send(path, "ann", "something else", "mine")
    gateway = Gateway(store=str(path), runtime=InProcessRuntime(model=echo()))
    async with running(gateway):
        assert signal_id is not None
        assert (await gateway.wait_settled(signal_id)).state == "done"
        said = await gateway.sessions.store.messages("ann")
        assert [message.text for message in said] == ["hello", "you said: hello"]
        assert said[0].inputs[0].id == "mine"
        stored = await gateway.sessions.store.input("mine")
        assert stored is not None and stored.state is InputState.DELIVERED


async def test_what_another_process_sends_beside_a_worker_is_delivered_too(tmp_path: Path) -> None:
    """SES-20, SES-10a: though the session is in memory, which knows of no such input."""
    path = tmp_path / "queue.db"
    gateway = Gateway(store=str(path), runtime=InProcessRuntime(model=echo()))
    async with running(gateway):
        await gateway.sessions.turn("ann", "hello")
        input_id, signal_id, _ = await send(path, "ann", "and this")
        assert signal_id is not None
        assert (await gateway.wait_settled(signal_id)).state == "done"
        said = await gateway.sessions.store.messages("ann")
        assert [message.text for message in said[2:]] == ["and this", "you said: and this"]
        assert said[2].inputs[0].id == input_id
        stored = await gateway.sessions.store.input(input_id)
        assert stored is not None and stored.state is InputState.DELIVERED
        assert await gateway.sessions.store.unsettled_inputs() == []
