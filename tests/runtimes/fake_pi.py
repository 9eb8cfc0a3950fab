"""A pi that does as a test says: its side of the RPC protocol over streams in memory, one for each connection."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import trio
from trio.testing import memory_stream_pair

from concorde_trio.runtimes.pi import PiRuntime

Step: TypeAlias = dict[str, Any] | bytes | float
"""A record, raw bytes, or seconds of silence (infinity: for ever; below zero: the connection is closed)."""

USAGE = {"input": 100, "output": 7, "cacheRead": 20, "cacheWrite": 0, "cost": {"total": 0.25}}


def reply(text: str = "all done", stop: str = "stop", usage: Any = USAGE, **more: Any) -> dict[str, Any]:
    """A message of the model."""
    content = [{"type": "text", "text": text}] if text else []
    return {"role": "assistant", "content": content, "usage": usage, "stopReason": stop, **more}


def said(message: dict[str, Any]) -> list[Step]:
    """The events of one message."""
    return [{"type": "message_start", "message": {**message}}, {"type": "message_end", "message": message}]


def delta(text: str = "x") -> dict[str, Any]:
    """A piece of a reply."""
    return {"type": "message_update", "message": {}, "assistantMessageEvent": {"type": "text_delta", "delta": text}}


def tool(call: str = "c1", name: str = "bash") -> dict[str, Any]:
    """A tool begins."""
    return {"type": "tool_execution_start", "toolCallId": call, "toolName": name, "args": {}}


def tool_ended(call: str = "c1") -> dict[str, Any]:
    """And ends."""
    return {"type": "tool_execution_end", "toolCallId": call, "toolName": "bash", "result": {}, "isError": False}


START: list[Step] = [{"type": "agent_start"}, {"type": "turn_start"}]


def end(*messages: dict[str, Any], **more: Any) -> list[Step]:
    """The events after the last message, which repeat it."""
    last = messages[-1] if messages else {}
    return [{"type": "turn_end", "message": last}, {"type": "agent_end", "messages": list(messages), **more}]


def turn(*messages: dict[str, Any]) -> list[Step]:
    """A whole turn, as pi 0.73 tells it."""
    user = said({"role": "user", "content": "hello"})
    return [*START, *user, *(step for one in messages for step in said(one)), *end(*messages)]


WHOLE = turn(reply())


class FakePi:
    """``steps``: what it says after each prompt, or after the one with that text. ``answers``: its answer to a command, by type; None: it gives none.

    ``heard`` are the commands of each connection, ``closed`` how many connections have ended. ``piece``: bytes that it
    sends at a time. ``cut``: after how many bytes it hangs up. ``whole``: how many it had sent with its last agent_end.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        steps: Sequence[Step] | Callable[[str], Sequence[Step]] = WHOLE,
        **answers: dict[str, Any] | None,
    ) -> None:
        self.steps = steps
        self.answers = answers
        self.heard: list[list[dict[str, Any]]] = []
        self.closed = 0
        self.piece: int | None = None
        self.cut: int | None = None
        self.sent = 0
        self.whole = 0
        self._nursery = nursery
        self._one_line_at_a_time = trio.Lock()

    def runtime(self, **options: Any) -> PiRuntime:
        """A Runtime that drives it."""
        return PiRuntime(self.connect, sessions="/srv/sessions", **options)

    async def connect(self) -> trio.abc.Stream:
        """A new connection."""
        await trio.lowlevel.checkpoint()
        ours, theirs = memory_stream_pair()
        commands: list[dict[str, Any]] = []
        self.heard.append(commands)
        self._nursery.start_soon(self._serve, theirs, commands)
        return ours

    def kinds(self, connection: int = -1) -> list[str]:
        """The types of the commands of one connection."""
        return [command["type"] for command in self.heard[connection]]

    async def _serve(self, stream: trio.abc.Stream, commands: list[dict[str, Any]]) -> None:
        self.sent = 0
        buffer = b""
        state: dict[str, Any] = {"isStreaming": False, "isCompacting": False, "pendingMessageCount": 0}
        try:
            async with trio.open_nursery() as nursery:
                while data := await stream.receive_some():
                    *lines, buffer = (buffer + data).split(b"\n")
                    for line in lines:
                        command = json.loads(line)
                        commands.append(command)
                        await self._answer(stream, command, state)
                        if command["type"] == "prompt" and "prompt" not in self.answers:
                            nursery.start_soon(self._play, stream, state, command["message"])
                nursery.cancel_scope.cancel()
        except* (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.closed += 1
            await trio.aclose_forcefully(stream)

    async def _answer(self, stream: trio.abc.Stream, command: dict[str, Any], state: dict[str, Any]) -> None:
        kind = command["type"]
        if kind == "extension_ui_response":
            return
        if kind == "switch_session":
            state["sessionFile"] = command["sessionPath"]
        data = {"switch_session": {"cancelled": False}, "get_state": state}.get(kind)
        answer = {"success": True, "data": data}
        if kind in self.answers:
            changed = self.answers[kind]
            if changed is None:
                return
            answer = {"success": True, "data": {**(data or {}), **changed}, **changed}
        await self._send(stream, {"id": command["id"], "type": "response", "command": kind, **answer})

    async def _play(self, stream: trio.abc.Stream, state: dict[str, Any], text: str) -> None:
        state["isStreaming"] = True
        for step in self.steps(text) if callable(self.steps) else self.steps:
            if isinstance(step, int | float):
                if step < 0:
                    await stream.aclose()
                    return
                await trio.sleep(step)
                continue
            if isinstance(step, dict) and step.get("type") == "agent_start":
                state["isStreaming"] = True
            await self._send(stream, step)
            if b'"agent_end"' in (step if isinstance(step, bytes) else json.dumps(step).encode()):
                state["isStreaming"] = False
                self.whole = self.sent

    async def _send(self, stream: trio.abc.Stream, step: dict[str, Any] | bytes) -> None:
        data = (
            step
            if isinstance(step, bytes)
            else json.dumps(step, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        )
        size = self.piece or len(data)
        async with self._one_line_at_a_time:
            if self.cut is not None and self.sent + len(data) > self.cut:
                await stream.send_all(data[: self.cut - self.sent])
                await stream.aclose()
                return
            self.sent += len(data)
            for place in range(0, len(data), size):
                await stream.send_all(data[place : place + size])
