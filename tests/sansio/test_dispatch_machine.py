"""The dispatcher against everything that can happen to it, in any grouping, crashes included (LCK-5, REC-3).

The machine plays the worker's other half: tasks that end when they like, a handling task, operators, a store, and a
power cut. What the dispatcher decided is applied to plain rows, which check every transition; the rows are then asked
whether the rules hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.reports import Cancel, Handled, Inbox, KindInfo, Step, StopMode
from concorde_trio.records import Prompt, Run, RunOutcome, RunState, SignalRecord, SignalState
from tests.sansio.rows import Rows

KINDS = {
    "held": KindInfo(holds=True, repeatable=False),
    "free": KindInfo(holds=False, repeatable=False),
    "again": KindInfo(holds=True, repeatable=True),
    "quick": KindInfo(holds=False, repeatable=True),
}
TAGS = ["tag-number-one-of-them", "tag-number-two-of-them"]
PROMPT = st.builds(
    Prompt,
    text=st.just("work"),
    session=st.sampled_from([None, "a", "b"]),
    resources=st.lists(st.sampled_from(["a", "b", "c"]), max_size=2),
    tag=st.sampled_from([None, None, None, *TAGS, "bad"]),
)
SELDOM = st.sampled_from([*[False] * 7, True])
OUTCOMES = [RunOutcome.ok("did"), RunOutcome.failed("broke"), RunOutcome.limited("enough")]


class DispatcherMachine(RuleBasedStateMachine):
    """A world around a dispatcher. What is over since the last round is reported in one inbox."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = Rows()
        self.now = 0.0

    @initialize(claim_ahead=st.sampled_from([None, 0, 1, 3]), max_running=st.sampled_from([None, None, 1, 2]))
    def begin(self, claim_ahead: int | None, max_running: int | None) -> None:
        self.bounds: dict[str, Any] = {"claim_ahead": claim_ahead, "max_running": max_running}
        self.boot(Inbox())

    def boot(self, asked: Inbox) -> None:
        """A worker starts on these rows."""
        self.core = Dispatcher(KINDS, position=self.rows.last_position, **self.bounds)
        self.running: set[str] = set()  # whose Runtime has not returned
        self.posting: set[str] = set()
        self.batch: list[SignalRecord] = []  # given to the handling task, and not reported yet
        self.busy = False
        self.told: set[str] = set()
        self.inbox = Inbox()
        self.dead = False
        self.now += 1
        self.carry_out(self.core.recover(self.rows.unfinished(), self.now, asked))

    def carry_out(self, step: Step) -> None:
        self.rows.apply(step.changes)
        for live in step.starts:
            self.running.add(live.run.id)
        self.posting |= {signal.id for signal, _ in step.posts}
        if step.handle:
            assert not self.busy and not self.batch, "CLM-1: the handling task is given one thing at a time"
            self.batch, self.busy = list(step.handle), True
        assert {each for each in step.cancel_runs} <= self.running | {end[0] for end in self.inbox.ends}
        told = [event for event in step.events if type(event).__name__ == "SignalSettled"]
        self.told |= {event.signal_id for event in told}  # type: ignore[attr-defined]

    # --- what happens ---------------------------------------------------------------------------------------------

    @rule(data=st.data(), read=st.sampled_from([4, 4, 4, 1, 0]))
    def round(self, data: st.DataObject, read: int) -> None:
        """Signals are emitted; some of all that could be over is over, and found together."""
        for kind in data.draw(st.lists(st.sampled_from([*KINDS, *KINDS, "nobody"]), max_size=2)):
            self.rows.emit(kind)
        new = self.core.offer(self.rows.pending()[:read])
        assert [each.seq for each in new] == sorted(each.seq for each in new)
        self.handle(data)
        for run_id in self.some(data, self.running):
            self.run_over(run_id, data.draw(st.sampled_from(OUTCOMES)))
        for signal_id in self.some(data, self.posting):
            self.posting.remove(signal_id)
            self.inbox.posts.append((signal_id, data.draw(st.sampled_from([None, "no mail"]))))
        if data.draw(SELDOM):
            targets = [*self.rows.signals, *self.rows.runs, "nothing"]
            self.inbox.cancels = [self.request(target) for target in self.some(data, targets)]
        if data.draw(SELDOM):
            self.inbox.stop = data.draw(st.sampled_from(list(StopMode)))
        self.step()

    def some(self, data: st.DataObject, among: Iterable[str]) -> list[str]:
        """Some of these, in any order."""
        there = sorted(among)
        return data.draw(st.lists(st.sampled_from(there), unique=True)) if there else []

    def handle(self, data: st.DataObject) -> None:
        """The handling task is done with some of its batch, and may be free again."""
        for _ in range(len(self.batch)):
            if data.draw(SELDOM):
                break
            record = self.batch.pop(0)
            prompts = data.draw(st.lists(PROMPT, max_size=3))
            failed = data.draw(SELDOM) or self.core.is_doomed(record.id)
            self.inbox.handled.append(Handled(record, error="it broke") if failed else Handled(record, tuple(prompts)))
        # It leaves the rest of a repeatable batch, for a stop or CLM-2; a strict one it never leaves.
        if self.busy and not (self.batch and not KINDS[self.batch[0].kind].repeatable) and not data.draw(SELDOM):
            self.inbox.unhandled, self.batch, self.busy = self.batch, [], False

    def run_over(self, run_id: str, outcome: RunOutcome) -> None:
        self.running.remove(run_id)
        tag = self.core.runs[run_id].run.tag
        if tag is not None:
            self.core.tags.release(tag, run_id)
        self.inbox.ends.append((run_id, outcome))

    def request(self, target: str) -> Cancel:
        row = self.rows.signals.get(target)
        known = target in self.core.runs or target in self.core.live
        pending = row if row is not None and row.state is SignalState.PENDING and not known else None
        return Cancel(target, 1, pending)

    def step(self) -> None:
        inbox, self.inbox = self.inbox, Inbox()
        self.now += 1
        self.carry_out(self.core.step(inbox, self.now))

    @rule(data=st.data(), stop=st.sampled_from([None, None, None, *StopMode]))
    def crash(self, data: st.DataObject, stop: StopMode | None) -> None:
        """Power cut: only the rows are left. The next worker may find cancels, and may have been told to stop."""
        if self.core.stop_mode is None and not data.draw(SELDOM):
            self.round(data, 4)
            return
        cut = {each.id for each in self.rows.runs.values() if each.state is RunState.RUNNING}
        posting = {each.id for each in self.rows.signals.values() if each.phase == "posting"}
        strict = [each for each in self.rows.signals.values() if each.phase == "handling"]
        assert len(strict) <= 1, "CLM-6: a crash cuts at most one handle"
        targets = self.some(data, [*self.rows.signals, *self.rows.runs, "nothing"]) if data.draw(SELDOM) else []
        self.core = Dispatcher({})
        self.boot(Inbox(cancels=[self.request(target) for target in targets], stop=stop))
        assert all(self.rows.runs[each].state is RunState.FAILED for each in cut), "REC-2"
        assert all(self.rows.signals[each].state is SignalState.FAILED for each in posting), "REC-4"
        assert all(self.rows.signals[each.id].interrupted for each in strict), "REC-4"

    # --- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def nothing_happened_twice(self) -> None:
        """REC-2, CLM-6."""
        assert len(self.rows.starts) == len(set(self.rows.starts))
        assert len(self.rows.posts) == len(set(self.rows.posts))

    @invariant()
    def what_runs_shares_no_lock_and_keeps_the_order(self) -> None:
        """LCK-2, LCK-4: over all lives of the worker."""
        taken = [each for each in self.rows.runs.values() if self.unreleased(each)]
        busy = [each for each in taken if each.state is not RunState.PENDING]
        for place, one in enumerate(busy):
            for other in busy[place + 1 :]:
                if self.share(one, other):
                    assert one.signal_id == other.signal_id and one.ended_at is not None, (one, other)
        order = [self.rows.runs[run_id] for run_id in self.rows.starts]
        for place, one in enumerate(order):
            for other in order[place + 1 :]:
                assert not self.share(one, other) or one.position < other.position, (one, other)

    @invariant()
    def what_may_start_has_started(self) -> None:
        """LCK-2: after a step nothing is left that could run, but for max_running and a stop."""
        if self.core.stop_mode not in (None, StopMode.DRAIN):
            return
        taken = sorted(
            (each for each in self.rows.runs.values() if self.unreleased(each)), key=lambda run: run.position
        )
        running = sum(each.state is RunState.RUNNING for each in taken)
        if running == self.bounds["max_running"]:
            return
        for place, run in enumerate(taken):
            if run.state is RunState.PENDING:
                assert any(
                    self.share(run, other) and not (other.ended_at is not None and other.signal_id == run.signal_id)
                    for other in taken[:place]
                ), run

    @invariant()
    def the_table_is_what_the_rows_say(self) -> None:
        """REC-3: a table made of the rows equals the live one, and so do the counts."""
        rebuilt = Dispatcher({})
        rebuilt.rebuild(self.rows.unfinished())
        assert sorted(rebuilt.table.locks(), key=lambda view: view.lock) == sorted(
            self.core.table.locks(), key=lambda view: view.lock
        )
        states = [each.state for each in self.rows.runs.values()]
        assert (self.core.running, self.core.waiting) == (
            states.count(RunState.RUNNING),
            states.count(RunState.PENDING),
        )
        assert self.core.live.keys() == {
            entry.signal.id for entry in self.rows.unfinished() if entry.signal.phase != "handling"
        }

    @invariant()
    def tags_are_live_on_what_runs(self) -> None:
        """TAG-1, TAG-2, TAG-4: on one run each, and no ended run keeps one."""
        live = {self.core.tags.lookup([tag]) for tag in TAGS} - {None}
        assert live == {run_id for run_id in self.running if self.rows.runs[run_id].tag is not None}
        for tag in TAGS:
            wanted = any(each.tag == tag for each in self.rows.runs.values())
            assert (self.core.tags.mask(tag) != tag) == wanted

    def unreleased(self, run: Run) -> bool:
        signal = self.rows.signals[run.signal_id]
        held = signal.state is SignalState.PROCESSING and signal.holds and run.started_at is not None
        return run.ended_at is None or held

    @staticmethod
    def share(one: Run, other: Run) -> bool:
        return one.session == other.session or bool(set(one.resources) & set(other.resources))

    def teardown(self) -> None:
        """STP-1, SIG-4: once all that is open ends, everything settles, whatever was asked before."""
        if not hasattr(self, "core"):
            return
        if self.core.stop_mode is not None:
            self.boot(Inbox())
        for _ in range(10 * len(self.rows.signals) + 10):
            self.core.offer(self.rows.pending())
            self.inbox.handled += [Handled(each, (Prompt(text="late", session="a"),)) for each in self.batch]
            if self.busy and self.inbox.unhandled is None:
                self.inbox.unhandled = []
            self.batch, self.busy = [], False
            for run_id in sorted(self.running):
                self.run_over(run_id, OUTCOMES[0])
            self.inbox.posts += [(signal_id, None) for signal_id in sorted(self.posting)]
            self.posting = set()
            if self.core.stop_mode is not None:
                self.boot(Inbox())
                continue
            self.inbox.stop = None
            self.step()
        assert all(each.settled_at is not None for each in self.rows.signals.values())
        assert len(self.core.table) == 0 and not self.core.live and not self.core.runs and not self.core.pending
        self.core.step(Inbox(stop=StopMode.DRAIN), self.now)
        assert self.core.finished


TestDispatcher = DispatcherMachine.TestCase
TestDispatcher.settings = settings(stateful_step_count=20)
