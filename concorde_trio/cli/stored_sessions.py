"""Sessions of a queue that no worker serves: read from the database, and inputs written into it for the next one (SES-20)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from concorde_trio.cli.stored import Stored, mask_of, views_of
from concorde_trio.conversations.outside import submit_from_outside
from concorde_trio.conversations.views import message_view, session_row, session_view
from concorde_trio.errors import UnknownId, WrongState
from concorde_trio.records import check_name
from concorde_trio.sessions.inputs import new_input
from concorde_trio.sessions.store import SessionFilter

if TYPE_CHECKING:
    from concorde_trio.cli.queue import StoredQueue
    from concorde_trio.signals.documents import Document

T = TypeVar("T")


class StoredSessions(Stored):
    """One database. It is opened for each question and closed after it."""

    def sessions(self, *, prefix: str | None, limit: int) -> Document:
        """A page of sessions, most recently updated first."""

        async def ask(store: StoredQueue) -> Document:
            mask = await mask_of(store)
            found = await store.sessions(SessionFilter(prefix=prefix, limit=limit))
            last = found[-1] if len(found) == limit else None
            return {
                "sessions": [session_row(each, {}, mask) for each in found],
                "next": None if last is None else f"{last.updated_at!r}:{mask(last.name)}",
            }

        return self._ask(ask)

    def session(self, name: str) -> Document:
        """A session."""

        async def ask(store: StoredQueue) -> Document:
            views, mask = await views_of(store), await mask_of(store)
            found = await session_view(
                name, sessions=store, signals=store, loop=None, why=views.why, mask=mask, now=time.time()
            )
            return _known(found, name)

        return self._ask(ask)

    def messages(self, name: str, limit: int) -> Document:
        """Its last messages."""

        async def ask(store: StoredQueue) -> Document:
            _known(await store.session(name), name)
            mask: Callable[[Any], Any] = await mask_of(store)
            found = await store.latest_messages(name, limit=limit)
            previous = found[0].seq if len(found) == limit else None
            return {"messages": [message_view(each, mask) for each in found], "next": None, "previous": previous}

        return self._ask(ask)

    def send(self, name: str, body: Document) -> Document:
        """Write the input and its signal, for the next worker."""
        check_name(name, "session")
        given = new_input(body["text"], at=time.time(), id=body["id"], sender=body.get("sender"))

        async def ask(store: StoredQueue) -> Document:
            sent = await submit_from_outside(store, name, given)
            if not sent.receipt.accepted:
                raise WrongState(f"the input was not accepted: {sent.receipt.reason}")
            return sent.as_json(name)

        return self._ask(ask)


def _known(found: T | None, name: str) -> T:
    if found is None:
        raise UnknownId(f"there is no session {name!r:.80}")
    return found
