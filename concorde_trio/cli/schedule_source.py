"""Schedules from a running worker over HTTP, or in the database itself: the same documents (see ``sources`` for the law).

Putting and removing may be done twice: the second time nothing happens. So the database takes over from a worker that may
have heard it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from concorde_trio.cli.client import ask
from concorde_trio.errors import ServerGone
from concorde_trio.server.endpoint import Endpoint, read_endpoint

if TYPE_CHECKING:
    from concorde_trio.cli.queue import StoredQueue
    from concorde_trio.signals.documents import Document
    from concorde_trio.signals.schedules import Schedules

T = TypeVar("T")


class ScheduleSource(Protocol):
    """What commands ask about schedules. Documents are those of ``concorde_trio.documents.schedules``."""

    def schedules(self) -> Document:
        """All of them, by name."""
        ...

    def schedule(self, name: str) -> Document:
        """One; UnknownId if there is none of this name."""
        ...

    def put(self, name: str, body: Document) -> Document:
        """Store one; its document, with ``changed``."""
        ...

    def remove(self, name: str) -> None:
        """Remove one; UnknownId if there is none of this name."""
        ...


class Served:
    """A running worker, asked over HTTP."""

    def __init__(self, endpoint: Endpoint) -> None:
        """``endpoint`` is what ``read_endpoint`` found."""
        self._endpoint = endpoint

    def schedules(self) -> Document:
        """GET /schedules, every page of it."""

        async def ask_all(client: Any) -> Document:
            return {"schedules": [each async for each in client.schedules()], "next": None}

        return ask(self._endpoint, ask_all)

    def schedule(self, name: str) -> Document:
        """GET /schedules/{name}."""
        return dict(ask(self._endpoint, lambda client: client.schedule(name)))

    def put(self, name: str, body: Document) -> Document:
        """PUT /schedules/{name}."""
        return dict(ask(self._endpoint, lambda client: client.put_schedule(name, **body)))

    def remove(self, name: str) -> None:
        """DELETE /schedules/{name}."""
        ask(self._endpoint, lambda client: client.remove_schedule(name))


class Stored:
    """One database. It is opened for each question and closed after it."""

    def __init__(self, path: Path) -> None:
        """``path`` as ``database_path`` gives it."""
        self._path = path

    def schedules(self) -> Document:
        """All of them, by name."""

        async def question(schedules: Schedules, shown: Callable[[Any], Document]) -> Document:
            return {"schedules": [shown(record) for record in await schedules.all()], "next": None}

        return self._ask(question)

    def schedule(self, name: str) -> Document:
        """One."""

        async def question(schedules: Schedules, shown: Callable[[Any], Document]) -> Document:
            return shown(await schedules.one(name))

        return self._ask(question)

    def put(self, name: str, body: Document) -> Document:
        """Store one; a worker of this queue finds it by its next sweep."""
        from concorde_trio.signals.schedule import Schedule

        async def question(schedules: Schedules, shown: Callable[[Any], Document]) -> Document:
            changed = await schedules.put(Schedule(name, **body))
            return {**shown(await schedules.one(name)), "changed": changed}

        return self._ask(question)

    def remove(self, name: str) -> None:
        """Remove one."""

        async def question(schedules: Schedules, shown: Callable[[Any], Document]) -> None:
            await schedules.remove(name)

        self._ask(question)

    def _ask(self, question: Callable[[Schedules, Callable[[Any], Document]], Awaitable[T]]) -> T:
        import trio

        from concorde_trio.cli.queue import store_at
        from concorde_trio.cli.stored import mask_of
        from concorde_trio.signals.options import WorkerOptions
        from concorde_trio.signals.schedule_documents import schedule_document
        from concorde_trio.signals.schedules import Schedules

        async def main() -> T:
            store: StoredQueue = store_at(self._path)
            async with store.open():
                mask = await mask_of(store)
                return await question(Schedules(store, WorkerOptions()), lambda each: schedule_document(each, mask))

        return trio.run(main)


def ask_schedules(path: Path, question: Callable[[ScheduleSource], T], *, direct: bool) -> T:
    """Ask the worker that serves this database, if there is one, unless ``direct``; else the database."""
    endpoint = None if direct else read_endpoint(path)
    if endpoint is not None:
        try:
            return question(Served(endpoint))
        except ServerGone:
            pass
    return question(Stored(path))
