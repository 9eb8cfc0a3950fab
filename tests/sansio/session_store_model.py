"""What is stored of one session, as slowly and plainly as it can be said: lists, and every change is checked against all of them."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from concorde_trio._sansio.message_shape import message_shape
from concorde_trio._sansio.session_changes import (
    AddInput,
    AddMessage,
    EmitSignals,
    LinkInputs,
    SaveSession,
    SessionChange,
    SettleInputs,
)
from concorde_trio.messages import Input, InputState, Message, Role, ToolCall
from concorde_trio.records import NewSignal


@attrs.define
class Row:
    input: Input
    prompt: bool
    signal_id: str | None
    state: InputState = InputState.QUEUED
    joined: bool = False
    """It was accepted into the queue of a session, and not as a signal."""


class StoreModel:
    """Takes a session's changes as a store does, and knows what a store cannot: whether they make sense."""

    def __init__(self) -> None:
        self.row: SaveSession | None = None
        self.messages: list[Message] = []
        self.inputs: dict[str, Row] = {}
        self.signals: dict[str, NewSignal] = {}
        self.stood_for: set[str] = set()
        """Inputs that were delivered by a prompt made of them, which is what the message has."""

    def apply(self, changes: Iterable[SessionChange]) -> None:
        for change in changes:
            self._one(change)
        self.check()

    def _one(self, change: SessionChange) -> None:
        match change:
            case SaveSession():
                if self.row is not None:
                    assert change.last_epoch >= self.row.last_epoch, "LSE-5: epochs only rise"
                    assert change.last_registration >= self.row.last_registration
                self.row = change
            case AddMessage(message=message):
                assert self.row is not None, "a message of no session"
                assert message.seq not in [each.seq for each in self.messages], "one seq twice"
                if message.role is Role.TOOL:
                    call = self.open_calls().get(message.seq)
                    assert call is not None and (call.id, call.name) == (message.call_id, message.tool)
                else:
                    assert not self.open_calls(), f"SES-9: {message.role} before a result"
                    assert all(message.seq > each.seq for each in self.messages)
                self.messages.append(message)
            case AddInput(input=given):
                assert self.row is not None, "an input of no session"
                assert given.id not in self.inputs, "SES-10a: one id twice"
                joined = change.signal_id is None and not change.prompt
                self.inputs[given.id] = Row(given, change.prompt, change.signal_id, joined=joined)
            case SettleInputs(ids=ids, state=state):
                for each in ids:
                    assert self.inputs[each].state is InputState.QUEUED, "SES-10a: settled twice"
                    self.inputs[each].state = state
            case LinkInputs(ids=ids, signal_id=signal_id):
                assert signal_id in self.signals
                for each in ids:
                    row = self.inputs[each]
                    assert row.state is InputState.QUEUED and row.signal_id is None, "SES-21: linked twice, or settled"
                    row.signal_id = signal_id
            case EmitSignals(signals=signals):
                for new in signals:
                    assert new.id not in self.signals
                    self.signals[new.id] = new

    # --- looking ------------------------------------------------------------------------------------------------

    def open_calls(self) -> dict[int, ToolCall]:
        """Calls without a result, by the place that it will have."""
        places = {place: call for message in self.messages for place, call in enumerate(message.calls, message.seq + 1)}
        return {place: call for place, call in places.items() if place not in [each.seq for each in self.messages]}

    def loaded(self) -> list[Message]:
        """What a loop starts from (see StoredSession)."""
        ordered = sorted(self.messages, key=lambda each: each.seq)
        summaries = [each for each in ordered if each.role is Role.SUMMARY]
        if not summaries:
            return ordered
        last = summaries[-1]
        assert last.covers is not None
        return [last, *(each for each in ordered if each.seq in last.keeps or each.seq > last.seq)]

    def queued(self, *, linked: bool = False) -> list[str]:
        """Ids of inputs that wait in the session's loop, or for a signal."""
        return [
            name
            for name, row in self.inputs.items()
            if row.state is InputState.QUEUED and (row.signal_id is not None) is linked
        ]

    # --- judging ------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """SES-9, SES-10a: what is stored is right after every commit."""
        open_calls = self.open_calls()
        stand_ins = [
            Message(seq=place, role=Role.TOOL, at=0.0, call_id=call.id, tool=call.name)
            for place, call in open_calls.items()
        ]
        everything = sorted([*self.messages, *stand_ins], key=lambda each: each.seq)
        wrong = message_shape([each for each in everything if each.role is not Role.SUMMARY])
        assert wrong is None, f"SES-9: {wrong}"
        if open_calls:
            last_reply = [each.seq for each in self.messages if each.role is Role.ASSISTANT][-1]
            assert min(open_calls) > last_reply, "SES-9: an open call that is not of the last reply"
            assert all(each.role in (Role.TOOL,) for each in self.messages if each.seq > last_reply)
        else:
            wrong = message_shape(self.loaded())
            assert wrong is None, f"SES-9, as it would be loaded: {wrong}"
        users = [each for each in self.messages if each.role is Role.USER]
        said = [each.id for message in users for each in message.inputs]
        delivered = [name for name, row in self.inputs.items() if row.state is InputState.DELIVERED]
        assert sorted(said) == sorted(set(delivered) - self.stood_for), "SES-10a: neither or both"
