"""Sessions from a running worker over HTTP, or from the database itself: the same documents (see ``sources`` for the law).

An input is sent under an id of its own, so it can be sent to the database after a worker that may have heard it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from concorde_trio.cli.client import Client, WorkerGone
from concorde_trio.errors import WrongState
from concorde_trio.server.endpoint import read_endpoint

if TYPE_CHECKING:
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

    def __init__(self, client: Client) -> None:
        """``client`` asks its gateway."""
        self._client = client

    def sessions(self, *, prefix: str | None, limit: int) -> Document:
        """GET /sessions, as many as asked for."""
        page = _object(self._client.get("sessions", query={"prefix": prefix, "limit": limit}))
        found = list(page["sessions"])
        while page["next"] is not None and len(found) < limit:
            query = {"prefix": prefix, "limit": limit - len(found), "before": page["next"]}
            page = _object(self._client.get("sessions", query=query))
            found += page["sessions"]
        return {**page, "sessions": found}

    def session(self, name: str) -> Document:
        """GET /sessions/{id}."""
        return _object(self._client.get("sessions", name))

    def messages(self, name: str, limit: int) -> Document:
        """GET /sessions/{id}/messages."""
        return _object(self._client.get("sessions", name, "messages", query={"limit": limit}))

    def send(self, name: str, body: Document) -> Document:
        """POST /sessions/{id}/input."""
        return _object(self._client.post("sessions", name, "input", body=body))


def ask_sessions(path: Path, question: Callable[[SessionSource], T], *, direct: bool) -> T:
    """Ask the worker that serves this database, if there is one, unless ``direct``; else the database.

    Only for questions that may be asked twice.
    """
    endpoint = None if direct else read_endpoint(path)
    if endpoint is not None:
        try:
            return question(Served(Client(endpoint)))
        except WorkerGone:
            pass
    from concorde_trio.cli.stored_sessions import StoredSessions

    return question(StoredSessions(path))


def serving(path: Path, what: str) -> Client:
    """Who serves this queue, for what only a running worker can do. WrongState if nobody does."""
    endpoint = read_endpoint(path)
    if endpoint is None:
        raise WrongState(
            f"no worker serves this queue now, so there is nobody {what}; `concorde-trio serve` starts one"
        )
    return Client(endpoint)


def _object(found: Any) -> Document:
    if not isinstance(found, dict):
        raise click.ClickException(f"the gateway answered with {type(found).__name__}, not a JSON object.")
    return found
