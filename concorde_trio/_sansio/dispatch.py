"""The worker's decisions: reports in, one step of changes, events and things to do out.

The law of this module is LCK-5: what is found together is applied as ends in run order, posts, handles, cancels,
starts in emission order, stop, claims. In a fleet a start is an offer, and what its members did with theirs comes first. No clock, no I/O, no randomness: the same reports give the same steps.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import attrs

from concorde_trio import events
from concorde_trio._sansio import changes as ch
from concorde_trio._sansio import json_values
from concorde_trio._sansio.live import LiveRun, LiveSignal
from concorde_trio._sansio.new_runs import make_run
from concorde_trio._sansio.reports import CANCELLED_BY_OPERATOR, Cancel, Handled, Inbox, KindInfo, Step, StopMode, Taken
from concorde_trio._sansio.run_tags import erase
from concorde_trio._sansio.runs_in_hand import RunsInHand
from concorde_trio.records import (
    RunOutcome,
    RunState,
    SignalPhase,
    SignalRecord,
    SignalState,
    Unfinished,
)

BATCH = 64
"""How many signals of repeatable handlers are handed out at once (CLM-6: many signals a commit).

More would not make the worker faster, and what ends meanwhile would wait longer for its commit.
"""

BATCH_IN_STOCK = 8
"""The same while as many runs wait as a batch makes: then nobody waits for a claim, and what ends is not to wait for one either."""


class Dispatcher(RunsInHand):
    """The pure half of a worker.

    ``kinds`` maps each kind with a handler to its KindInfo. ``claim_ahead`` and ``max_running``: None for no bound.
    ``position`` is the highest position ever given to a run. ``time_limit``, seconds, is for prompts without one.
    ``offers``: it leads a fleet, so what may start is offered to its members instead of started here.
    """

    def __init__(
        self,
        kinds: Mapping[str, KindInfo],
        *,
        claim_ahead: int | None = 100_000,
        max_running: int | None = None,
        position: int = 0,
        time_limit: float | None = None,
        offers: bool = False,
    ) -> None:
        super().__init__()
        self.kinds = kinds
        self.offers = offers
        self.resigning = False
        self.claim_ahead = claim_ahead
        self.max_running = max_running
        self.time_limit = time_limit
        self.stop_mode: StopMode | None = None
        self.posting: set[str] = set()
        self._position = position
        self._pending: deque[SignalRecord] = deque()
        self._handling: dict[str, SignalRecord] = {}
        self._busy = False  # until the handling task says so, it is not free, even when all it was given is handled
        self._doomed: set[str] = set()

    # --- what the worker asks ---------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """How many unclaimed signals it holds ready."""
        return len(self._pending)

    @property
    def known(self) -> int:
        """How many rows that the store still shows as pending are here: held ready, or being handled."""
        return len(self._pending) + len(self._handling)

    @property
    def handling(self) -> Mapping[str, SignalRecord]:
        """The signals whose handle is being called, or is next, by id; one that was handled may still be among them."""
        return self._handling

    @property
    def handle_budget(self) -> int | None:
        """How many runs the signals being handled may make before the claim of the next must be decided anew."""
        return None if self.claim_ahead is None else self.claim_ahead - self.waiting

    def is_here(self, signal_id: str) -> bool:
        """Whether this signal is claimed, or being handled and perhaps claimed by that."""
        return signal_id in self.live or signal_id in self._handling

    def is_doomed(self, signal_id: str) -> bool:
        """Whether an operator cancelled this signal while it was waiting for its handle, or in it."""
        return signal_id in self._doomed

    @property
    def finished(self) -> bool:
        """Whether a stop has nothing left to wait for (STP-1 to STP-3)."""
        if self.resigning:
            return not (self._busy or self.posting)
        if self.stop_mode is None or self._busy or self.posting:
            return False
        return not self.live if self.stop_mode is StopMode.DRAIN else not self.running

    def offer(self, signals: Iterable[SignalRecord]) -> list[SignalRecord]:
        """Pending signals as the store has them, in seq order; those already here are passed over. Those that were new.

        They are kept in seq order, so one that became visible late takes its place among the unclaimed (SIG-3).
        """
        here = {signal.id for signal in self._pending}
        new = [
            signal
            for signal in signals
            if signal.id not in here and signal.id not in self._handling and signal.id not in self.live
        ]
        self._line_up(new)
        return new

    def _line_up(self, signals: Sequence[SignalRecord]) -> None:
        late = bool(signals and self._pending) and signals[0].seq < self._pending[-1].seq
        self._pending.extend(signals)
        if late:
            self._pending = deque(sorted(self._pending, key=lambda signal: signal.seq))

    # --- the step ---------------------------------------------------------------------------------------------

    def step(self, inbox: Inbox, now: float) -> Step:
        """Apply what was found together (LCK-5); ``now`` is wall-clock seconds, written down and never compared."""
        step = Step(now=now)
        self._elsewhere(step, inbox)
        for run_id, outcome in sorted(inbox.ends, key=lambda end: self.runs[end[0]].run.position):
            self._end(step, self.runs[run_id], outcome)
        for signal_id, error in sorted(inbox.posts, key=lambda post: self.live[post[0]].record.seq):
            self._post_over(step, self.live[signal_id], error)
        for handled in inbox.handled:
            self._handled(step, handled)
        if inbox.unhandled is not None:
            self._line_up([left for left in inbox.unhandled if left.id not in self._doomed])
            for left in inbox.unhandled:
                if left.id in self._doomed:
                    self._fail_pending(step, left)
            self._handling.clear()
            self._doomed.clear()
            self._busy = False
        for cancel in inbox.cancels:
            self._cancel(step, cancel)
        self._start(step)
        if inbox.stop is not None:
            self._stop(step, inbox.stop)
        self._claim(step)
        return step

    # --- what the members of a fleet did ---------------------------------------------------------------------

    def _elsewhere(self, step: Step, inbox: Inbox) -> None:
        for taken in sorted(inbox.taken, key=lambda each: self.runs[each.run_id].run.position):
            self._taken(step, self.runs[taken.run_id], taken)
        for run_id in inbox.recalled:
            self.offered.discard(run_id)
            live = self.runs[run_id]
            live.offered = False
            self.running -= 1
            if live.run.tag is not None:
                self.tags.release(live.run.tag, run_id)
            self._permit((run_id,))
        for run_id in sorted(inbox.lost, key=lambda each: self.runs[each].run.position):
            self._cut(step, self.runs[run_id], "the member of the fleet that ran it is dead")

    def _taken(self, step: Step, live: LiveRun, taken: Taken) -> None:
        run = live.run
        self.offered.discard(run.id)
        live.offered, live.member = False, taken.member
        live.state, live.started_at = RunState.RUNNING, taken.at
        live.signal.unstarted -= 1
        step.events.append(events.RunStarted(at=taken.at, run_id=run.id, signal_id=run.signal_id, session=run.session))

    def _cut(self, step: Step, live: LiveRun, why: str) -> None:
        """REC-2: a run that had started is over in an unknown way. It failed, and is not run again."""
        if not live.signal.interrupted:
            self._interrupt(step, live.signal, "a run that had started was cut off")
        self._end(step, live, RunOutcome.failed(f"{why}; it is not run again"))

    # --- ends and posts -----------------------------------------------------------------------------------------

    def _end(self, step: Step, live: LiveRun, outcome: RunOutcome) -> None:
        run, signal = live.run, live.signal
        started = live.state is RunState.RUNNING
        prompt = context = None
        if run.tag is not None:
            # TAG-4: the tag goes with the run, in all that is kept of it. It was checked, so it is text.
            outcome = attrs.evolve(
                outcome,
                error=erase(outcome.error, run.tag) if outcome.error else outcome.error,
                text=erase(outcome.text, run.tag) if outcome.text else outcome.text,
            )
            prompt = erase(run.prompt, run.tag)
            if run.context is not None:
                context = json_values.encode(self.tags.mask_json(run.context), what="context")
            self.tags.release(run.tag, run.id)
            self.tags.forget(run.tag)
        live.state, live.ended_at, live.outcome = outcome.state, step.now, outcome
        del self.runs[run.id]
        signal.open -= 1
        if started:
            self.running -= 1
            self._permit(self.table.end(run.id, hold=signal.holds))
        else:
            signal.unstarted -= 1
            if run.id in self.table:
                self._ready_ids.discard(run.id)
                self._permit(self.table.withdraw(run.id))
        step.changes.append(
            ch.EndRun(run.id, outcome.state, step.now, outcome.error, outcome.text, outcome.usage, prompt, context)
        )
        step.changes.extend(live.with_end)
        step.events.append(
            events.RunEnded(
                at=step.now,
                run_id=run.id,
                signal_id=run.signal_id,
                session=run.session,
                state=outcome.state,
                error=outcome.error,
                started=started,
                held=started and signal.holds,
            )
        )
        if not signal.open:
            self._runs_over(step, signal)

    def _runs_over(self, step: Step, signal: LiveSignal) -> None:
        """All runs of a signal have ended, or there were none: its post phase is due, or it settles (PST-1)."""
        signal_id = signal.record.id
        step.runs_over.append(signal_id)
        if not signal.holds:
            self._settle(step, signal, None)
        elif self.resigning:
            step.runs_over.pop()  # The next leader finds it as it is, and runs its post.
        elif self.stop_mode is StopMode.CANCEL:
            self._interrupt(step, signal, "its post phase was not started before the worker stopped")
        else:
            signal.phase, signal.post_started_at = SignalPhase.POSTING, step.now
            self.posting.add(signal_id)
            step.changes.append(ch.StartPost(signal_id, step.now))
            step.events.append(events.PostStarted(at=step.now, signal_id=signal_id))
            step.posts.append((signal.record.signal, signal.outcome))

    def _post_over(self, step: Step, signal: LiveSignal, error: str | None) -> None:
        signal_id = signal.record.id
        self.posting.discard(signal_id)
        step.events.append(events.PostEnded(at=step.now, signal_id=signal_id, error=error))
        self._settle(step, signal, error)
        self._permit(self.table.release(signal_id))

    def _settle(self, step: Step, signal: LiveSignal, post_error: str | None) -> None:
        error = signal.error(post_error)
        self._settle_as(step, signal.record, error)
        del self.live[signal.record.id]

    def _settle_as(self, step: Step, record: SignalRecord, error: str | None) -> None:
        state = SignalState.DONE if error is None else SignalState.FAILED
        step.changes.append(ch.SettleSignal(record.id, state, step.now, error))
        step.events.append(
            events.SignalSettled(at=step.now, signal_id=record.id, kind=record.kind, state=state, error=error)
        )

    def _interrupt(self, step: Step, signal: LiveSignal, what: str) -> None:
        if not signal.interrupted:
            signal.interrupted = True
            step.changes.append(ch.InterruptSignal(signal.record.id))
        step.events.append(events.SignalInterrupted(at=step.now, signal_id=signal.record.id, what=what))

    # --- handles --------------------------------------------------------------------------------------------------

    def _handled(self, step: Step, handled: Handled) -> None:
        record, error = handled.signal, handled.error
        kind = self.kinds[record.kind]
        if kind.repeatable:
            # Only now: until its runs are stored with it, a crash leaves the signal pending (CLM-6).
            self._claimed(step, record)
        if record.id in self._doomed:
            error = CANCELLED_BY_OPERATOR
            self._doomed.discard(record.id)
        self._handling.pop(record.id, None)
        signal = LiveSignal(record, kind.holds, handle_error=error)
        self.live[record.id] = signal
        if error is not None:
            step.changes.append(ch.QueueRuns(record.id, (), error, kind.holds))
            step.events.append(events.HandleFailed(at=step.now, signal_id=record.id, error=error))
        else:
            made = [
                make_run(record, index, prompt, self._position + index + 1, step.now, self.time_limit)
                for index, prompt in enumerate(handled.prompts)
            ]
            self._position += len(made)
            step.changes.append(ch.QueueRuns(record.id, tuple(run for run, _ in made), None, kind.holds))
            signal.open = signal.unstarted = len(made)
            signal.runs = [LiveRun(run, signal) for run, _ in made]
            for live, (_, fault) in zip(signal.runs, made, strict=True):
                self._queue(step, live, fault)
        if not signal.runs:
            self._runs_over(step, signal)

    def _queue(self, step: Step, live: LiveRun, fault: str | None) -> None:
        run = live.run
        self.runs[run.id] = live
        step.events.append(
            events.RunQueued(
                at=step.now, run_id=run.id, signal_id=run.signal_id, session=run.session, resources=run.resources
            )
        )
        if fault is not None:
            self._end(step, live, RunOutcome.failed(fault))
            return
        if run.tag is not None:
            self.tags.expect(run.tag)
        self._permit(self.table.enqueue(run.id, run.signal_id, session=run.session, resources=run.resources))

    # --- cancels ----------------------------------------------------------------------------------------------------

    def _cancel(self, step: Step, cancel: Cancel) -> None:
        target = cancel.target
        if target in self.runs:
            self._cancel_run(step, self.runs[target])
        elif target in self.live:
            for live in self.live[target].runs:
                if live.run.id in self.runs:
                    self._cancel_run(step, live)
            if target in self.posting:
                step.cancel_posts.append(target)
        elif target in self._handling:
            self._doomed.add(target)
            step.cancel_handles.append(target)
        elif cancel.pending is not None and target not in step.claimed:
            self._pending = deque(signal for signal in self._pending if signal.id != target)
            self._fail_pending(step, cancel.pending)
        if cancel.request_id is not None:
            step.changes.append(ch.FinishRequest(cancel.request_id))

    def _cancel_run(self, step: Step, live: LiveRun) -> None:
        if live.state is RunState.RUNNING or live.offered:
            step.cancel_runs.append(live.run.id)
        else:
            self._end(step, live, RunOutcome(state=RunState.CANCELLED, error=CANCELLED_BY_OPERATOR))

    def _fail_pending(self, step: Step, record: SignalRecord) -> None:
        self._claimed(step, record)
        self._settle_as(step, record, f"{CANCELLED_BY_OPERATOR} before it was handled")

    # --- starts, stop, claims ---------------------------------------------------------------------------------------

    def _start(self, step: Step) -> None:
        if self.stop_mode is not None and self.stop_mode is not StopMode.DRAIN:
            return
        while self._ready and (self.max_running is None or self.running < self.max_running):
            _, run_id = heapq.heappop(self._ready)
            if run_id not in self._ready_ids:
                continue
            live = self.runs[run_id]
            run = live.run
            if run.tag is not None and not self.tags.claim(run.tag, run_id):
                # TAG-2: it never started, so it never held anything; the other run keeps its identity.
                self._end(step, live, RunOutcome.failed("its tag is live on another run; make a new tag for each run"))
                continue
            self._ready_ids.discard(run_id)
            self.running += 1
            if self.offers:
                live.offered = True
                self.offered.add(run_id)
                step.changes.append(ch.OfferRun(run_id, run.position))
                continue
            live.state, live.started_at = RunState.RUNNING, step.now
            live.signal.unstarted -= 1
            step.changes.append(ch.StartRun(run_id, step.now))
            step.events.append(
                events.RunStarted(at=step.now, run_id=run_id, signal_id=run.signal_id, session=run.session)
            )
            step.starts.append(live)

    def _stop(self, step: Step, mode: StopMode) -> None:
        if self.stop_mode is not None and mode <= self.stop_mode:
            return
        self.stop_mode = mode
        self._pending.clear()
        step.events.append(events.WorkerStopping(at=step.now, mode=mode.name.lower()))
        if mode is StopMode.CANCEL:
            running = (live for live in self.runs.values() if live.state is RunState.RUNNING)
            step.cancel_runs.extend(live.run.id for live in running)
            step.cancel_handles.extend(self._handling)

    def _claim(self, step: Step) -> None:
        if self.stop_mode is not None or self._busy or self.resigning:
            return
        while self._pending and (self.claim_ahead is None or self.waiting <= self.claim_ahead):
            record = self._pending.popleft()
            kind = self.kinds.get(record.kind)
            if kind is None:
                self._claimed(step, record)
                names = ", ".join(repr(name) for name in sorted(self.kinds)) or "none"
                self._settle_as(
                    step, record, f"no handler for the kind {record.kind!r}; there are handlers for: {names}"
                )
                continue
            batch = [record]
            if not kind.repeatable:
                self._claimed(step, record)
            else:
                most = BATCH if self.waiting < BATCH else BATCH_IN_STOCK
                while self._pending and len(batch) < most:
                    following = self.kinds.get(self._pending[0].kind)
                    if following is None or not following.repeatable:
                        break
                    batch.append(self._pending.popleft())
            self._handling = {signal.id: signal for signal in batch}
            self._busy = True
            step.handle, step.handle_repeatable = tuple(batch), kind.repeatable
            return

    def _claimed(self, step: Step, record: SignalRecord) -> None:
        step.claimed.add(record.id)
        step.changes.append(ch.ClaimSignal(record.id, step.now))
        step.events.append(events.SignalClaimed(at=step.now, signal_id=record.id, kind=record.kind))

    # --- recovery ---------------------------------------------------------------------------------------------------

    def recover(
        self,
        unfinished: Iterable[Unfinished],
        now: float,
        asked: Inbox | None = None,
        adopted: Mapping[str, str] | None = None,
    ) -> Step:
        """Settle what an earlier worker left and rebuild the table (REC-2 to REC-5), before any other step.

        A run that had started failed; one that had not takes its old place; what held locks for its post holds
        them again until that post is over; a post that had started is not started again. ``asked`` has the cancels
        and the stop that were asked for before: what they are about is not started first and stopped then.
        ``adopted``: runs that living members of the fleet execute, by member; these go on.
        """
        step, asked, adopted = Step(now=now), asked or Inbox(), adopted or {}
        if asked.stop is not None:
            self._stop(step, asked.stop)
        over: list[LiveSignal] = []
        placed: list[LiveRun] = []
        for entry in unfinished:
            record = entry.signal
            kind = self.kinds.get(record.kind)
            signal = self._revive(entry, holds=kind is not None and kind.holds)
            if kind is None:
                step.events.append(events.HandlerGone(at=now, signal_id=record.id, kind=record.kind))
            if record.phase is SignalPhase.POSTING:
                self._interrupt(step, signal, "its post phase was cut off")
                self._settle(step, signal, "it was cut off when the worker stopped, and is not started again")
                continue
            if record.phase is SignalPhase.HANDLING:
                signal.handle_error = "handle was cut off when the worker stopped, and is not run again"
                step.changes.append(ch.QueueRuns(record.id, (), signal.handle_error, signal.holds))
                self._interrupt(step, signal, "its handle was cut off")
            placed += signal.unreleased
            if not signal.open:
                over.append(signal)
        self._place(placed)
        running = [live for live in placed if live.state is RunState.RUNNING]
        cut = [live for live in running if live.run.id not in adopted]
        for live in running:
            live.member = adopted.get(live.run.id)
            if live.member is not None and live.run.tag is not None:
                self.tags.claim(live.run.tag, live.run.id)
        for live in cut:
            self._cut(step, live, "the worker stopped while it ran")
        for signal in over:
            self._runs_over(step, signal)
        for cancel in asked.cancels:
            self._cancel(step, cancel)
        self._start(step)
        step.events.append(
            events.WorkerRecovered(at=now, runs_failed=len(cut), runs_requeued=len(self.runs), signals=len(self.live))
        )
        return step
