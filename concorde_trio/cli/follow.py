"""``runs --follow`` and ``signals --follow``: the list, then a line for each change as it happens.

The law: no change is left out and none told twice, whatever goes away meanwhile. After a restart, and wherever events may have
been missed, the list is read down to the oldest thing that may have changed, and what it shows is told before what is
heard. While no worker serves the queue its database is read again and again. Ctrl-C ends it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import trio

from concorde_trio.cli.changes import Changes
from concorde_trio.cli.client import open_client
from concorde_trio.cli.feed import Feed
from concorde_trio.cli.queue import store_at
from concorde_trio.cli.show import STYLES, at, coloured, note, say, visible
from concorde_trio.cli.stored import mask_of
from concorde_trio.client.pages import Pages
from concorde_trio.errors import ConcordeError, RefusedId

if TYPE_CHECKING:
    from concorde_trio.cli.queue import StoredQueue
    from concorde_trio.client.client import Client
    from concorde_trio.client.wire import ServerEvent
    from concorde_trio.server.endpoint import Endpoint

Row: TypeAlias = dict[str, Any]
Lists: TypeAlias = Callable[["str | None"], Pages[Any]]
Mask: TypeAlias = Callable[[Any], Any]

PACE = 0.5
"""Seconds between two looks at what no event tells of."""
SPARING = 10
"""It waits so many times as long as a look took before it looks again."""
MANY = 50
"""Things that are asked for one by one after a gap; for more, the list is read."""
FIRST, PAGE = 20, 200
"""Rows of a list that are asked for at first, since mostly little is new, and then."""
STATES = {
    "RunQueued": "pending",
    "RunStarted": "running",
    "RunStopping": "stopping",
    "SignalEmitted": "pending",
    "SignalClaimed": "processing",
}
"""What an event makes of a thing; the others say it themselves."""


class Follower(ABC):
    """Of one kind of thing. ``state``: only changes to this; ``limit``: rows of the list at the beginning.

    It is the Listener of its feed.
    """

    name: str
    """What its things are called, in lists."""
    unfinished: tuple[str, ...]
    """The states of what may change still."""
    unheard: bool
    """Whether there are changes that no event tells of."""

    def __init__(self, path: Path, changes: Changes, *, state: str | None, limit: int, as_json: bool) -> None:
        self._path = path
        self.changes = changes
        self._state = state
        self._limit = limit
        self._json = as_json
        self._listed = False
        self._served: bool | None = None
        self._looked_at, self._took = -PACE, 0.0
        self._endpoint: Endpoint | None = None

    async def run(self, *, direct: bool) -> None:
        """Until it is cancelled. ``direct``: read the database even while a worker serves it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._poll)
            while direct:
                await self._read_database()
                await trio.sleep(max(PACE, SPARING * self._took))
            await Feed(self._path, self).run()

    # --- of each kind ----------------------------------------------------------------------------------------------

    @abstractmethod
    def of_gateway(self, client: Client, state: str | None) -> Pages[Any]:
        """The list of a gateway, newest first."""

    @abstractmethod
    async def of_database(
        self, store: StoredQueue, mask: Mask, state: str | None, limit: int, before: int | None
    ) -> Row:
        """A page of the list of the database."""

    @abstractmethod
    async def one(self, client: Client, thing: str) -> Row:
        """One thing as it is listed. RefusedId if there is none."""

    async def present(self, client: Client) -> tuple[str, list[Row] | None]:
        """The id of a snapshot, and all that may change still as far as it knows all of that; None if it does not."""
        return (await client.snapshot(["signals"]))["id"], None

    @abstractmethod
    def words(self, change: Row) -> list[str]:
        """Whom a change is about, and what is worth saying of it."""

    # --- the Listener ----------------------------------------------------------------------------------------------

    async def begin(self, client: Client) -> str:
        """A gateway answers: tell what was missed. What happens from now on is heard, and what is listed may be newer."""
        if self._served is False:
            note(f"a worker serves this queue now, at {client.url}")
        self._served = True
        place, present = await self.present(client)
        await self._catch_up(client, present)
        return place

    def reached(self, endpoint: Endpoint | None) -> None:
        """This one can be asked."""
        self._endpoint = endpoint

    async def hear(self, event: ServerEvent) -> None:
        """Something happened."""
        if "unreadable" not in event.data:  # else one of the user's own, whose fields nobody knows
            self._tell(self.changes.hear(event.name, event.data, event.id))

    async def unserved(self, reason: str | None) -> None:
        """Nobody works: the database is read."""
        if self._served is not False:
            note(f"{reason or 'no worker serves this queue now'}; following what the database says until one does")
        self._served = False
        if trio.current_time() - self._looked_at >= max(PACE, SPARING * self._took):
            await self._read_database()

    # --- looking ---------------------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        """Look for what no event tells."""
        while self.unheard:
            await trio.sleep(max(PACE, SPARING * self._took))
            endpoint = self._endpoint
            if endpoint is not None and self._listed:
                try:
                    async with open_client(endpoint) as client:
                        await self._look(partial(self.of_gateway, client), whole=False)
                except ConcordeError:
                    pass  # whoever hears it will find out

    async def _read_database(self) -> None:
        store = store_at(self._path)
        async with store.open():
            mask = await mask_of(store)

            def lists(state: str | None) -> Pages[Any]:
                async def page(limit: int, before: int | None) -> Row:
                    return await self.of_database(store, mask, state, limit, before)

                return Pages(page, self.name, "next", size=PAGE)

            await self._look(lists, whole=True)

    async def _catch_up(self, client: Client, present: list[Row] | None) -> None:
        """After a gap: what is new is listed, and what is not as it was is asked for, if that is not much."""
        lists = partial(self.of_gateway, client)
        stale = None if present is None or not self._listed else self.changes.stale(present)
        if stale is None or len(stale) > MANY:
            await self._look(lists, whole=True, present=present)
            return
        found = await self._read(lists(None), self.changes.floor(whole=False))
        for thing in stale:
            try:
                found.append(await self.one(client, thing))
            except RefusedId:
                self.changes.forget(thing)
        self._take(found)

    def _take(self, found: list[Row]) -> None:
        """Rows that were listed: tell what they show."""
        rows = sorted(found, key=self.changes.place)
        told = [change for row in rows for change in self.changes.read(row)]
        self._tell(sorted(told, key=lambda change: float(change["at"])))

    async def _look(self, lists: Lists, *, whole: bool, present: list[Row] | None = None) -> None:
        """Read the list as far down as something may have changed, and tell what has."""
        began = trio.current_time()
        if self._listed:
            self._take(await self._read(lists(None), self.changes.floor(whole=whole)))
        else:
            await self._list(lists, present)
        self._looked_at = trio.current_time()
        self._took = self._looked_at - began

    async def _read(self, pages: Pages[Any], floor: int) -> list[Row]:
        found: list[Row] = []
        count = FIRST
        while rows := await pages.first(count):
            found += [row for row in rows if self.changes.place(row) >= floor]
            if self.changes.place(rows[-1]) <= floor:
                break
            count = PAGE
        return found

    async def _list(self, lists: Lists, present: list[Row] | None) -> None:
        """The list at the beginning. It is read last, so that it shows each thing as it is known from then on."""
        for newest in await lists(None).first(1):
            self.changes.learn(newest)
        for row in present or ():
            self.changes.learn(row)
        for state in self.unfinished if present is None else ():
            async for row in lists(state):
                self.changes.learn(row)
        rows = await lists(self._state).first(self._limit)
        self._listed = True
        for row in rows[::-1]:
            self.changes.learn(row)
            *_, last = self.changes.steps(row)
            if self._json:
                say(json.dumps({self.name.removesuffix("s"): row}, allow_nan=False))
            else:
                self._say(last["at"], row["state"], self.words(last))

    # --- telling ---------------------------------------------------------------------------------------------------

    def _tell(self, changes: Iterable[Row]) -> None:
        for change in changes:
            state = STATES.get(change["event"]) or change["state"]
            if self._state not in (None, state):
                continue
            if self._json:
                say(json.dumps(change, allow_nan=False))
            else:
                self._say(change["at"], state, self.words(change))

    @staticmethod
    def _say(moment: float, state: str, words: list[str]) -> None:
        told = "  ".join(visible(word) for word in words if word)
        say(f"{at(moment)}  {coloured(f'{state:<10}', STYLES.get(state, ''))}  {told}")


def follow(follower: Follower, *, direct: bool) -> int:
    """Follow until Ctrl-C, which leaves as KeyboardInterrupt."""
    trio.run(lambda: follower.run(direct=direct))
    return 0
