"""Sessions to fill a store with, and the store that the checks are given: one of sessions and of signals at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from concorde_trio._sansio.changes import Change
from concorde_trio._sansio.session_changes import AddInput, AddMessage, SaveSession, SessionChange
from concorde_trio.errors import StoreError
from concorde_trio.messages import Input, Message, Role
from concorde_trio.records import Usage
from concorde_trio.sessions.store import SessionFilter, SessionStore
from concorde_trio.signals.store import SignalStore
from concorde_trio.testing.store_checks.samples import everything


class QueueStore(SignalStore, SessionStore, Protocol):
    """A store of signals and of sessions: what a queue lives in."""

    async def apply(self, changes: Sequence[Change | SessionChange]) -> None:
        """Write all of it in one commit, in order (SES-21)."""
        ...


MakeStore = Callable[[], QueueStore]
Check = Callable[[MakeStore], Awaitable[None]]

AT, LATER, LAST = 1_764_451_234.1234567, 1_764_451_235.1, 1_764_451_239.5
"""Wall-clock times, one that no shorter number stands for."""


@asynccontextmanager
async def opened(make_store: MakeStore) -> AsyncIterator[QueueStore]:
    """A fresh store, open."""
    store = make_store()
    async with store.open():
        yield store


def save(session: str = "ann", at: float = AT, **fields: Any) -> SaveSession:
    """A session's row."""
    made: dict[str, Any] = {"last_epoch": 0, "last_registration": 0, "usage": Usage()}
    return SaveSession(session=session, at=at, **made | fields)


def said(seq: int, text: str = "hello", session: str = "ann", **fields: Any) -> AddMessage:
    """A message, of the user's unless ``role`` says otherwise."""
    made: dict[str, Any] = {"role": Role.USER, "at": AT}
    return AddMessage(session, Message(seq=seq, text=text, **made | fields))


def summed(seq: int, covers: int, keeps: tuple[int, ...] = (), session: str = "ann") -> AddMessage:
    """A summary."""
    return said(seq, "in short", session, role=Role.SUMMARY, covers=covers, keeps=keeps)


def given(input_id: str, session: str = "ann", *, at: float = AT, **fields: Any) -> AddInput:
    """An accepted input, that says its own id."""
    return AddInput(session=session, input=Input(id=input_id, text=f"says {input_id}", at=at), **fields)


async def refused(store: QueueStore, *changes: Change | SessionChange, names: str = "") -> None:
    """Applying these is a StoreError that names the row, and nothing of them is written."""
    before = await all_of(store)
    try:
        await store.apply(changes)
    except StoreError as error:
        assert names in str(error), f"the error does not name {names}: {error}"
    else:
        raise AssertionError(f"this was written: {changes!r:.500}")
    assert await all_of(store) == before


async def all_of(store: QueueStore) -> dict[str, Any]:
    """All that can be read from a store, to be compared."""
    found = await everything(store)
    found["sessions"] = await store.sessions(SessionFilter(limit=1_000_000))
    found["unsettled"] = await store.unsettled_inputs()
    for record in found["sessions"]:
        found[f"{record.name} loaded"] = await store.load_session(record.name)
        found[f"{record.name} messages"] = await store.messages(record.name, limit=1_000_000)
    return found
