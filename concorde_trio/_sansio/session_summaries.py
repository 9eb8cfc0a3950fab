"""Outputs that are too long for the transcript: to the summary model, one after another, or cut (SES-6, SES-14).

The law: every output that comes in here leaves as exactly one result: the summary, unchanged, or what is left of the output
once its middle is cut out. Expiry, error, an empty summary and one longer than the output take one path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import attrs

from concorde_trio import events
from concorde_trio._sansio.holds import ExpiredLease
from concorde_trio._sansio.model_events import ModelEvent, Purpose
from concorde_trio._sansio.reply import ReplyBuilder
from concorde_trio._sansio.session_books import Books
from concorde_trio._sansio.session_terms import RequestFailure, StopRequest
from concorde_trio.messages import CallOutcome, Message, Role

ASK = (
    "Below is the output of the tool {tool}, which is too long for the conversation. Write what of it matters for going on "
    "with the work: results, errors with their exact words, names, numbers, paths. Leave out repetition. Answer with that "
    "alone.\n\n{text}"
)


@attrs.frozen(kw_only=True)
class LongOutput:
    """An output that waits for its summary; ``place`` is that of its result."""

    place: int
    tool: str
    text: str
    path: str | None


@attrs.define
class _Current:
    epoch: int
    output: LongOutput
    builder: ReplyBuilder
    since: float


Settle = Callable[[LongOutput, CallOutcome, str], None]


class Summaries:
    """The outputs of one session that are being summarised. ``settle`` takes each result."""

    def __init__(self, books: Books, settle: Settle) -> None:
        self._books = books
        self._settle = settle
        self._waiting: deque[LongOutput] = deque()
        self.current: _Current | None = None

    def add(self, output: LongOutput) -> None:
        """An output; its turn comes when those before it are done."""
        self._waiting.append(output)
        self._next()

    def progress(self, epoch: int | None, event: ModelEvent) -> bool:
        """What came of the summary that is out; whether it is waited for."""
        current = self.current
        if current is None or epoch not in (None, current.epoch):
            return False
        if current.builder.feed(event):
            self._books.lock.touch_summarizing(current.epoch)
        return True

    def over(self, epoch: int | None, failure: RequestFailure | None, *, exempt: bool = False) -> None:
        """The summary request of this epoch is over (SES-2: a stale one is dropped). ``exempt``: it is our own 504."""
        current, books = self.current, self._books
        if current is None or epoch not in (None, current.epoch):
            now = None if current is None else current.epoch
            books.say(events.ReplyDropped, what="summary", epoch=epoch, call_id=None, current=now)
            return
        if not exempt:
            books.lock.clear_summarizing(current.epoch)
        self.current = None
        books.count(current.builder.usage)
        output, text = current.output, None
        if failure is None and current.builder.complete:
            text = current.builder.reply().text
        elif failure is not None:
            books.say(
                events.ModelFailed,
                epoch=current.epoch,
                purpose=Purpose.SUMMARY,
                error=failure.message,
                retry_in=None,
            )
        if text and text.strip() and len(text) <= len(output.text):
            self._settle(output, CallOutcome.SUMMARIZED, text)
        else:
            self._settle(output, CallOutcome.TRUNCATED, self._cut(output))
        self._next()

    def expired(self, expired: ExpiredLease) -> None:
        """SES-6: a synthetic 504 through the same handler as a real reply."""
        waited = f"no summary for {expired.waited:,.0f} s"
        self._books.step.stops.append(StopRequest(expired.epoch, waited))
        self.over(expired.epoch, RequestFailure(waited, status=504), exempt=True)

    def stop(self, reason: str) -> None:
        """Everything that waits for a summary is cut now: a person cut in, and finished results are kept (SES-12)."""
        current, self.current = self.current, None
        waiting = [*self._waiting]
        self._waiting.clear()
        if current is not None:
            self._books.lock.clear_summarizing(current.epoch)
            self._books.count(current.builder.usage)
            self._books.step.stops.append(StopRequest(current.epoch, reason))
            waiting.insert(0, current.output)
        for output in waiting:
            self._settle(output, CallOutcome.TRUNCATED, self._cut(output))

    def _next(self) -> None:
        books = self._books
        while self._waiting and books.over_limit() is not None:  # a summary is a request too (SES-16)
            output = self._waiting.popleft()
            self._settle(output, CallOutcome.TRUNCATED, self._cut(output))
        if self.current is not None or not self._waiting:
            return
        output = self._waiting.popleft()
        settings = books.settings
        epoch = books.lock.set_summarizing(settings.summarizing_timeout, ceiling=settings.summarizing_ceiling)
        self.current = _Current(epoch, output, ReplyBuilder(), books.now())
        lease = books.lock.summarizing
        assert lease is not None
        question = ASK.format(tool=output.tool, text=output.text)
        message = Message(seq=1, role=Role.USER, text=question, at=books.wall())
        books.send(epoch, Purpose.SUMMARY, (message,), lease.deadline)
        books.say(events.ModelRequested, epoch=epoch, purpose=Purpose.SUMMARY, attempt=1)

    def _cut(self, output: LongOutput) -> str:
        return cut(output.text, self._books.settings.truncate_to, output.path)


def cut(text: str, keep: int, path: str | None = None) -> str:
    """The first and last ``keep // 2`` characters of ``text``, around a line that says how many are left out (SES-6)."""
    half = keep // 2
    left_out = len(text) - 2 * half
    if left_out <= 0:
        return text
    where = f"; all of it is in {path}" if path else ""
    return f"{text[:half]}\n[... {left_out:,} characters left out{where} ...]\n{text[len(text) - half :]}"
