"""What a store is that several processes may work on at once: a fleet of members, one of which leads.

The law: a member holds what it executes by a lease, and writes nothing once it is over; the leader holds the lock table by an
epoch, and writes nothing once there is a later one. Every process of a fleet does both halves through the same store.
Times are wall-clock seconds, leases are counted by the database's own clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import attrs

from concorde_trio._sansio.changes import Change
from concorde_trio._sansio.reports import Taken
from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs
from concorde_trio.records import Run, RunOutcome, RunState
from concorde_trio.signals.store import SignalStore


@attrs.frozen
class Execution:
    """A run that this member has taken. ``kind``: of its signal. ``epoch``: of the leader that offered it."""

    run: Run
    kind: str
    epoch: int


@attrs.frozen
class Finished:
    """How the Runtime ended a run, and what is written with its end (SES-21)."""

    run_id: str
    outcome: RunOutcome
    with_end: tuple[EmitSignals | LinkInputs, ...] = ()


@attrs.frozen
class StopAsked:
    """The leader asks for the end of a run; the first reason counts (RUN-6)."""

    run_id: str
    reason: str
    state: RunState


@attrs.frozen(kw_only=True)
class FoundRuns:
    """What became of offers. ``taken``: by living members, and not over. ``over``: with their outcomes. ``lost``: by dead ones."""

    taken: tuple[Taken, ...] = ()
    over: tuple[tuple[Taken, RunOutcome], ...] = ()
    lost: tuple[Taken, ...] = ()


@attrs.frozen(kw_only=True)
class FleetMember:
    """A process of a fleet. ``lease_left``: seconds, None when it is gone. ``capacity``: None for no bound.

    ``state``: live, draining, left or dead. ``running``: the ids of the runs that it executes.
    """

    id: str
    url: str | None
    host: str
    pid: int
    capacity: int | None
    state: str
    started_at: float
    lease: float
    lease_left: float | None
    leads: bool
    running: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """A JSON object of these fields."""
        return {**attrs.asdict(self), "running": list(self.running)}


@attrs.frozen(kw_only=True)
class FleetView:
    """Who leads, in which epoch, and who executes what.

    ``offered``: runs that nobody has taken yet, ``oldest_offer`` how old the oldest is, in seconds; ``unclaimed`` and
    ``oldest_unclaimed``: the same of pending signals. None where there is none.
    """

    epoch: int
    leader: str | None
    members: tuple[FleetMember, ...]
    offered: int
    oldest_offer: float | None
    unclaimed: int
    oldest_unclaimed: float | None

    def as_json(self) -> dict[str, Any]:
        """A JSON object of these fields."""
        return {**attrs.asdict(self), "members": [member.as_json() for member in self.members]}


@attrs.frozen
class LeaderSeen:
    """Who leads: a member's id, and where its agent server is."""

    member: str
    url: str | None


class Leadership(Protocol):
    """The leader's half of a store, from when it took the lead to when it laid it down or lost it."""

    @property
    def epoch(self) -> int:
        """Higher than that of every leader before."""
        ...

    async def apply(self, changes: Sequence[Change]) -> None:
        """``SignalStore.apply``, with offers and stops; LeaseLost, and no row changed, once there is a later epoch."""
        ...

    async def recall(self, run_ids: Iterable[str] | None = None) -> set[str]:
        """Take back what was offered and nobody has taken (None: all of it); what it was. Nobody takes it then."""
        ...

    async def look(self) -> FoundRuns:
        """What became of all offers, after members whose lease is over are marked dead: what these write changes no row."""
        ...

    async def over(self) -> FoundRuns:
        """Only the outcomes that members have written, oldest runs first, some hundred at most."""
        ...

    async def others(self) -> bool:
        """Whether there is another member that lives and is not about to leave."""
        ...


class Membership(Protocol):
    """One process's place in the fleet. It is over when its lease is: what was begun under it is cancelled by then."""

    @property
    def id(self) -> str:
        """Its name, which no other ever has."""
        ...

    @property
    def marker(self) -> str:
        """Marks the processes of its runs, in place of the queue's name (REC-6)."""
        ...

    @property
    def programs_lock(self) -> Path:
        """The file on which guards of its programs hold a flock (REC-6)."""
        ...

    @property
    def over(self) -> BaseException | None:
        """Why it is over, None while it is not."""
        ...

    async def take(self, limit: int, now: float) -> list[Execution]:
        """Take at most so many runs that are offered, in run order; they are marked as started ``now`` (RUN-1)."""
        ...

    async def finish(self, ends: Sequence[Finished]) -> set[str]:
        """Write outcomes, in one commit, and the ids of those that were written: the others changed no row."""
        ...

    async def stops(self) -> list[StopAsked]:
        """What the leader asks of the runs that it executes."""
        ...

    async def drain(self) -> None:
        """Say that it is about to leave: nobody counts on it any more."""
        ...

    async def leader(self) -> LeaderSeen | None:
        """Who leads now, None if nobody who lives does."""
        ...

    def lead(self) -> AbstractAsyncContextManager[Leadership | None]:
        """Lead while the block runs, if nobody else does (else None). On leaving the lead is laid down at once.

        The block is cancelled and LeaseLost raised when another one leads.
        """
        ...

    def on_fleet(self, heard: Callable[[str, Any], None]) -> AbstractAsyncContextManager[None]:
        """While entered, ``heard(word, about)`` is called in the Trio thread for what members tell each other.

        Words: ``offer``, ``taken`` (about: the Taken), ``over``, ``stop``, ``leader``, ``settled`` (about: ids of signals); ``gap``: some may have been
        missed. Each is spurious now and then.
        """
        ...


class FleetStore(SignalStore, Protocol):
    """A store for a fleet. A worker on it is a member, and takes the lead where nobody has it."""

    def enrol(self, *, url: str | None, capacity: int | None) -> AbstractAsyncContextManager[Membership]:
        """Be a member while the block runs. The block is cancelled, and LeaseLost raised, once its lease is over."""
        ...

    async def session_elsewhere(self, session: str) -> tuple[str | None] | None:
        """The URL of the other member that executes a run of this session, in a tuple; None if none does."""
        ...

    async def fleet(self) -> FleetView:
        """Who leads and who executes what, now."""
        ...


def for_fleet(store: SignalStore) -> TypeGuard[FleetStore]:
    """Whether a store is one for a fleet."""
    return hasattr(type(store), "enrol")


def by_member(found: FoundRuns) -> Mapping[str, str]:
    """The runs that living members execute, or ended and wrote down, by the member's id."""
    return {
        **{taken.run_id: taken.member for taken in found.taken},
        **{taken.run_id: taken.member for taken, _ in found.over},
    }
