"""A talk at a terminal: three tasks, for what comes from the session, what is typed, and Ctrl-C.

The law: the terminal stays in its own line mode, so editing is the system's; a line is taken when it is complete. A talk
ends by itself only when the worker does.
"""

from __future__ import annotations

import codecs
import os
import signal
import sys
import uuid
from collections import deque

import click
import trio

from concorde_trio.cli.client import open_client
from concorde_trio.cli.talk_screen import TalkScreen
from concorde_trio.client.client import Client
from concorde_trio.client.wire import EventReader
from concorde_trio.errors import ConcordeError, ServerGone, UnknownId
from concorde_trio.server.endpoint import Endpoint

LEFT_BY_CTRL_C = 128 + signal.SIGINT
YES, NO = ("y", "yes"), ("n", "no")


def talk(endpoint: Endpoint, name: str, sender: str | None) -> int:
    """Talk until the person leaves; the exit status."""
    return trio.run(_talk, endpoint, name, sender)


async def _talk(endpoint: Endpoint, name: str, sender: str | None) -> int:
    async with open_client(endpoint) as client:
        return await Talk(client, name, sender).run()


class Talk:
    """One person and one session."""

    def __init__(self, client: Client, name: str, sender: str | None) -> None:
        self._client = client
        self._name = name
        self._sender = sender
        self._screen = TalkScreen()
        self._status = 0
        self._leaving = False
        self._failure: ConcordeError | None = None

    async def run(self) -> int:
        """Talk."""
        async with self._client.watch(self._name) as events, trio.open_nursery() as nursery:
            await nursery.start(self._heed_ctrl_c, nursery.cancel_scope)
            nursery.start_soon(self._hear, events, nursery.cancel_scope)
            nursery.start_soon(self._read, nursery.cancel_scope)
        if self._failure is not None:
            raise self._failure
        self._screen.farewell(self._name)
        return self._status

    async def _hear(self, events: EventReader, over: trio.CancelScope) -> None:
        try:
            async for event in events:
                self._screen.show(event.name, event.data)
                if event.name == "end":
                    raise self._gone(event.data["reason"])
            raise self._gone("it is stopping")
        except ConcordeError as error:
            self._screen.line()
            self._failure = error
            over.cancel()

    def _gone(self, why: str) -> ServerGone:
        return ServerGone(f"the worker at {self._client.url} went away: {why}", unheard=False)

    async def _read(self, over: trio.CancelScope) -> None:
        """Lines from the terminal, until Ctrl-D."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        typed = ""
        descriptor = sys.stdin.fileno()
        while True:
            await trio.lowlevel.wait_readable(descriptor)
            try:
                data = os.read(descriptor, 65536)
            except OSError:  # the terminal is gone
                data = b""
            if not data:
                over.cancel()
                return
            typed += decoder.decode(data)
            *lines, typed = typed.split("\n")
            for line in lines:
                self._leaving = False
                self._screen.typed()
                await self._say(line)

    async def _say(self, line: str) -> None:
        word = line.strip().lower()
        try:
            if self._screen.asked and word in YES + NO:
                await self._answer(self._screen.asked, word in YES)
            elif word:
                input_id = uuid.uuid4().hex
                self._screen.mine.add(input_id)
                await self._client.send(self._name, line, id=input_id, sender=self._sender)
        except (ConcordeError, click.ClickException) as error:
            self._screen.tell(f"! {error.format_message() if isinstance(error, click.ClickException) else error}")

    async def _answer(self, asked: deque[str], allow: bool) -> None:
        call_id = asked.popleft()
        try:
            await self._client.answer(self._name, call_id, allow=allow)
        except UnknownId:
            self._screen.tell("! too late: nobody asks about that call any more")
        except BaseException:
            asked.appendleft(call_id)
            raise

    async def _heed_ctrl_c(
        self, over: trio.CancelScope, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        with trio.open_signal_receiver(signal.SIGINT) as received:
            task_status.started()
            async for _ in received:
                if self._leaving:
                    self._status = LEFT_BY_CTRL_C
                    over.cancel()
                    return
                self._leaving = True
                await self._interrupt()

    async def _interrupt(self) -> None:
        self._screen.line()
        try:
            interrupted = await self._client.interrupt(self._name)
            what = "interrupted" if interrupted else "nothing is in flight"
        except (ConcordeError, click.ClickException) as error:
            what = str(error)
        self._screen.tell(f"{what}; Ctrl-C again leaves")
