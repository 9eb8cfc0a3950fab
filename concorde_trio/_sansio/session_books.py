"""What the parts of one session share: its lock, queue and transcript, the turn it is in, and the step being made.

The law: whatever a part changes here, it says in the same call: as a change to store, an event to publish, a thing to stop or
start. The driver does them in that order (SES-9: a reply is stored before its calls start).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import attrs

from concorde_trio._sansio.input_queue import InputQueue
from concorde_trio._sansio.model_events import EPOCH_KEY, PURPOSE_KEY, ModelRequest, Purpose
from concorde_trio._sansio.session_changes import AddMessage
from concorde_trio._sansio.session_lock import SessionLock
from concorde_trio._sansio.session_terms import SessionSettings, SessionTerms, StartRequest, Step
from concorde_trio._sansio.transcript import Transcript
from concorde_trio.events import SessionEvent
from concorde_trio.messages import Message
from concorde_trio.records import Usage

Ending = Literal["ok", "failed", "interrupted", "limited"]


@attrs.define
class RunTerms:
    """The run that the session's turns belong to (SES-20): its limit in tokens, and what it has used.

    ``over``: no further turn begins in it (SES-21).
    """

    limit: int | None
    usage: Usage = attrs.field(factory=Usage)
    over: bool = False

    def over_limit(self, more: Usage | None = None) -> str | None:
        """Why no further request may be made (SES-16), None if one may. ``more``: used, and not counted yet."""
        used = _tokens(self.usage) + (0 if more is None else _tokens(more))
        if self.limit is None or used < self.limit:
            return None
        return f"usage limit reached: {used:,} of {self.limit:,} tokens; no further request was made"


@attrs.define
class Turn:
    """The turn that is being taken. ``ending``: how it will end once its calls are settled."""

    number: int
    started: float
    input_ids: list[str]
    run: RunTerms
    usage: Usage = attrs.field(factory=Usage)
    text: str | None = None
    tries: int = 0
    not_compacted: bool = False
    ending: Ending | None = None
    error: str | None = None

    def end(self, how: Ending, error: str | None) -> None:
        """Decide how it ends; the first decision stands."""
        if self.ending is None:
            self.ending, self.error = how, error


class Books:
    """The shared state of one session's parts."""

    def __init__(self, name: str, terms: SessionTerms, lock: SessionLock, queue: InputQueue, said: Transcript) -> None:
        self.name = name
        self.terms = terms
        self.lock = lock
        self.queue = queue
        self.transcript = said
        self.usage = Usage()
        self.turn: Turn | None = None
        self.run: RunTerms | None = None
        self.dirty = False
        self.step = Step()

    @property
    def settings(self) -> SessionSettings:
        """How the session behaves."""
        return self.terms.settings

    def now(self) -> float:
        """Monotonic seconds."""
        return self.terms.clock()

    def wall(self) -> float:
        """Wall-clock seconds."""
        return self.terms.wall_clock()

    def say(self, event: type[SessionEvent], **fields: Any) -> None:
        """Publish an event, once the changes of this step are committed."""
        self.step.events.append(event(at=self.wall(), session=self.name, **fields))

    def add(self, message: Message) -> None:
        """Store a message that the transcript has."""
        self.step.changes.append(AddMessage(self.name, message))

    def instructions(self) -> str | None:
        """What the user's function says that the model is told. It may raise."""
        system = self.terms.system
        return None if system is None else system(self.name)

    def send(
        self,
        epoch: int,
        purpose: Purpose,
        messages: Iterable[Message],
        deadline: float,
        *,
        system: str | None = None,
    ) -> None:
        """Send a request once the changes are committed."""
        terms = self.terms
        for_turn = purpose is Purpose.TURN
        request = ModelRequest(
            session=self.name,
            purpose=purpose,
            messages=tuple(messages),
            tools=tuple(tool.spec for tool in terms.tools().values()) if for_turn else (),
            system=system,
            context={EPOCH_KEY: epoch, PURPOSE_KEY: purpose, "session": self.name},
        )
        self.dirty = True
        self.step.starts.append(StartRequest(epoch, request, deadline))

    def count(self, usage: Usage | None) -> None:
        """What a request used: of the session, its turn, its run; once a request, whatever became of it (SES-16)."""
        if usage is None:
            return
        self.usage = added(self.usage, usage)
        self.dirty = True
        run = self.run
        if self.turn is not None:
            self.turn.usage, run = added(self.turn.usage, usage), self.turn.run
        if run is not None:
            run.usage = added(run.usage, usage)

    def over_limit(self, more: Usage | None = None) -> str | None:
        """Why the run may make no further request, if there is a run and none may (SES-16)."""
        run = self.run if self.turn is None else self.turn.run
        return None if run is None else run.over_limit(more)


def added(one: Usage, other: Usage) -> Usage:
    """The sum of two usages; a cost that is not known adds nothing."""
    costs = [each.cost for each in (one, other) if each.cost is not None]
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        cost=sum(costs) if costs else None,
    )


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def seconds(value: float) -> str:
    """Seconds for a person."""
    return f"{value:.1f} s" if value < 10 and value != int(value) else f"{value:,.0f} s"
