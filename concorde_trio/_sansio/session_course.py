"""The course of one session: from wherever it is, as far as it can go now.

The law: ``_go_on`` is the only place where a turn, a request or a call begins, and everything that happens ends with it. So
input that comes at any moment is seen by the next going on, and no moment lies between the last look and idle (SES-10b).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from concorde_trio import events
from concorde_trio._sansio.holds import Expired, ExpiredLease, ExpiredTool
from concorde_trio._sansio.input_queue import InputQueue
from concorde_trio._sansio.model_events import Purpose
from concorde_trio._sansio.session_backoff import Backoff, may_pass, pause
from concorde_trio._sansio.session_books import Books, RunTerms, Turn, seconds
from concorde_trio._sansio.session_calls import Calls
from concorde_trio._sansio.session_changes import SaveSession, SettleInputs
from concorde_trio._sansio.session_compaction import Compaction
from concorde_trio._sansio.session_lock import SessionLock
from concorde_trio._sansio.session_places import Places
from concorde_trio._sansio.session_requests import Request, Requests
from concorde_trio._sansio.session_terms import Linked, RequestFailure, SessionTerms, Step, StopRequest, TurnResult
from concorde_trio._sansio.transcript import Transcript
from concorde_trio.messages import CallOutcome, Input, InputState, Message, Role
from concorde_trio.records import Usage

CUT_OFF = (
    "The program that ran this session ended before this call had a result. The call may have taken effect, wholly, in part "
    "or not at all; look before you do it again."
)


class SessionCourse:
    """The state of one session, and how it goes on. ``take_step`` gives what is to be done now.

    ``messages``, ``last_seq``, ``last_epoch``, ``last_registration``, ``usage``, ``queued``, ``linked`` (inputs that became
    signals, by id) and ``held`` are what the store has of it (a StoredSession); ``order``: the ids of all inputs that wait,
    as they were accepted (unless given, linked ones first).
    """

    def __init__(
        self,
        name: str,
        terms: SessionTerms,
        *,
        messages: Iterable[Message] = (),
        last_seq: int = 0,
        last_epoch: int = 0,
        last_registration: int = 0,
        usage: Usage | None = None,
        queued: Iterable[Input] = (),
        linked: Mapping[str, Linked] | None = None,
        held: bool = False,
        order: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.terms = terms
        lock = SessionLock(terms.clock, last_epoch=last_epoch, last_registration=last_registration)
        queue = InputQueue(bound=terms.settings.max_queue)
        self.books = books = Books(name, terms, lock, queue, Transcript(messages, last_seq))
        books.usage = usage or Usage()
        self.requests = Requests(books)
        self.calls = Calls(books)
        self.compaction = Compaction(books, self.requests)
        self.backoff: Backoff | None = None
        self.not_before = -math.inf
        self.not_before_reason = ""
        self.linked: dict[str, Linked] = dict(linked or {})
        self.places = Places((*order, *self.linked))
        self.stands_for: dict[str, tuple[str, ...]] = {}  # inputs that a run's prompt was made of, by the prompt's id
        self.closed = False
        self.handing_over = False  # what a run left became signals, in a commit that is not made yet (SES-21)
        self._turns = 0
        self._taken: list[Expired] = []  # holds that a sweep took, not settled yet
        repaired = books.transcript.repair(CUT_OFF, books.wall())
        for message in repaired:
            books.add(message)
        for each in queued:
            queue.restore(each)
            self.places.take(each.id)
        if held:
            queue.hold()
        books.say(events.SessionLoaded, messages=len(books.transcript), queued=len(queue), repaired=len(repaired))

    @property
    def run(self) -> RunTerms | None:
        """The run that its turns belong to, None between runs (SES-20)."""
        return self.books.run

    @run.setter
    def run(self, run: RunTerms | None) -> None:
        self.books.run = run

    # --- what the driver takes ------------------------------------------------------------------------------

    def take_step(self) -> Step | None:
        """What is to be done now, in the order of Step's fields; None if nothing is."""
        books, step = self.books, self.books.step
        if books.dirty:
            books.dirty = False
            step.changes.insert(
                0,
                SaveSession(
                    session=self.name,
                    at=books.wall(),
                    last_epoch=books.lock.last_epoch,
                    last_registration=books.lock.last_registration,
                    usage=books.usage,
                    held=books.queue.held,
                ),
            )
        if not (step.changes or step.events or step.stops or step.starts or step.turns):
            return None
        books.step = Step()
        return step

    def next_due(self) -> float:
        """When ``timer`` must be called at the latest; infinity for a session that waits for nothing (SES-4)."""
        if self.idle:
            return math.inf
        if self._taken:
            return -math.inf
        due = min(self.books.lock.next_deadline(), self.calls.next_stop())
        if self.backoff is not None:
            due = min(due, self.backoff.until)
        return due

    @property
    def idle(self) -> bool:
        """Whether nothing is held, no turn is being taken, and nothing queued could run."""
        books = self.books
        waits = len(books.queue) and not books.queue.held and self._may_begin()
        return books.turn is None and not books.lock.is_locked() and not self._taken and not waits

    # --- inside: going on -----------------------------------------------------------------------------------

    def _go_on(self) -> None:
        books = self.books
        while True:
            if books.transcript.open_calls_left:
                if books.turn is not None and books.turn.ending is None:
                    self.calls.advance()
                if books.transcript.open_calls_left:
                    return
            if books.lock.is_locked() or self._backing_off():
                return
            if books.turn is not None and books.turn.ending is not None:
                self._end_turn(books.turn)
            elif books.turn is None:
                if not self._begin_something():
                    return
            elif not self._continue(books.turn):
                return

    def _backing_off(self) -> bool:
        if self.backoff is None:
            return False
        if self.books.now() < self.backoff.until:
            return True
        self.backoff = None
        return False

    def _may_begin(self) -> bool:
        """Whether a turn may begin at all: with a worker only inside a run, and one that has tokens left."""
        if self.closed:
            return False
        if self.run is None:
            return self.terms.signal_for is None
        return not self.run.over and self.run.over_limit() is None

    def _begin_something(self) -> bool:
        """From idle: a turn, which compacts first if somebody wants that, or that alone. Whether anything may have changed."""
        if not self._may_begin():
            return False
        delivery = self.books.queue.drain()
        if delivery is None:
            return self.compaction.wanted and self.compaction.begin()
        self._turns += 1
        run = self.run if self.run is not None else RunTerms(self.books.settings.usage_limit)
        self.books.turn = Turn(self._turns, self.books.now(), [], run)
        self._deliver(delivery.inputs, delivery.text)
        self.books.say(events.TurnStarted, turn=self._turns, input_ids=tuple(self.books.turn.input_ids))
        return True

    def _continue(self, turn: Turn) -> bool:
        """At a boundary inside a turn: its end, what is queued, a compaction, or the next request (SES-10)."""
        books = self.books
        last = books.transcript.last
        if last is not None and last.role is Role.ASSISTANT:
            turn.end("ok", None)
            return True
        limited = books.over_limit()
        if limited is not None:
            turn.end("limited", limited)
            return True
        delivery = books.queue.drain()
        if delivery is not None:
            self._deliver(delivery.inputs, delivery.text)
        if books.now() < self.not_before:
            self.backoff = Backoff(books.now(), self.not_before, True, self.not_before_reason)
            return False
        if self.compaction.due() and self.compaction.begin():
            return True
        try:
            system = books.instructions()
        except (KeyboardInterrupt, GeneratorExit):  # these are about the program
            raise
        except BaseException as error:  # noqa: BLE001 - the user's code; a model must not work without its instructions
            told = f"{type(error).__name__}: {error!s:.200}"
            turn.end("failed", f"the function that gives the model's instructions (system) failed: {told}")
            return True
        self.requests.open(Purpose.TURN, books.transcript.messages, turn.tries + 1, system=system)
        return True

    def _deliver(self, inputs: tuple[Input, ...], text: str) -> None:
        books = self.books
        assert books.turn is not None
        books.add(books.transcript.add_user(inputs, text, books.wall()))
        for each in inputs:
            books.turn.input_ids += [each.id, *self.stands_for.pop(each.id, ())]
        self._settled(inputs, InputState.DELIVERED)

    def _settled(self, inputs: tuple[Input, ...], state: InputState, *, queued: bool = True) -> None:
        ids = tuple(each.id for each in inputs)
        self.books.step.changes.append(SettleInputs(ids, state, self.books.wall()))
        for input_id in ids:
            self.books.say(events.InputSettled, input_id=input_id, state=state)
        if queued:
            self.books.queue.forget(ids)
        self.places.forget(ids)

    def _end_turn(self, turn: Turn) -> None:
        assert turn.ending is not None
        books = self.books
        books.turn = None
        books.dirty = True
        if turn.ending != "ok" and self.terms.signal_for is not None:
            turn.run.over = True  # what is queued gets runs of its own (SES-21)
        books.step.turns.append(
            TurnResult(
                turn=turn.number,
                input_ids=tuple(turn.input_ids),
                started=turn.started,
                ended=books.now(),
                outcome=turn.ending,
                error=turn.error,
                text=turn.text,
                usage=turn.usage,
            )
        )
        books.say(events.TurnEnded, turn=turn.number, outcome=turn.ending, error=turn.error)

    # --- inside: replies ------------------------------------------------------------------------------------

    def _replied(self, failure: RequestFailure | None) -> None:
        request = self.requests.current
        assert request is not None
        if failure is None and not request.builder.complete:
            failure = RequestFailure("the reply ended before the model said that it was complete", connection=True)
        if request.purpose is not Purpose.TURN:
            if failure is None:
                self.compaction.replied()
            else:
                self.compaction.failed(self.requests.take(), failure.message)
            return
        self.requests.take()
        turn, books = self.books.turn, self.books
        assert turn is not None
        if failure is not None:
            self._request_failed(turn, request, failure)
            return
        turn.tries = 0
        reply = request.builder.reply()
        books.add(books.transcript.add_reply(reply, books.wall(), self.terms.model_name))
        if reply.text or not reply.calls:
            turn.text = reply.text
        limited = books.over_limit()
        if reply.calls and limited is not None:
            turn.end("limited", limited)
            self.calls.stop(CallOutcome.LIMITED, limited)

    def _request_failed(self, turn: Turn, request: Request, failure: RequestFailure) -> None:
        settings, now = self.books.settings, self.books.now()
        turn.tries += 1
        if not may_pass(failure):
            self.requests.failed(request, failure, None)
            turn.end("failed", failure.message)
            return
        wait = pause(failure, turn.tries, settings, self.terms.jitter())
        if wait > settings.max_backoff:
            error = f"{failure.message}. The provider asks to come back in {seconds(wait)}, which is longer than max_backoff ({seconds(settings.max_backoff)})"
        elif turn.tries >= settings.max_tries:
            error = f"{failure.message}. That was try {turn.tries} of {settings.max_tries}"
        else:
            self.backoff = Backoff(now, now + wait, failure.retry_after is not None, failure.message)
            self.requests.failed(request, failure, wait)
            return
        self.requests.failed(request, failure, None)
        turn.end("failed", error)

    # --- inside: the sweep ----------------------------------------------------------------------------------

    def take_expired(self, epoch: int | None = None) -> bool:
        """Take every hold whose time is up, or the lease of this epoch, whose scope has fired; what they leave to be
        settled is settled first by whatever the loop does next. Whether anything was taken.

        The one door that is no event: it leaves nothing half done, so whoever sees that time is up may call it at once.
        """
        lock = self.books.lock
        if epoch is None:
            self._taken += lock.sweep_expired()
        elif (expired := lock.expire(epoch)) is not None:
            self._taken.append(expired)
        return bool(self._taken)

    def _sweep(self) -> bool:
        """SES-4: every hold whose time is up is taken, and settled; one settle step that raises stops no other.

        Whether any was: then whoever swept goes on.
        """
        lock = self.books.lock
        if self.books.now() >= lock.next_deadline():
            self._taken += lock.sweep_expired()
        if not self._taken:
            return False
        taken, self._taken = self._taken, []
        for expired in taken:
            self._settle(expired)
        return True

    def _settle(self, expired: Expired) -> None:
        lease = isinstance(expired, ExpiredLease)
        self.books.say(
            events.HoldExpired,
            what=expired.kind,
            epoch=expired.epoch if isinstance(expired, ExpiredLease) else None,
            call_id=expired.call_id if isinstance(expired, ExpiredTool) else None,
            waited=expired.waited,
            reason=expired.reason,
        )
        try:
            if isinstance(expired, ExpiredTool):
                self.calls.expired(expired)
            elif expired.kind == "llm":
                self._model_expired(expired)
            else:
                self.calls.summaries.expired(expired)
        except Exception as error:  # noqa: BLE001 - the other holds of this sweep must be settled all the same
            name = str(expired.epoch) if isinstance(expired, ExpiredLease) else expired.call_id
            what = f"{expired.kind} {name}" if lease else f"call {name}"
            self.books.say(events.SettleFailed, what=what, error=f"{type(error).__name__}: {error}")
            self._drop(expired)

    def _drop(self, expired: Expired) -> None:
        """What still stands for a hold whose settling failed: nothing may wait for what nothing bounds any more."""
        if isinstance(expired, ExpiredTool):
            self.calls.drop(expired)
            return
        self.books.step.stops.append(StopRequest(expired.epoch, "its time is up"))
        if expired.kind == "summarizing":
            self.calls.summaries.stop("its time is up")
        elif self.requests.current is not None:
            self.requests.current = None
            self.compaction.drop()
        if expired.kind == "llm" and self.books.turn is not None:
            self.books.turn.end("failed", f"the model request was given up after {seconds(expired.waited)}")

    def _model_expired(self, expired: ExpiredLease) -> None:
        """SES-5: drop the partial stream; the turn fails, and says how long there was no progress."""
        request = self.requests.take(swept=True)
        waited = seconds(expired.waited)
        if expired.reason == "ceiling":
            reason = f"the model request took {waited} in all, its ceiling (llm_ceiling)"
        else:
            reason = f"the model made no progress for {waited} (llm_timeout)"
        self.books.step.stops.append(StopRequest(expired.epoch, reason))
        if request.purpose is not Purpose.TURN:
            self.compaction.failed(request, reason)
        elif self.books.turn is not None:
            self.books.turn.end("failed", f"{reason}; what it had begun to say was dropped")
