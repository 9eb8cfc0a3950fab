"""The demo from its first to its last second: serve, send, watch, check, tidy up.

The law: however it ends, Ctrl-C at any moment included, no process is left, and nothing in the temporary folder but what
somebody was told of.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import trio
from rich.console import Console
from rich.text import Text

from concorde_trio import events
from concorde_trio.demo.board import Board
from concorde_trio.demo.check import check
from concorde_trio.demo.errands import BUDGET, MESSAGES, TALKER, Message, all_errands, for_a_real_model
from concorde_trio.demo.evidence import Evidence, children, processes_left, read_files, read_journal
from concorde_trio.demo.household import Household
from concorde_trio.demo.page import add_timeline, draw_timeline
from concorde_trio.demo.people import People
from concorde_trio.demo.report import Report, Served
from concorde_trio.demo.screen import Screen
from concorde_trio.errors import ConcordeError
from concorde_trio.sessions.model import Model

TIME_LIMIT = 60.0
"""Seconds after which it is said that something hangs."""
REAL_TIME_LIMIT = 300.0
"""Seconds after which a real model is not waited for any longer."""
CANCELLING = 30.0
"""Seconds in which what it had not done must have been cancelled."""
_KEPT = """
Still serving, until Ctrl-C: {link}
In another terminal:
  concorde-trio runs --store {database}
  concorde-trio send --store {database} --wait ann recall
  concorde-trio chat --store {database} bob
  concorde-trio emit --store {database} message.received \\
    '{{"from": "ann", "text": "Ice cream!", "budget": true, "steps": ["spend 5 on ice cream"]}}'"""


def play_demo(*, keep: bool, svg: Path | None, as_json: bool, model: Model | None) -> int:
    """See ``run_demo``. ``model``: a real one, None for the script."""
    if svg is not None:
        _check_writable(svg)
    with _ended_as_by_ctrl_c(), _folder() as folder:
        demo = _Demo(Household(folder.path, model), svg=svg, keep=keep, as_json=as_json)
        try:
            trio.run(demo.play)
        finally:
            folder.stays = demo.stays
        if demo.report is None:
            if not as_json:
                print("Stopped; no run is left, and no file.", flush=True)
            raise KeyboardInterrupt
        return 0 if demo.report.right else 1


def _check_writable(file: Path) -> None:
    """OSError for what cannot be written: now, and not at the end."""
    there = file.exists()
    file.touch()
    if not there:
        file.unlink()


@contextmanager
def _ended_as_by_ctrl_c() -> Iterator[None]:
    """While entered, a terminal that is closed and a polite kill do what Ctrl-C does at that moment."""
    changed = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                changed[number] = signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number, before in changed.items():
            signal.signal(number, before)


@attrs.define
class _Folder:
    path: Path
    stays: bool = False


@contextmanager
def _folder() -> Iterator[_Folder]:
    folder = _Folder(Path(tempfile.mkdtemp(prefix="concorde-demo-")).resolve())
    try:
        yield folder
    finally:
        while not folder.stays and folder.path.exists():
            try:
                shutil.rmtree(folder.path)
            except KeyboardInterrupt:
                continue  # a second Ctrl-C is no reason to leave half of it


class _Demo:
    """One performance. ``stays``: whether its folder is still wanted when it is over."""

    def __init__(self, household: Household, *, svg: Path | None, keep: bool, as_json: bool) -> None:
        self.household = household
        self.report: Report | None = None
        self.stays = False
        self._svg = svg
        self._keep = keep
        self._as_json = as_json
        self._console = Console(markup=False, highlight=False, emoji=False)
        self._screen = Screen(self._console, len(all_errands(MESSAGES)), quiet=as_json)
        gateway = household.gateway
        holding = {kind for kind, handler in gateway.handlers.items() if handler.post is not None}
        self._board = Board(gateway.worker.why, holding, self._screen.tell, household.waiting_on)
        self._at_work = trio.Event()
        self._plan = MESSAGES if household.scripted else for_a_real_model(MESSAGES)
        self._sent: list[tuple[Message, str]] = []
        self._ending = False
        add_timeline(household, self._board.posts)

    async def play(self) -> None:
        """All of it, in one nursery with the gateway."""
        before = children()
        gateway = self.household.gateway
        with gateway.worker.bus.subscribe(100_000) as happening:
            async with trio.open_nursery() as nursery:
                await nursery.start(gateway.run)
                work = trio.CancelScope()
                nursery.start_soon(self._watch, happening, work)
                with work:
                    await self._perform(before)
                self._ending = True
                gateway.stop("drain" if self.report is not None else "cancel")

    async def _watch(self, happening: trio.MemoryReceiveChannel[events.Event], work: trio.CancelScope) -> None:
        """Hand every event on. A stop that is not ours is Ctrl-C: nobody who pressed it wants to wait for a drain."""
        async for event in happening:
            self._board.take(event)
            if isinstance(event, events.CallStarted) and event.session == TALKER and event.tool == "shell":
                self._at_work.set()
            if isinstance(event, events.RunEnded) and event.session == TALKER:
                self._at_work.set()  # a real model may not have called anything
            if isinstance(event, events.WorkerStopping) and not self._ending:
                self.household.gateway.stop("cancel")
                work.cancel()

    async def _perform(self, before: set[int]) -> None:
        gateway = self.household.gateway
        if gateway.url is None:
            raise AssertionError("the gateway runs, and has no address")
        people = People(gateway.url, gateway.access.operator_token)
        if not self._as_json:
            who = (
                "a script answers in place of a model"
                if self.household.scripted
                else f"{self.household.model.name} answers"
            )
            self._console.print(Text(f"A household at {gateway.url}: every run is a turn of a session; {who}."))
            self._console.print(Text(f"To watch it in a browser: {gateway.link}"), soft_wrap=True)
        began = time.monotonic()
        with self._screen.showing():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._screen.refresh, self._board, lambda: self.household.left)
                await self._send_and_wait(people)
                nursery.cancel_scope.cancel()
            self._screen.draw(self._board, self.household.left)
        seconds = time.monotonic() - began
        served = [Served(message=message, signal=await people.signal(signal_id)) for message, signal_id in self._sent]
        evidence = await self._gather(served, before)
        drawing = await self._draw()
        self.report = Report(
            served=served,
            evidence=evidence,
            findings=check(evidence),
            seconds=seconds,
            drawing=drawing,
            model=self.household.model.name,
        )
        self._show(self.report)
        if self._keep:
            await gateway.worker.stopped.wait()

    async def _send_and_wait(self, people: People) -> None:
        def sent(message: Message, signal_id: str) -> None:
            self._sent.append((message, signal_id))
            self._board.sent(message, signal_id)

        gateway, seconds = self.household.gateway, TIME_LIMIT if self.household.scripted else REAL_TIME_LIMIT
        with trio.move_on_after(seconds) as limit:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._talk, people)
                await people.send(self._plan, sent)
            tags = await gateway.store.tags()
            await people.pretend(tags)
            for _, signal_id in self._sent:
                await gateway.wait_settled(signal_id)
            await people.pretend(tags)  # the same, now that they are over
        if limit.cancelled_caught and not self.household.scripted:
            with trio.move_on_after(CANCELLING) as limit:
                for _, signal_id in self._sent:
                    with suppress(ConcordeError):  # it has just ended by itself
                        await people.cancel(signal_id)
                for _, signal_id in self._sent:
                    await gateway.wait_settled(signal_id)
        if limit.cancelled_caught:
            raise ConcordeError(f"something hangs: after {seconds:g} s not everything is settled")

    async def _talk(self, people: People) -> None:
        """What a person says while the session is at work on a message of hers."""
        await self._at_work.wait()
        for message in self._plan:
            for number, text in enumerate(message.meanwhile, 1):
                input_id = f"{message.person}-{number}"
                self._board.says(input_id, text)
                await people.say(message.person, text, id=input_id)

    async def _gather(self, served: list[Served], before: set[int]) -> Evidence:
        household = self.household
        return Evidence(
            plan=self._plan,
            scripted=household.scripted,
            files=read_files(household.rooms),
            journal=read_journal(household.journal),
            requests=list(household.requests),
            budget=BUDGET,
            left=household.left,
            ledger=list(household.ledger),
            books=household.books.read_text(encoding="utf-8").splitlines() if household.books.exists() else [],
            ended={
                errand.number: run["state"]
                for one in served
                for errand, run in zip(one.message.errands, one.signal["runs"], strict=False)
            },
            running=await processes_left(household.journal, before),
        )

    async def _draw(self) -> Path:
        drawing = await draw_timeline(self.household, self._board.posts)
        if self._svg is not None:
            file = self._svg
        else:
            descriptor, name = tempfile.mkstemp(prefix="concorde-demo-", suffix=".svg")
            os.close(descriptor)
            file = Path(name)
        file.write_text(drawing, encoding="utf-8")
        return file.resolve()

    def _show(self, report: Report) -> None:
        household, gateway = self.household, self.household.gateway
        self.stays = self._keep or not report.right
        if self._as_json:
            folder = {"folder": str(household.folder)} if self.stays else {}
            kept = {"url": gateway.url, "link": gateway.link, "database": str(household.database)} if self._keep else {}
            print(json.dumps({**report.as_json(), **folder, **kept}, indent=2), flush=True)
            return
        report.print(self._console)
        if self.stays:
            self._console.print(Text(f"The household stays in {household.folder}"), soft_wrap=True)
        if self._keep:
            self._console.print(
                Text(_KEPT.format(link=gateway.link, database=shlex.quote(str(household.database)))), soft_wrap=True
            )
