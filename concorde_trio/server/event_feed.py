"""The events of one worker, written once for all who read them, in step (SRV-4).

The law: nobody is waited for. A reader is a number in the log, so whoever stops reading costs nothing and falls out of it; an
event is written once, whatever the number of readers; and what happens within a few milliseconds is told in one write, for it
is the writes that cost. Live tags are masked when an event is written, and looked for again when it is given out later: a
tag may have become known since (TAG-4).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import trio

from concorde_trio._sansio.event_log import Entry, EventFilter, EventLog
from concorde_trio.events import Event, WorkerStopped
from concorde_trio.records import JSON
from concorde_trio.server.event_stream import write_event
from concorde_trio.signals.event_bus import EventBus

KEPT = 10_000
"""Events that are kept for who comes back, and the most that a reader may be behind."""
PACE = 0.008
"""Seconds between two moments at which readers are woken."""
WRITE = 64 * 1024
"""Characters in one write, more or less."""


class EventFeed:
    """Listens to a worker from its beginning."""

    def __init__(self, bus: EventBus, mask: Callable[[str], str], mask_json: Callable[[JSON], JSON]) -> None:
        self.log = EventLog(secrets.token_hex(6), KEPT)
        self.over = False
        self._mask = mask
        self._mask_json = mask_json
        self._shown = 0  # readers are given events up to this number, so that those who wait take the same ones
        self._shown_at = 0.0
        self._waiting: dict[object, trio.lowlevel.Task] = {}
        self._called = self._led = False
        self._written: dict[int, tuple[bytes, int]] = {}  # what was given to who asked for all after this number
        bus.call(self.note)

    def note(self, event: Event) -> None:
        """An event happened. Quick, and never raises."""
        self.log.append(event)
        if type(event) is WorkerStopped:
            self.over = True
            self.show()
        elif not self._called and self._waiting:
            self._called = True
            self.wake(next(iter(self._waiting)))

    def show(self) -> None:
        """Let readers have all that there is."""
        self._called = self._led = False
        self._shown = self.log.last
        self._shown_at = trio.current_time()
        self._written.clear()
        waiting, self._waiting = self._waiting, {}
        for task in waiting.values():
            trio.lowlevel.reschedule(task)

    async def wait(self, after: int, who: object) -> None:
        """Until there is an event after this number to be read, there will be none, or ``who`` is woken.

        One of those who wait keeps the time for all: no task of its own is needed, and where nobody reads nothing runs.
        """
        if self._shown > after or self.over:
            return
        if self._led or self.log.last <= self._shown:
            await self._sleep(who)
            if self._led or not self._called or self._shown > after:
                return
        self._called = self._led = True
        try:
            await trio.sleep_until(self._shown_at + PACE)
        finally:
            self.show()

    def wake(self, who: object) -> None:
        """Have the wait of ``who`` return, if it waits for others."""
        task = self._waiting.pop(who, None)
        if task is not None:
            trio.lowlevel.reschedule(task)

    async def _sleep(self, who: object) -> None:
        """By hand: a thousand of these are woken a hundred times a second."""
        self._waiting[who] = trio.lowlevel.current_task()

        def abort(raise_cancel: object) -> trio.lowlevel.Abort:
            del self._waiting[who]
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def read(self, after: int, where: EventFilter) -> tuple[bytes, int]:
        """Events after this number, as many as make one write, and the number of the last one looked at.

        None of them may be lost (``log.lost``).
        """
        every = where.all
        if every and after in self._written:
            return self._written[after]
        found: list[Entry] = []
        size, last = 0, after
        for entry in self.log.entries(after, self._shown):
            last = entry.number
            if every or where.passes(entry.event):
                found.append(entry)
                size += len(entry.text or self._write(entry))
                if size > WRITE:
                    break
        given = self._masked(found), last
        if every:
            self._written[after] = given
        return given

    def _masked(self, found: list[Entry]) -> bytes:
        text = "".join([entry.text or self._write(entry) for entry in found])
        if self._mask(text) != text:
            # By values, not in the text: a tag may look like a piece of JSON.
            text = "".join([self._write(entry) for entry in found])
        return text.encode()

    def _write(self, entry: Entry) -> str:
        event, event_id = entry.event, self.log.id_of(entry.number)
        try:
            entry.text = write_event(event.name, self._mask_json(event.as_json()), event_id)
        except (TypeError, ValueError, RecursionError):
            # An event of the user's own; those who follow must learn that something of this kind happened.
            entry.text = write_event(event.name, {"event": event.name, "unreadable": True}, event_id)
        return entry.text
