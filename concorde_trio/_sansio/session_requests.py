"""The one model request of a session: sent under a lease, fed while it streams, over in exactly one way.

The law: ``current`` is set if and only if this session's llm lease is held. A reply, an error, an expiry and an interrupt
all end it by ``take``; what comes after that is dropped by its epoch (SES-2).
"""

from __future__ import annotations

from typing import Any

import attrs

from concorde_trio import events
from concorde_trio._sansio.model_events import ModelEvent, Purpose
from concorde_trio._sansio.reply import ReplyBuilder
from concorde_trio._sansio.session_books import Books
from concorde_trio._sansio.session_terms import RequestFailure
from concorde_trio.messages import Message

RETRIED = frozenset({429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed (SES-11)."""


@attrs.define
class Request:
    """A request that is out. ``progress``: when it last moved, on the session's clock."""

    epoch: int
    purpose: Purpose
    since: float
    builder: ReplyBuilder = attrs.field(factory=ReplyBuilder)


class Requests:
    """The request that is out, if one is."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self.current: Request | None = None

    def open(self, purpose: Purpose, messages: tuple[Message, ...], attempt: int, *, system: str | None = None) -> None:
        """Take the lease and send; a compaction's second trip goes under the lease of its first (SES-15)."""
        books = self._books
        settings = books.settings
        epoch, taken = books.lock.acquire_or_current_llm(settings.llm_timeout, ceiling=settings.llm_ceiling)
        assert taken == (self.current is None)
        if not taken:
            assert self.current is not None
            books.count(self.current.builder.usage)
            books.lock.touch_llm(epoch)
        self.current = Request(epoch, purpose, books.now())
        lease = books.lock.llm
        assert lease is not None
        books.send(epoch, purpose, messages, lease.deadline, system=system)
        books.say(events.ModelRequested, epoch=epoch, purpose=purpose, attempt=attempt)

    def progress(self, epoch: int | None, purpose: Any, event: ModelEvent) -> bool:
        """What came while it streams; whether it is waited for (SES-2)."""
        request = self.current
        if request is None or epoch not in (None, request.epoch) or purpose not in (None, request.purpose):
            return False
        if request.builder.feed(event):
            self._books.lock.touch_llm(request.epoch)
        return True

    def matches(self, epoch: int | None, purpose: Any) -> bool:
        """Whether a reply with this context is waited for; if it is not, that is told, once a reply."""
        request = self.current
        if request is not None and epoch in (None, request.epoch) and purpose in (None, request.purpose):
            return True
        current = None if request is None else request.epoch
        self._books.say(events.ReplyDropped, what="reply", epoch=epoch, call_id=None, current=current)
        return False

    def take(self, *, swept: bool = False) -> Request:
        """It is over, whatever way: its lease is free, its usage counted. ``swept``: a sweep took the lease already."""
        request = self.current
        assert request is not None
        self.current = None
        if not swept:
            self._books.lock.release_llm(request.epoch)
        self._books.count(request.builder.usage)
        return request

    def failed(self, request: Request, failure: RequestFailure, retry_in: float | None) -> None:
        """Say that it failed."""
        self._books.say(
            events.ModelFailed,
            epoch=request.epoch,
            purpose=request.purpose,
            error=failure.message,
            retry_in=retry_in,
        )
