"""What a session asks a store to write down: one frozen class for each kind of change.

A step of a session is a tuple of changes, applied in one commit and in this order. Times are wall-clock seconds.
"""

from __future__ import annotations

from typing import TypeAlias

import attrs

from concorde_trio.messages import Input, InputState, Message
from concorde_trio.records import NewSignal, Usage


@attrs.frozen(kw_only=True)
class SaveSession:
    """The session's row as it is now; made if there is none (its ``created_at`` is then ``at``).

    ``last_epoch`` and ``last_registration``: the last numbers of its lock (LSE-5); they never go down. ``usage``:
    all that it ever used (SES-16). ``held``: what is queued waits for a person (SES-12).
    """

    session: str
    at: float
    last_epoch: int
    last_registration: int
    usage: Usage
    held: bool = False


@attrs.frozen
class AddMessage:
    """One message, under its seq. The seqs of a session may have gaps for a while: calls that have no result yet."""

    session: str
    message: Message


@attrs.frozen(kw_only=True)
class AddInput:
    """An input is accepted: a row of the ledger, queued (SES-10a). An id that is there already is a StoreError.

    ``prompt``: it is the prompt of a run, which recovery closes and never runs again (SES-21). ``signal_id``: the
    signal that it became (SES-20), None if the session's loop has it.
    """

    session: str
    input: Input
    prompt: bool = False
    signal_id: str | None = None


@attrs.frozen
class SettleInputs:
    """These queued inputs are delivered or cancelled. One that is not queued is a StoreError."""

    ids: tuple[str, ...]
    state: InputState
    at: float


@attrs.frozen
class LinkInputs:
    """These queued inputs wait for this signal from now on, and no more in their session's loop (SES-21)."""

    ids: tuple[str, ...]
    signal_id: str


@attrs.frozen
class EmitSignals:
    """Signals are emitted in this commit, as by ``SignalStore.emit``: same order, same keys (SIG-7), same wake-up."""

    signals: tuple[NewSignal, ...]


SessionChange: TypeAlias = SaveSession | AddMessage | AddInput | SettleInputs | LinkInputs | EmitSignals
