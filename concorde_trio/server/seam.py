"""What the agent server needs of a worker, and no more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from concorde_trio.records import JSON, NewSignal, RunInfo
from concorde_trio.signals.event_bus import EventBus
from concorde_trio.signals.fleet import LeaderSeen
from concorde_trio.signals.in_hand import InHand
from concorde_trio.signals.schedules import Schedules
from concorde_trio.signals.store import SignalStore
from concorde_trio.signals.views import LockView, WaitView


class Worker(Protocol):
    """A worker as the routes see it; SignalWorker is one."""

    @property
    def store(self) -> SignalStore:
        """The queue."""
        ...

    @property
    def runtime(self) -> object:
        """What executes its runs; see ``conversations.keeper`` for whether it keeps sessions."""
        ...

    @property
    def status(self) -> str:
        """starting, running, stopping or stopped."""
        ...

    @property
    def last_error(self) -> str | None:
        """What last went wrong with the queue itself, None if nothing did."""
        ...

    @property
    def max_payload(self) -> int:
        """Bytes that the JSON text of a payload may have (SIG-5)."""
        ...

    def new_signal(self, kind: str, payload: JSON = None, *, key: str | None = None) -> NewSignal:
        """A checked signal, to be emitted into the store (SIG-5)."""
        ...

    @property
    def schedules(self) -> Schedules:
        """What emits which signal when (SCH-1)."""
        ...

    async def retry(self, signal_id: str) -> str:
        """PST-5; UnknownId, WrongState."""
        ...

    async def cancel_run(self, run_id: str) -> None:
        """RUN-6; UnknownId, WrongState."""
        ...

    async def cancel_signal(self, signal_id: str) -> None:
        """RUN-6; UnknownId, WrongState."""
        ...

    def attribute(self, values: Sequence[str]) -> RunInfo | None:
        """The run that a request with these tag header values comes from (TAG-3)."""
        ...

    def mask(self, text: str) -> str:
        """TAG-4."""
        ...

    def mask_json(self, value: JSON) -> JSON:
        """TAG-4, in every string of the value."""
        ...

    def why(self, run_id: str) -> WaitView | None:
        """LCK-7; None when the run is not in the lock table."""
        ...

    def why_all(self, run_ids: Iterable[str]) -> dict[str, WaitView]:
        """The same for several runs; those not in the lock table are left out."""
        ...

    def locks(self, shown: int | None = None) -> list[LockView]:
        """What is held and who waits."""
        ...

    @property
    def leads(self) -> bool:
        """Whether the lock table is here, and not at another member of the fleet."""
        ...

    async def leader(self) -> LeaderSeen | None:
        """Who leads the fleet, None if nobody does."""
        ...

    async def learn_tags(self) -> None:
        """Know every tag that is live anywhere, so that it is masked here (TAG-4)."""
        ...

    @property
    def stop_mode(self) -> str | None:
        """drain, park or cancel, once a stop was asked for."""
        ...

    @property
    def bus(self) -> EventBus:
        """Every event, from now on."""
        ...

    def in_hand(self) -> InHand | None:
        """The signals, runs and locks that it has in hand, None before it has any."""
        ...

    def stopping(self, run_id: str) -> float | None:
        """Since when (wall-clock seconds) a run is being stopped, None when it is not (RUN-6)."""
        ...
