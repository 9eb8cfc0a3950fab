"""What a session store is: a session's row, its messages, its ledger of inputs. It decides nothing.

Every store passes ``concorde_trio.testing.check_session_store``. The stores of this package keep them in the same
database as the queue, and implement SignalStore and SessionStore at once. All times are wall-clock seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import attrs

from concorde_trio._sansio.session_changes import SessionChange
from concorde_trio.messages import Input, InputState, Message
from concorde_trio.records import Usage


@attrs.frozen(kw_only=True)
class SessionRecord:
    """A session's row. ``updated_at``: of its last SaveSession. ``messages``: how many it has, compacted ones too.

    ``queued``: how many of its inputs are neither delivered nor cancelled, those that became signals included.
    """

    name: str
    created_at: float
    updated_at: float
    last_epoch: int = 0
    last_registration: int = 0
    usage: Usage = attrs.field(factory=Usage)
    held: bool = False
    messages: int = 0
    queued: int = 0


@attrs.frozen(kw_only=True)
class StoredInput:
    """A row of the ledger. See AddInput for the fields."""

    session: str
    input: Input
    state: InputState
    prompt: bool = False
    signal_id: str | None = None
    settled_at: float | None = None


@attrs.frozen(kw_only=True)
class StoredSession:
    """All that a loop starts from. ``last_seq``: the highest seq of any of its messages, 0 if none.

    ``messages``: what the model is to see, by seq: the latest summary first (if there is one), then what it keeps, then
    all that has a higher seq than it ``covers`` (but the summary itself, which has one too). ``inputs``: queued ones
    without a signal, in the order in which they were accepted.
    """

    record: SessionRecord
    last_seq: int
    messages: tuple[Message, ...]
    inputs: tuple[StoredInput, ...]


@attrs.frozen(kw_only=True)
class SessionFilter:
    """Which sessions to list, most recently updated first; ``before`` is the ``cursor`` of the last one of a page.

    ``prefix``: only names that begin with it.
    """

    prefix: str | None = None
    before: tuple[float, str] | None = None
    limit: int = 50


class SessionStore(Protocol):
    """Sessions, durably. Opened as a SignalStore is; the async methods are called only while it is open."""

    def open(self) -> AbstractAsyncContextManager[None]:
        """Connect and bring the schema up to date."""
        ...

    async def apply(self, changes: Sequence[SessionChange]) -> None:
        """Write all of it in one commit, in order. On an error nothing is written.

        A store that is a SignalStore too has one ``apply`` for both, which takes a worker's changes among them (SES-21).
        """
        ...

    async def load_session(self, name: str) -> StoredSession | None:
        """What a loop starts from, None if there is no such session."""
        ...

    async def session(self, name: str) -> SessionRecord | None:
        """A session's row, None if there is none."""
        ...

    async def sessions(self, where: SessionFilter) -> list[SessionRecord]:
        """Sessions, most recently updated first, then by name downwards."""
        ...

    async def messages(self, session: str, *, after: int = 0, limit: int = 50) -> list[Message]:
        """Its messages with a higher seq than ``after``, in order, compacted ones included."""
        ...

    async def latest_messages(self, session: str, *, before: int | None = None, limit: int = 50) -> list[Message]:
        """Its last messages, in order; with ``before`` the last of those with a lower seq."""
        ...

    async def input(self, input_id: str) -> StoredInput | None:
        """One row of the ledger, None if there is none."""
        ...

    async def unsettled_inputs(self, session: str | None = None) -> list[StoredInput]:
        """Every queued input, of one session or of all, in the order in which they were accepted."""
        ...

    async def prune_sessions(self, before: float, limit: int = 1_000) -> int:
        """Remove sessions last saved before this time, with all they have; how many. Not those with a queued input,

        nor those that a run which has not ended names (STP-5).
        """
        ...
