"""``top`` on a terminal: it hears what happens, looks again where no event tells, draws, and does what keys say.

The law: drawing waits for nothing but a moment, and nothing waits for drawing. What no event tells is asked for soon after
something happened, and every few seconds, and never so often that asking is what the gateway does. A gateway that goes
away is waited for; meanwhile the database is read.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import trio

from concorde_trio.cli.client import open_client
from concorde_trio.cli.feed import Feed
from concorde_trio.cli.picture import Picture
from concorde_trio.cli.stored_snapshot import stored_snapshot
from concorde_trio.cli.terminal import Terminal
from concorde_trio.cli.top_rows import sections
from concorde_trio.cli.top_screen import render
from concorde_trio.cli.top_view import Action, View
from concorde_trio.client.client import Client
from concorde_trio.client.wire import ServerEvent
from concorde_trio.errors import ConcordeError
from concorde_trio.server.endpoint import Endpoint

FRAME = 0.1
"""Seconds between two pictures, at least."""
SOON, LATE = 0.4, 3.0
"""Seconds after which it looks again when something happened, and when nothing did."""
SPARING = 10
"""It waits so many times as long as looking takes before it looks again."""
TICK = 1.0
"""Seconds after which durations are drawn anew."""
DIED = 128


def run_top(path: Path, *, direct: bool) -> int:
    """Show what goes on until somebody leaves; the exit status."""
    return trio.run(_Top(path, direct=direct).run)


class _Top:
    """One person before one queue. It is the Listener of its feed."""

    def __init__(self, path: Path, *, direct: bool) -> None:
        self._path = path
        self._direct = direct
        self._picture = Picture()
        self._view = View()
        self._endpoint: Endpoint | None = None
        self._place = str(path)
        self._changed = trio.Event()
        self._status = 0
        self._pause = SOON
        self._read_at = -LATE

    async def run(self) -> int:
        """Until a key, a signal, or the end of the terminal says so."""
        with Terminal() as terminal:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._heed, terminal, nursery.cancel_scope)
                nursery.start_soon(self._hear)
                nursery.start_soon(self._look_again)
                nursery.start_soon(self._draw, terminal)
                await self._obey(terminal, nursery)
                nursery.cancel_scope.cancel()
        return self._status

    def _change(self) -> None:
        self._changed.set()

    # --- what happens ----------------------------------------------------------------------------------------------

    async def _hear(self) -> None:
        if self._direct:
            while True:
                await self._read_rows()
                await trio.sleep(max(TICK, self._pause))
        await Feed(self._path, self).run()

    async def begin(self, client: Client) -> str:
        """A gateway answers."""
        self._place = f"{self._path}  {client.url}"
        return await self._look(client)

    def reached(self, endpoint: Endpoint | None) -> None:
        """This one can be asked."""
        self._endpoint = endpoint

    async def hear(self, event: ServerEvent) -> None:
        """Something happened."""
        if "unreadable" in event.data:  # one of the user's own, whose fields nobody knows
            self._picture.stale = True
        else:
            self._picture.take(event.id, event.name, event.data)
        self._change()

    async def unserved(self, reason: str | None) -> None:
        """Nobody works: the rows say what there is."""
        self._place = str(self._path) + (f"  {reason}" if reason else "")
        if self._picture.served:
            self._picture.lost()
            self._change()
        if trio.current_time() - self._read_at >= max(TICK, self._pause):
            await self._read_rows()

    async def _read_rows(self) -> None:
        began = trio.current_time()
        try:
            found = await stored_snapshot(self._path)
        except ConcordeError as error:
            self._view.said = f"{error}"
        else:
            self._picture.begin(found)
        self._read_at = trio.current_time()
        self._pause = SPARING * (self._read_at - began)
        self._change()

    async def _look(self, client: Client) -> str:
        began = trio.current_time()
        found = await client.snapshot()
        self._picture.begin(found)
        self._pause = SPARING * (trio.current_time() - began)
        self._change()
        return found["id"]

    async def _look_again(self) -> None:
        """What no event tells: who waits for whom now, how long holds last still, what is emitted and not claimed."""
        while True:
            waited = 0.0
            while waited < max(SOON, self._pause) or (waited < LATE and not self._picture.stale):
                await trio.sleep(FRAME)
                waited += FRAME
            endpoint = self._endpoint
            if endpoint is not None:
                try:
                    async with open_client(endpoint) as client:
                        await self._look(client)
                except ConcordeError:
                    await trio.sleep(SOON)  # whoever hears it will find out

    # --- who looks -------------------------------------------------------------------------------------------------

    async def _draw(self, terminal: Terminal) -> None:
        while True:
            width, height = terminal.size
            terminal.show(render(self._view, self._picture, time.time(), width, height, self._place))
            await trio.sleep(FRAME)
            with trio.move_on_after(TICK - FRAME):
                await self._changed.wait()
            self._changed = trio.Event()

    async def _obey(self, terminal: Terminal, nursery: trio.Nursery) -> None:
        while keys := await terminal.keys():
            for key in keys:
                action = self._view.press(key, self._picture, sections(self._picture, time.time()))
                if action is not None and action.what == "quit":
                    return
                if action is not None:
                    nursery.start_soon(self._do, action)
            self._change()

    async def _do(self, action: Action) -> None:
        endpoint = self._endpoint
        if endpoint is None:
            self._view.said = "the worker is gone: nothing was done"
        else:
            try:
                async with open_client(endpoint) as client:
                    self._view.said = await _done(client, action)
            except ConcordeError as error:
                self._view.said = str(error)
        self._change()

    async def _heed(
        self,
        terminal: Terminal,
        over: trio.CancelScope,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Signals of the terminal and of who ends programs."""
        numbers = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
        with trio.open_signal_receiver(*numbers) as received:
            task_status.started()
            async for number in received:
                if number == signal.SIGTSTP:
                    terminal.suspend()
                elif number != signal.SIGWINCH:
                    self._status = DIED + number
                    over.cancel()
                    return
                self._change()


async def _done(client: Client, action: Action) -> str:
    """Do it; what came of it, in words."""
    match action.what:
        case "interrupt":
            interrupted = await client.interrupt(action.name)
            return f"interrupted {action.name}" if interrupted else f"session {action.name} has no turn in flight"
        case "cancel_run":
            await client.cancel_run(action.name)
            return f"asked for the end of run {action.name}"
        case _:
            await client.cancel_signal(action.name)
            return f"asked for the end of signal {action.name}"
