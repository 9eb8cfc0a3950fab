"""Sessions of a fleet, where another process may have the loop: what is done by rows alone, and where a loop is.

The law: no two loops of a session are in a run at once, for its run is one. So what must be done while none is, or may be done
beside one, is done by rows that a loop finds when it begins its run: an input is accepted with its signal, and what a process
left that is gone is settled before another run of its sessions may start.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any, cast

from concorde_trio._sansio.input_queue import Receipt
from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs, SessionChange, SettleInputs
from concorde_trio.conversations.outside import submit_from_outside
from concorde_trio.conversations.session_input import signal_for
from concorde_trio.errors import LeaseLost, StoreError
from concorde_trio.messages import Input, InputState
from concorde_trio.records import SignalState
from concorde_trio.sessions.store import SessionStore, StoredInput
from concorde_trio.signals.fleet import FleetStore
from concorde_trio.signals.store import SignalStore

logger = logging.getLogger("concorde_trio.sessions")

OVER = (SignalState.DONE, SignalState.FAILED)


class FleetDoor:
    """One process's door to the sessions of all. ``store`` and ``signals`` are of one queue, if its sessions are kept there."""

    def __init__(self, store: SessionStore, signals: SignalStore) -> None:
        self._store = store
        self._signals = cast("FleetStore", signals)

    async def elsewhere(self, session: str) -> tuple[str | None] | None:
        """Where another process has a run of this session in flight: the URL of its agent server."""
        return await self._signals.session_elsewhere(session)

    async def submit(self, session: str, given: Input) -> Receipt:
        """An input and its signal, in one commit."""
        return (await submit_from_outside(self._store, session, given)).receipt

    async def signal_over(self, signal_id: str, now: float) -> None:
        """A ``session.input`` is over; if no run took its input, it is cancelled."""
        record = await self._signals.signal(signal_id)
        payload: Any = None if record is None else record.payload
        input_id = payload.get("input") if isinstance(payload, dict) else None
        stored = await self._store.input(input_id) if isinstance(input_id, str) else None
        if stored is not None and stored.state is InputState.QUEUED and stored.signal_id == signal_id:
            await self._apply([SettleInputs((stored.input.id,), InputState.CANCELLED, now)])

    async def settle_left(self, sessions: Collection[str] | None, but: Collection[str], now: float) -> None:
        """Settle what no loop has any more, of these sessions (None: all) and not of those that run (``but``).

        Prompts are closed (SES-21), inputs that wait for nothing become signals (SES-20), those whose signal is over are cancelled.
        """
        found: dict[str, list[StoredInput]] = {}
        for each in await self._store.unsettled_inputs():
            if each.session not in but and (sessions is None or each.session in sessions):
                found.setdefault(each.session, []).append(each)
        for session, inputs in found.items():
            await self._settle(session, inputs, now)

    async def _settle(self, session: str, inputs: Sequence[StoredInput], now: float) -> None:
        changes: list[SessionChange] = []
        closed: list[str] = []
        waiting: list[StoredInput] = []
        for each in inputs:
            if each.signal_id is not None:
                record = await self._signals.signal(each.signal_id)
                if record is None or record.state in OVER:
                    closed.append(each.input.id)
                else:
                    waiting.clear()  # what came before it waits for the run of that one, and joins it (SES-10)
            elif each.prompt:
                closed.append(each.input.id)
            else:
                waiting.append(each)
        if closed:
            changes.append(SettleInputs(tuple(closed), InputState.CANCELLED, now))
        for each in waiting:
            new = signal_for(session, each.input)
            changes += [EmitSignals((new,)), LinkInputs((each.input.id,), new.id)]
        if changes:
            await self._apply(changes)

    async def _apply(self, changes: Sequence[SessionChange]) -> None:
        try:
            await self._store.apply(changes)
        except LeaseLost:
            raise
        except StoreError as error:
            logger.info("an input was settled by another process meanwhile: %s", error)
