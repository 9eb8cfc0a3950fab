"""Compaction: what was said long ago becomes a summary, in two trips under one lease (SES-15).

The law: the transcript changes once, when the second trip has come back well, or not at all.
"""

from __future__ import annotations

import attrs

from concorde_trio import events
from concorde_trio._sansio.model_events import Purpose
from concorde_trio._sansio.session_books import Books
from concorde_trio._sansio.session_requests import Request, Requests
from concorde_trio.messages import Message, Role

DRAFT = (
    "This conversation has to continue in less space. Write a summary of everything above that somebody who goes on with it "
    "needs: what people asked for, what was decided and why, what was done and what came of it, exact names, paths, ids and "
    "numbers, what is still open. Answer with the summary alone."
)
FINAL = (
    "Here is the summary you wrote:\n\n{draft}\n\nCompare it with the conversation above. Write it again, complete: put in what "
    "is missing, mend what is wrong, leave out what nobody needs. Answer with the summary alone."
)
STAYS = (
    " The last message of a person stays in the conversation and will stand after your summary: say what was done for it "
    "already, with its results, and what of it is still open."
)
GO_ON = (
    "\n\n[What the person says next was said before the end of what is summarised here. What was done for it is in this "
    "summary: go on from there, and do nothing of it twice.]"
)
"""At the end of a summary that tells of the turn that is being taken: it stands before the request it was done for."""


@attrs.define
class _Work:
    """``read``: what is summarised; with the request that stays, where what was done for it goes (``inside``)."""

    gone: tuple[Message, ...]
    kept: tuple[Message, ...]
    read: tuple[Message, ...]
    inside: bool


class Compaction:
    """The compaction of one session that is under way, or was asked for."""

    def __init__(self, books: Books, requests: Requests) -> None:
        self._books = books
        self._requests = requests
        self._work: _Work | None = None
        self.wanted = False

    @property
    def going(self) -> bool:
        """Whether it is under way."""
        return self._work is not None

    def due(self) -> bool:
        """Whether one should begin now: somebody asked, or the transcript comes near the model's window."""
        if self.wanted:
            return True
        window, part = self._books.terms.context_window, self._books.settings.compact_at
        turn = self._books.turn
        if window is None or part is None or (turn is not None and turn.not_compacted):
            return False
        return self._books.transcript.tokens > part * window

    def begin(self) -> bool:
        """Send the first trip; False if there is nothing to compact."""
        self.wanted = False
        found = self._books.transcript.compactable()
        if found is None:
            self._give_up()
            return False
        gone, kept = found
        inside = bool(kept) and gone[-1].seq > kept[0].seq
        read = self._books.transcript.messages if inside else gone
        self._work = work = _Work(gone, kept, read, inside)
        question = self._question(DRAFT + STAYS if inside else DRAFT)
        self._requests.open(Purpose.COMPACTION_DRAFT, (*work.read, question), 1)
        return True

    def replied(self) -> None:
        """A trip has come back: the next one, or the end."""
        work, request = self._work, self._requests.current
        assert work is not None and request is not None
        text = request.builder.reply().text.strip()
        if not text or request.builder.reply().calls:
            self.failed(self._requests.take(), "the model gave no summary")
        elif request.purpose is Purpose.COMPACTION_DRAFT and (limited := self._books.over_limit(request.builder.usage)):
            self.failed(self._requests.take(), limited)
        elif request.purpose is Purpose.COMPACTION_DRAFT:
            question = self._question(FINAL.format(draft=text) + (STAYS if work.inside else ""))
            self._requests.open(Purpose.COMPACTION_FINAL, (*work.read, question), 1)
        else:
            self._requests.take()
            self._work = None
            books = self._books
            summary = text + GO_ON if work.inside else text
            books.add(books.transcript.compact(summary, books.wall(), work.kept))
            books.say(events.Compacted, messages=len(work.gone), error=None)
            if books.turn is not None:
                books.turn.not_compacted = True  # once a turn is enough, whatever it saved

    def failed(self, request: Request, reason: str) -> None:
        """It came to nothing; the transcript is as it was."""
        self._work = None
        self._books.say(events.Compacted, messages=0, error=f"{request.purpose} failed: {reason}")
        self._give_up()

    def drop(self) -> None:
        """Its request is gone, and nothing more is known of it."""
        self._work = None
        self._give_up()

    def _give_up(self) -> None:
        if self._books.turn is not None:
            self._books.turn.not_compacted = True

    def _question(self, text: str) -> Message:
        return Message(seq=self._books.transcript.last_seq + 1, role=Role.USER, text=text, at=self._books.wall())
