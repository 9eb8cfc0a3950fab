"""Sessions' changes, folded to one row for each session, message and input they touch: what a SQL store writes.

The law: as in ``change_plan``, writing a plan in any order gives what the changes give in theirs, and so does writing
the merged plan of several callers, so that a commit has one statement for each kind of row, however many sessions
are in it. Changes that contradict each other are refused here; what contradicts the rows is found by the store.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from concorde_trio._sansio.session_changes import (
    AddInput,
    AddMessage,
    LinkInputs,
    SaveSession,
    SettleInputs,
)
from concorde_trio.errors import StoreError
from concorde_trio.messages import InputState, Role
from concorde_trio.stores.session_change_checks import (
    SessionRowChange,
    check_input,
    check_link,
    check_message,
    check_save,
    check_settle_inputs,
    message_name,
)


@attrs.define
class SessionDelta:
    """One session. ``made_at``: its ``created_at`` if it is new. None leaves what is stored, numbers take the highest.

    ``messages``: how many it gets.
    """

    name: str
    made_at: float
    saved_at: float | None = None
    last_epoch: int = 0
    last_registration: int = 0
    usage: str | None = None
    held: bool | None = None
    messages: int = 0


@attrs.frozen
class NewMessage:
    """A message, and its JSON text."""

    session: str
    seq: int
    role: Role
    at: float
    covers: int | None
    document: str


@attrs.define
class InputDelta:
    """One input after. ``new`` with its attachments as text if it is new; otherwise the row must be queued before."""

    id: str
    new: tuple[AddInput, str] | None = None
    state: InputState = InputState.QUEUED
    signal_id: str | None = None
    settled_at: float | None = None


@attrs.define
class SessionPlan:
    """What sessions' changes come to."""

    sessions: dict[str, SessionDelta] = attrs.field(factory=dict)
    messages: dict[tuple[str, int], NewMessage] = attrs.field(factory=dict)
    inputs: dict[str, InputDelta] = attrs.field(factory=dict)

    def add(self, change: SessionRowChange) -> None:
        """Fold one more change in; StoreError if it contradicts itself or one before it."""
        match change:
            case SaveSession(session=name, at=at, held=held):
                self._session(
                    SessionDelta(name, at, at, change.last_epoch, change.last_registration, check_save(change), held)
                )
            case AddMessage(session, message):
                text = check_message(change)
                self._session(SessionDelta(session, message.at, messages=1))
                self._message(NewMessage(session, message.seq, message.role, message.at, message.covers, text))
            case AddInput(session=session, input=given, signal_id=signal_id):
                text = check_input(change)
                self._session(SessionDelta(session, given.at))
                self._input(InputDelta(given.id, (change, text), signal_id=signal_id))
            case SettleInputs(ids, state, at):
                check_settle_inputs(change)
                for each in ids:
                    self._input(InputDelta(each, state=state, settled_at=at))
            case LinkInputs(ids, signal_id):
                check_link(change)
                for each in ids:
                    self._input(InputDelta(each, signal_id=signal_id))

    def merge(self, later: SessionPlan) -> None:
        """Fold a later plan in, and leave that one as it is; StoreError if it contradicts this."""
        for session in later.sessions.values():
            self._session(session)
        for message in later.messages.values():
            self._message(message)
        for given in later.inputs.values():
            self._input(given)

    def _session(self, later: SessionDelta) -> None:
        mine = self.sessions.get(later.name)
        if mine is None:
            self.sessions[later.name] = attrs.evolve(later)
            return
        if later.saved_at is not None:
            mine.saved_at, mine.usage, mine.held = later.saved_at, later.usage, later.held
        mine.last_epoch = max(mine.last_epoch, later.last_epoch)
        mine.last_registration = max(mine.last_registration, later.last_registration)
        mine.messages += later.messages

    def _message(self, later: NewMessage) -> None:
        if (later.session, later.seq) in self.messages:
            raise StoreError(
                f"{message_name(later.session, later.seq)} stands twice in one batch; each needs its own seq"
            )
        self.messages[later.session, later.seq] = later

    def _input(self, later: InputDelta) -> None:
        mine = self.inputs.get(later.id)
        if mine is None:
            self.inputs[later.id] = attrs.evolve(later)
            return
        if later.new is not None:
            raise StoreError(f"input {later.id!r} stands twice in one batch; each input needs a new id")
        if mine.state is not InputState.QUEUED:
            raise StoreError(f"input {later.id!r} must be queued to become {later.state}, but it is {mine.state}")
        mine.state, mine.settled_at = later.state, later.settled_at
        if later.signal_id is not None:
            mine.signal_id = later.signal_id


def merged(plans: Iterable[SessionPlan]) -> SessionPlan:
    """One plan of several, in order; the only one itself."""
    first, *rest = [plan for plan in plans if plan.sessions or plan.inputs] or [SessionPlan()]
    if not rest:
        return first
    whole = SessionPlan()
    for plan in (first, *rest):
        whole.merge(plan)
    return whole
