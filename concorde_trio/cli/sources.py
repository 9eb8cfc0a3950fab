"""Where a command's answers come from: a running worker over HTTP, or the database itself. The same documents.

The law: a command does not know which of the two it talks to. A worker that is not there after all (it is just
stopping, its port is out of reach) is replaced by its database, but a change that it may have heard already is never
made a second time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import click

from concorde_trio.cli.client import ask
from concorde_trio.errors import RequestRefused, ServerGone, UnknownId
from concorde_trio.server.endpoint import Endpoint, read_endpoint

if TYPE_CHECKING:
    from concorde_trio.client.client import Client
    from concorde_trio.client.pages import Pages
    from concorde_trio.signals.documents import Document

T = TypeVar("T")

TO_ANOTHER = 307
"""What a member of a fleet answers that does not lead it: what the leader would say stands in the database too."""


class Source(Protocol):
    """What commands ask of a queue. Documents are those of ``concorde_trio.signals.documents``.

    Raises UnknownId, WrongState or another UsageError for what cannot be done, a StoreError when the database refuses.
    """

    def signals(self, *, kind: str | None, state: str | None, limit: int) -> Document:
        """A page of signals, newest first."""
        ...

    def signal(self, signal_id: str) -> Document:
        """A signal with its runs."""
        ...

    def runs(
        self, *, signal: str | None, session: str | None, resource: str | None, state: str | None, limit: int
    ) -> Document:
        """A page of runs, newest first."""
        ...

    def run(self, run_id: str) -> Document:
        """A run."""
        ...

    def locks(self) -> Document:
        """The lock table."""
        ...

    def emit(self, kind: str, payload: Any, key: str | None) -> str:
        """The id of the signal once it is committed."""
        ...

    def cancel_run(self, run_id: str) -> None:
        """Ask for a run's end."""
        ...

    def cancel_signal(self, signal_id: str) -> None:
        """Ask for a signal's end."""
        ...

    def retry(self, signal_id: str) -> str:
        """The id of a new signal of the same kind and payload."""
        ...


class Served:
    """A running worker, asked over HTTP."""

    def __init__(self, endpoint: Endpoint) -> None:
        """``endpoint`` is what ``read_endpoint`` found."""
        self._endpoint = endpoint

    def _ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        return ask(self._endpoint, question)

    def signals(self, *, kind: str | None, state: str | None, limit: int) -> Document:
        """GET /signals, as many as asked for."""
        return self._ask(lambda client: _some("signals", client.signals(kind=kind, state=cast("Any", state)), limit))

    def signal(self, signal_id: str) -> Document:
        """GET /signals/{id}."""
        return dict(self._ask(lambda client: client.signal(signal_id)))

    def runs(
        self, *, signal: str | None, session: str | None, resource: str | None, state: str | None, limit: int
    ) -> Document:
        """GET /runs, as many as asked for."""

        async def ask_runs(client: Client) -> Document:
            found = client.runs(signal=signal, session=session, resource=resource, state=cast("Any", state))
            return await _some("runs", found, limit)

        return self._ask(ask_runs)

    def run(self, run_id: str) -> Document:
        """GET /runs/{id}."""
        return dict(self._ask(lambda client: client.run(run_id)))

    def locks(self) -> Document:
        """GET /locks, every page of it."""

        async def ask_locks(client: Client) -> Document:
            return {"locks": [lock async for lock in client.locks()], "next": None}

        return self._ask(ask_locks)

    def emit(self, kind: str, payload: Any, key: str | None) -> str:
        """POST /signals."""
        return self._ask(lambda client: client.emit(kind, payload, key=key))

    def cancel_run(self, run_id: str) -> None:
        """POST /runs/{id}/cancel."""
        self._ask(lambda client: client.cancel_run(run_id))

    def cancel_signal(self, signal_id: str) -> None:
        """POST /signals/{id}/cancel."""
        self._ask(lambda client: client.cancel_signal(signal_id))

    def retry(self, signal_id: str) -> str:
        """POST /signals/{id}/retry."""
        return self._ask(lambda client: client.retry(signal_id))


class Either:
    """The first source while it answers, the second when it does not."""

    def __init__(self, first: Source, second: Callable[[], Source]) -> None:
        """``second`` makes the other source when it is needed."""
        self._first = first
        self._second = second

    def _ask(self, question: Callable[[Source], T]) -> T:
        try:
            return question(self._first)
        except ServerGone as gone:
            if not gone.unheard:
                raise click.ClickException(
                    f"{gone}; it may have taken the request or not, look at what `concorde-trio signals` says."
                ) from None
        except RequestRefused as refused:
            if refused.status != TO_ANOTHER:
                raise
        return question(self._second())

    def signals(self, *, kind: str | None, state: str | None, limit: int) -> Document:
        """A page of signals, newest first."""
        return self._ask(lambda source: source.signals(kind=kind, state=state, limit=limit))

    def signal(self, signal_id: str) -> Document:
        """A signal with its runs."""
        return self._ask(lambda source: source.signal(signal_id))

    def runs(
        self, *, signal: str | None, session: str | None, resource: str | None, state: str | None, limit: int
    ) -> Document:
        """A page of runs, newest first."""
        return self._ask(
            lambda source: source.runs(signal=signal, session=session, resource=resource, state=state, limit=limit)
        )

    def run(self, run_id: str) -> Document:
        """A run."""
        return self._ask(lambda source: source.run(run_id))

    def locks(self) -> Document:
        """The lock table."""
        return self._ask(lambda source: source.locks())

    def emit(self, kind: str, payload: Any, key: str | None) -> str:
        """The id of the signal once it is committed."""
        return self._ask(lambda source: source.emit(kind, payload, key))

    def cancel_run(self, run_id: str) -> None:
        """Ask for a run's end."""
        self._ask(lambda source: source.cancel_run(run_id))

    def cancel_signal(self, signal_id: str) -> None:
        """Ask for a signal's end."""
        self._ask(lambda source: source.cancel_signal(signal_id))

    def retry(self, signal_id: str) -> str:
        """The id of a new signal of the same kind and payload."""
        return self._ask(lambda source: source.retry(signal_id))


def open_source(path: Path, *, direct: bool) -> Source:
    """The queue in this database: its running worker if there is one, unless ``direct``; else the database."""
    endpoint = None if direct else read_endpoint(path)
    if endpoint is None:
        return _stored(path)
    return Either(Served(endpoint), lambda: _stored(path))


def is_served(path: Path) -> bool:
    """Whether a gateway serves this database now."""
    return read_endpoint(path) is not None


def run_or_signal(source: Source, target: str) -> tuple[str, Document]:
    """``("run", its document)`` or ``("signal", its document)``; UnknownId when neither has this id."""
    for what, look in (("run", source.run), ("signal", source.signal)):
        try:
            return what, look(target)
        except UnknownId:
            continue
    raise UnknownId(f"no run and no signal has the id {target}")


@contextmanager
def expecting_signal(source: Source, target: str) -> Iterator[None]:
    """UnknownId says so, and which signal is meant, where ``target`` is the id of a run."""
    try:
        yield
    except UnknownId:
        try:
            run = source.run(target)
        except UnknownId:
            pass
        else:
            raise UnknownId(f"{target} is a run; its signal is {run['signal_id']}") from None
        raise


def _stored(path: Path) -> Source:
    from concorde_trio.cli.stored import Stored

    return Stored(path)


async def _some(name: str, found: Pages[Any], limit: int) -> Document:
    """As many as asked for, as one page."""
    return {name: await found.first(limit), "next": found.cursor}
