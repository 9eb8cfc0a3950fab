"""What a session's change must say, whatever rows it meets: the checks that need no row, and the texts that are stored.

The law: these are the same in all stores, and a change that breaks one writes nothing. Each error names its row.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, TypeAlias

import attrs

from concorde_trio._sansio.json_values import decode, encode
from concorde_trio._sansio.session_changes import AddInput, AddMessage, LinkInputs, SaveSession, SettleInputs
from concorde_trio.errors import InvalidValue, StoreError
from concorde_trio.messages import InputState, Message, Role, message_from_json
from concorde_trio.records import Usage

SessionRowChange: TypeAlias = SaveSession | AddMessage | AddInput | SettleInputs | LinkInputs
"""A session's changes of its own rows: all but EmitSignals."""

MOST_BYTES = 500_000_000
"""Bytes of the text of one message: half of what SQLite holds in a row."""

_END = 2**63
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_DEEP = 3
"""How much deeper the attachments of an input stand in the message that it becomes than in their own list."""


def check_save(change: SaveSession) -> str:
    """The usage as JSON text; StoreError if the row cannot be stored."""
    row = f"session {change.session!r:.200}"
    _check_texts(row, change.session)
    _check_time(row, change.at)
    for name, number in (("last_epoch", change.last_epoch), ("last_registration", change.last_registration)):
        if not 0 <= number < _END:
            raise StoreError(f"{row} cannot be saved: its {name} is {number}, it must be a number from 0 below 2**63")
    return _text(row, attrs.asdict(change.usage))


def check_message(change: AddMessage) -> str:
    """The message as JSON text; StoreError if it cannot be stored."""
    message = change.message
    row = message_name(change.session, message.seq)
    _check_texts(row, change.session)
    _check_time(row, message.at)
    if not 1 <= message.seq < _END:
        raise StoreError(f"{row} cannot be stored: a seq is a number from 1 below 2**63")
    if (message.covers is not None) != (message.role is Role.SUMMARY):
        raise StoreError(f"{row} cannot be stored: a summary says what it covers, and nothing else does")
    if message.covers is not None and not 0 <= message.covers < message.seq:
        raise StoreError(f"{row} cannot be stored: it covers up to {message.covers}, which is not before itself")
    return _text(row, message.as_json())


def check_input(change: AddInput) -> str:
    """The attachments as JSON text; StoreError if the row cannot be stored."""
    row = f"input {change.input.id!r:.200}"
    _check_texts(row, change.session, change.input.id, change.input.text, change.input.sender, change.signal_id)
    _check_time(row, change.input.at)
    if not change.input.attachments:
        return "[]"
    # As deep as in a message, so that what was accepted can be delivered.
    value: Any = list(change.input.attachments)
    for _ in range(_DEEP):
        value = [value]
    return _text(row, value)[_DEEP:-_DEEP]


def check_settle_inputs(change: SettleInputs) -> None:
    """StoreError unless it settles, at a time."""
    if change.state not in (InputState.DELIVERED, InputState.CANCELLED):
        raise StoreError(f"inputs are settled as delivered or cancelled, not as {change.state!s}: {change.ids!r:.200}")
    _check_time(f"inputs {change.ids!r:.200}", change.at)


def check_link(change: LinkInputs) -> None:
    """StoreError if the signal's id cannot be stored."""
    _check_texts(f"inputs {change.ids!r:.200}", change.signal_id)


def check_emitted(changed: Iterable[str], emitted: set[str]) -> None:
    """StoreError if a signal is emitted and changed at once: which came first could not be told from a folded batch."""
    for signal_id in changed:
        if signal_id in emitted:
            raise StoreError(f"signal {signal_id} is emitted in this batch; change it in a later one")


def message_name(session: str, seq: int) -> str:
    """How an error calls a message."""
    return f"message {seq} of session {session!r:.200}"


def read_message(text: str) -> Message:
    """The message that ``check_message`` wrote."""
    return message_from_json(decode(text))


def read_usage(text: str) -> Usage:
    """The usage that ``check_save`` wrote."""
    return Usage(**json.loads(text))


def _check_texts(row: str, *texts: str | None) -> None:
    for text in texts:
        if text is not None and (found := _UNSTORABLE.search(text)):
            raise StoreError(
                f"{row} cannot be stored: {text!r:.80} has U+{ord(found[0]):04X} at character {found.start()}, "
                "which no store can hold; replace it"
            )


def _check_time(row: str, at: float) -> None:
    if not math.isfinite(at):
        raise StoreError(f"{row} cannot be stored: its time is {at!r}, it must be wall-clock seconds")


def _text(row: str, value: Any) -> str:
    try:
        return encode(value, what=row, max_bytes=MOST_BYTES)
    except InvalidValue as error:
        raise StoreError(f"{row} cannot be stored: {error}") from error
