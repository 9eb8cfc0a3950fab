"""One session, decided: what an input, a reply, a result, a person or the clock leads to. No Trio, no clock of its own.

The law: every method sweeps first, so that what comes at or after a deadline is late (LSE-2); then changes what it is
about; then goes on as far as it can (``SessionCourse``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from concorde_trio import events
from concorde_trio._sansio.input_queue import Receipt, conflict
from concorde_trio._sansio.model_events import ModelEvent, Purpose
from concorde_trio._sansio.session_books import RunTerms, seconds
from concorde_trio._sansio.session_changes import AddInput, EmitSignals, LinkInputs
from concorde_trio._sansio.session_course import SessionCourse
from concorde_trio._sansio.session_terms import CallReport, Linked, RequestFailure, StopRequest, WaitingOn
from concorde_trio._sansio.session_waiting import waiting_on
from concorde_trio._sansio.transcript import Transcript
from concorde_trio.errors import WrongState
from concorde_trio.messages import CallOutcome, Input, InputState, ToolCall
from concorde_trio.records import Usage


@attrs.frozen
class Entry:
    """What puts an input into the ledger, and the signal that it becomes by that."""

    changes: tuple[EmitSignals | AddInput, ...]
    signal_id: str | None


class SessionMachine(SessionCourse):
    """Decides for one session: what its driver calls. ``take_step`` gives what the calls since the last time ask for."""

    # --- input ----------------------------------------------------------------------------------------------

    def submit(self, given: Input, *, written: Entry | None = None) -> Receipt:
        """A person's, or a run's, input (SES-10). With a worker and no run in flight it becomes a signal (SES-20).

        ``written``: what ``entry`` gave, which is stored already.
        """
        self._sweep()
        books = self.books
        receipt = self._answer(given)
        if receipt is None:
            runs_now = self.idle and not len(books.queue) and self._may_begin()
            entry = written or self.entry(given)
            if written is None:
                books.step.changes += entry.changes
            if entry.signal_id is not None:
                self.linked[given.id] = Linked(given, entry.signal_id)
                receipt = Receipt(given.id, "accepted")
                books.dirty |= written is None
            else:
                receipt = books.queue.submit(given)
                books.dirty = True
            self.places.take(given.id)
            if entry.signal_id is None and self.run is None and not self.handing_over:
                self.route()  # the run ended since it was written
            books.say(
                events.InputAccepted,
                input_id=given.id,
                queued=len(books.queue) + len(self.linked),
                waits_for=None if runs_now else self.holding(),
            )
        elif not receipt.accepted:
            books.say(events.InputRejected, input_id=given.id, reason=receipt.reason or "")
            if books.queue.resume():  # whatever is new ends a hold, though it be rejected (SES-12)
                books.dirty = True
        self._go_on()
        return receipt

    def entry(self, given: Input) -> Entry:
        """How a new input gets into the ledger: in the queue, or as a signal, with no run to take it (SES-20).

        Behind inputs that wait as signals it becomes one too: in the run in flight it would be before them (SES-10).
        """
        # Made in any case: what can't become a signal later is refused now (SIG-5).
        new = None if self.terms.signal_for is None else self.terms.signal_for(self.name, given)
        joins = self.run is not None and not self.run.over and not self.linked
        if new is None or self.handing_over or joins:
            return Entry((AddInput(session=self.name, input=given),), None)
        return Entry((EmitSignals((new,)), AddInput(session=self.name, input=given, signal_id=new.id)), new.id)

    def knows(self, given: Input) -> bool:
        """Whether ``submit`` would accept nothing: it is known here, or rejected. InputConflict: as ``submit``."""
        return self._answer(given) is not None

    def heard(self, waiting: Iterable[tuple[Input, str | None]]) -> None:
        """All inputs that wait, with their signals, as they are stored: what other processes wrote is among them (SES-20)."""
        waiting = tuple(waiting)
        ids = {given.id for given, _ in waiting}
        for gone in [input_id for input_id in self.linked if input_id not in ids]:
            del self.linked[gone]  # another process of the fleet settled it
        for given, signal_id in waiting:
            if signal_id is not None:
                self.linked.setdefault(given.id, Linked(given, signal_id))
        self.places.learn(given.id for given, _ in waiting)

    def _answer(self, given: Input) -> Receipt | None:
        """The first receipt of an input that is known, a rejection, or None for one that is to be accepted."""
        linked = self.linked.get(given.id)
        if linked is not None:
            if linked.input.text != given.text or linked.input.attachments != given.attachments:
                raise conflict(given.id)
            return Receipt(given.id, "accepted")
        return self.books.queue.answer(given, beside=len(self.linked))

    def holding(self) -> str:
        """One line: what keeps input from running now (SES-10)."""
        books = self.books
        if books.lock.is_locked():
            return books.lock.hold_summary()
        if self.backoff is not None:
            return f"back-off, {seconds(max(0.0, self.backoff.until - books.now()))} left: {self.backoff.reason}"
        if books.queue.held:
            return "the queue is held until somebody submits, runs or resumes"
        if not self._may_begin():
            return "no run of this session is in flight"
        return f"{len(books.queue)} inputs before it" if len(books.queue) else "nothing holds the session"

    def cancel_input(self, input_id: str) -> bool:
        """Its sender takes a queued input back. False if it isn't queued here: one that became a signal ends with that."""
        self._sweep()
        cancelled = self.books.queue.cancel(input_id)
        if cancelled is not None:
            self.books.dirty = True  # an empty queue is held no more
            self._settled((cancelled,), InputState.CANCELLED)
        self._go_on()
        return cancelled is not None

    def resume(self) -> bool:
        """What ``hold_queue`` holds may run (SES-12). False if nothing was held."""
        self._sweep()
        resumed = self.books.queue.resume()
        self.books.dirty |= resumed
        self._go_on()
        return resumed

    # --- the run it belongs to (SES-20, SES-21) -------------------------------------------------------------

    def begin_run(self, usage_limit: int | None) -> RunTerms:
        """Turns may begin, and belong to this run, until ``end_run``."""
        if self.run is not None:
            raise WrongState(f"session {self.name!r} has a run already; runs of one session go one after another")
        run = self.run = RunTerms(usage_limit)
        self.handing_over = False
        if self.books.queue.resume():
            self.books.dirty = True
        return run

    def run_prompt(self, given: Input, signal_id: str | None) -> tuple[Input, ...]:
        """The run's own prompt (SES-21). Where its signal was made of inputs, it stands for them: they are delivered by it.

        Gives the inputs whose delivery starts the run's turn. What came before them, and waited for this run, joins it.
        """
        self._sweep()
        books = self.books
        mine = [each for each in self.linked.values() if signal_id is not None and each.signal_id == signal_id]
        for each in mine:
            del self.linked[each.input.id]
        if len(mine) == 1 and mine[0].input.text == given.text:
            given = mine[0].input
            self._restore(given)
        else:
            self.places.take(given.id, of=mine[0].input.id if mine else None)
            if mine:
                given = attrs.evolve(given, attachments=tuple(each for one in mine for each in one.input.attachments))
                self._settled(tuple(each.input for each in mine), InputState.DELIVERED, queued=False)
                self.stands_for[given.id] = tuple(each.input.id for each in mine)
            books.dirty = True
            self._restore(given)
            books.step.changes.append(AddInput(session=self.name, input=given, prompt=True))
            books.say(events.InputAccepted, input_id=given.id, queued=len(books.queue), waits_for=None)
        self._go_on()
        return (given,)

    def _restore(self, given: Input) -> None:
        """Into the queue, before what was accepted later."""
        place, queue = self.places.of(given.id), self.books.queue
        queue.restore(given, before=next((each.id for each in queue if self.places.of(each.id) > place), None))

    def close_prompts(self, prompts: Sequence[Input]) -> None:
        """Prompts of runs that a crash cut before they were delivered: closed, and never run again (SES-21)."""
        if prompts:
            self._settled(tuple(prompts), InputState.CANCELLED, queued=False)

    def no_more_turns(self) -> None:
        """The worker stops: the turn that is being taken is the run's last (SES-21)."""
        if self.run is not None:
            self.run.over = True

    def route(self) -> None:
        """Queued inputs that no run can take become signals at once: what a crash left (SES-20)."""
        self.books.step.changes += self.end_run()

    def end_run(self) -> tuple[EmitSignals | LinkInputs, ...]:
        """The run is over: no turn begins any more. What is still queued becomes signals, in the commit that ends it.

        But for what came before an input that is a signal already: its own would come after that one's, so it waits for
        that one's run, and joins it (SES-10).
        """
        self.run = None
        signal = self.terms.signal_for
        if signal is None:
            return ()
        last = self.places.last_of(self.linked)
        waiting = tuple(each for each in self.books.queue if self.places.of(each.id) > last)
        changes: list[EmitSignals | LinkInputs] = []
        for each in waiting:
            new = signal(self.name, each)
            changes += [EmitSignals((new,)), LinkInputs((each.id,), new.id)]
            self.linked[each.id] = Linked(each, new.id)
        for each in waiting:
            self.books.queue.cancel(each.id)
        self.books.queue.forget(each.id for each in waiting)
        self.books.dirty |= bool(waiting)
        return tuple(changes)

    def handed_over(self) -> None:
        """The commit that ended the run is made: what came since, and waited for it, becomes signals after what it left."""
        self._sweep()
        self.handing_over = False
        if self.run is None:
            self.route()
        self._go_on()

    def signal_settled(self, signal_id: str) -> None:
        """A signal is over: inputs that waited for it and were not delivered never will be (SES-10a)."""
        self._sweep()
        mine = tuple(each.input for each in self.linked.values() if each.signal_id == signal_id)
        for each in mine:
            del self.linked[each.id]
        if mine:
            self._settled(mine, InputState.CANCELLED, queued=False)
        if self.run is None and not self.handing_over:
            self.route()  # what waited for its run
        self._go_on()

    # --- what comes back ------------------------------------------------------------------------------------

    def progress(self, epoch: int | None, purpose: Purpose | None, event: ModelEvent) -> bool:
        """Something of a stream came; whether it is waited for."""
        if self._sweep():
            self._go_on()
        purpose = purpose or self.purpose_out
        if purpose is Purpose.SUMMARY:
            return self.calls.summaries.progress(epoch, event)
        return self.requests.progress(epoch, purpose, event)

    def request_over(self, epoch: int | None, purpose: Purpose | None, failure: RequestFailure | None) -> None:
        """A request's stream has ended: with ReplyEnd, or with this failure."""
        self._sweep()
        purpose = purpose or self.purpose_out
        if purpose is Purpose.SUMMARY:
            self.calls.summaries.over(epoch, failure)
        elif self.requests.matches(epoch, purpose):
            self._replied(failure)
        self._go_on()

    @property
    def purpose_out(self) -> Purpose | None:
        """What the request is for that is out: there is one at most, and what does not say what it is of is of that (SES-2)."""
        if self.requests.current is not None:
            return self.requests.current.purpose
        return None if self.calls.summaries.current is None else Purpose.SUMMARY

    def epoch_out(self, purpose: Purpose | None) -> int | None:
        """The epoch of the request that is out, if it is for this; None where none is."""
        out = self.requests.current or self.calls.summaries.current
        return None if out is None or purpose not in (None, self.purpose_out) else out.epoch

    def call_over(
        self, call_id: str | None, registration: int | None, report: CallReport, *, fired: bool = False
    ) -> None:
        """A call's work is over. ``fired``: its scope ended it at its deadline: its hold is over, as by a sweep (SES-3)."""
        self._sweep()
        if fired and call_id is not None and registration is not None:
            expired = self.books.lock.expire_tool(call_id, registration)
            if expired is not None:
                self._settle(expired)
        self.calls.over(call_id, registration, report)
        self._go_on()

    def left(self, registration: int, call: ToolCall, what: str, number: int, about: str) -> int:
        """A call leaves work behind; the number of its record."""
        return self.calls.left(registration, call, what, number, about)

    def left_ended(self, work: int, result: str | None) -> None:
        """That work was seen to end."""
        if result is not None:
            record = next((each for each in self.calls.abandoned if each.work == work), None)
            if record is not None and record.ended is None:
                self.books.say(events.ReplyDropped, what="result", epoch=None, call_id=record.call_id, current=None)
        self.calls.abandoned.ended(work, result)

    def timer(self) -> None:
        """Time has passed (SES-4)."""
        self._sweep()
        self.calls.give_up_due()
        self._go_on()

    # --- people ---------------------------------------------------------------------------------------------

    def interrupt(self, reason: str = "a person interrupted") -> bool:
        """End the turn (SES-12). False if nothing is in flight."""
        self._sweep()
        books = self.books
        if books.turn is None and not self.compaction.going:
            self._go_on()
            return False
        if books.turn is not None:
            books.turn.end("interrupted", reason)
        if self.requests.current is not None:
            request = self.requests.take()
            books.step.stops.append(StopRequest(request.epoch, reason))
            if self.compaction.going:
                self.compaction.failed(request, reason)
            elif request.builder.text.strip():
                said = books.transcript.add_interrupted(
                    request.builder.text, books.wall(), self.terms.model_name, request.builder.usage
                )
                books.add(said)
                if books.turn is not None:
                    books.turn.text = said.text
        if self.backoff is not None:
            if self.backoff.asked:
                self.not_before, self.not_before_reason = self.backoff.until, self.backoff.reason
            self.backoff = None
        self.calls.stop(CallOutcome.INTERRUPTED, reason)
        if books.settings.on_interrupt == "hold_queue" and books.queue.hold():
            books.dirty = True
        self._go_on()
        return True

    def answer(self, call_id: str, allowed: bool) -> bool:
        """A person allows or denies one call (SES-18). False if nobody was asked about it."""
        self._sweep()
        answered = self.calls.answer(call_id, allowed)
        self._go_on()
        return answered

    def compact(self) -> None:
        """Compact at the next boundary; twice is once (SES-15)."""
        self._sweep()
        if not self.compaction.going:
            self.compaction.wanted = True
        self._go_on()

    def close(self, reason: str = "the session was closed") -> None:
        """End the turn and begin none any more."""
        self.closed = True
        self.interrupt(reason)

    def forget(self) -> None:
        """What was said is not stored any more: it was pruned while the session was idle (STP-5)."""
        self.books.transcript, self.books.usage = Transcript(), Usage()

    # --- looking --------------------------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """waiting_for_input, model, tools, summarizing, compacting, approval or backoff."""
        request = self.requests.current
        if request is not None:
            return "model" if request.purpose is Purpose.TURN else "compacting"
        phases = {live.phase for live in self.calls.live.values()}
        if phases & {"running", "stopping"}:
            return "tools"
        if "asked" in phases:
            return "approval"
        if phases:
            return "summarizing"
        return "backoff" if self.backoff is not None else "waiting_for_input"

    def waiting_on(self) -> WaitingOn:
        """SES-12a: one honest answer; a WaitingOn."""
        return waiting_on(self)
