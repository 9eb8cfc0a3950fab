"""Sessions from a running worker over HTTP, or from the database itself: the same documents (see ``sources`` for the law).

An input is sent under an id of its own, so it can be sent to the database after a worker that may have heard it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from concorde_trio.cli.client import ask
from concorde_trio.errors import ServerGone, WrongState
from concorde_trio.server.endpoint import Endpoint, read_endpoint

if TYPE_CHECKING:
    from concorde_trio.client.client import Client
    from concorde_trio.signals.documents import Document

T = TypeVar("T")


class SessionSource(Protocol):
    """What commands ask about sessions. Documents are those of ``concorde_trio.conversations.views``."""

    def sessions(self, *, prefix: str | None, limit: int) -> Document:
        """A page of sessions, most recently updated first."""
        ...

    def session(self, name: str) -> Document:
        """A session; UnknownId if there is none."""
        ...

    def messages(self, name: str, limit: int) -> Document:
        """Its last messages."""
        ...

    def send(self, name: str, body: Document) -> Document:
        """An input, which has an id; its receipt."""
        ...


class Served:
    """A running worker, asked over HTTP."""

    def __init__(self, endpoint: Endpoint) -> None:
        """``endpoint`` is what ``read_endpoint`` found."""
        self._endpoint = endpoint

    def sessions(self, *, prefix: str | None, limit: int) -> Document:
        """GET /sessions, as many as asked for."""

        async def ask_sessions(client: Client) -> Document:
            found = client.sessions(prefix=prefix)
            return {"sessions": await found.first(limit), "next": found.cursor}

        return ask(self._endpoint, ask_sessions)

    def session(self, name: str) -> Document:
        """GET /sessions/{id}."""
        return dict(ask(self._endpoint, lambda client: client.session(name)))

    def messages(self, name: str, limit: int) -> Document:
        """GET /sessions/{id}/messages."""

        async def ask_messages(client: Client) -> Document:
            found = client.latest_messages(name)
            return {"messages": (await found.first(limit))[::-1], "next": None, "previous": found.cursor}

        return ask(self._endpoint, ask_messages)

    def send(self, name: str, body: Document) -> Document:
        """POST /sessions/{id}/input."""
        return dict(ask(self._endpoint, lambda client: client.send(name, **body)))


def ask_sessions(path: Path, question: Callable[[SessionSource], T], *, direct: bool) -> T:
    """Ask the worker that serves this database, if there is one, unless ``direct``; else the database.

    Only for questions that may be asked twice.
    """
    endpoint = None if direct else read_endpoint(path)
    if endpoint is not None:
        try:
            return question(Served(endpoint))
        except ServerGone:
            pass
    from concorde_trio.cli.stored_sessions import StoredSessions

    return question(StoredSessions(path))


def serving(path: Path, what: str) -> Endpoint:
    """Who serves this queue, for what only a running worker can do. WrongState if nobody does."""
    endpoint = read_endpoint(path)
    if endpoint is None:
        raise WrongState(
            f"no worker serves this queue now, so there is nobody {what}; `concorde-trio serve` starts one"
        )
    return endpoint
