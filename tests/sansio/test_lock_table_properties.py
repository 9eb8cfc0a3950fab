"""The lock table against a slow, obvious model, in any order of operations (LCK-2 to LCK-7)."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from concorde_trio._sansio.lock_table import LockTable
from tests.sansio.lock_model import LockModel

NAMES = st.sampled_from("abcd")


class LockTableMachine(RuleBasedStateMachine):
    """The same calls to both; the answers and everything that can be seen must be equal."""

    def __init__(self) -> None:
        super().__init__()
        self.table: LockTable[str, str] = LockTable()
        self.model = LockModel()
        self.count = 0
        self.started: list[str] = []

    def both(self, real: tuple[str, ...], expected: tuple[str, ...]) -> None:
        assert real == expected
        assert not set(real) & set(self.started), "a run may start once in its life"
        self.started += real

    @rule(signal=st.sampled_from("STU"), session=NAMES, resources=st.lists(NAMES, max_size=4))
    def enqueue(self, signal: str, session: str, resources: list[str]) -> None:
        self.count += 1
        run = f"r{self.count}"
        self.both(
            self.table.enqueue(run, signal, session=session, resources=resources),
            self.model.enqueue(run, signal, session, resources),
        )

    @precondition(lambda self: self.model.permitted - self.model.held)
    @rule(data=st.data(), hold=st.booleans())
    def end(self, data: st.DataObject, hold: bool) -> None:
        run = data.draw(st.sampled_from(sorted(self.model.permitted - self.model.held)))
        self.both(self.table.end(run, hold=hold), self.model.end(run, hold))

    @rule(signal=st.sampled_from("STU"))
    def release(self, signal: str) -> None:
        self.both(self.table.release(signal), self.model.release(signal))

    @precondition(lambda self: set(self.model.runs) - self.model.held)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(sorted(set(self.model.runs) - self.model.held)))
        self.both(self.table.withdraw(run), self.model.withdraw(run))

    @invariant()
    def all_that_can_be_seen_is_equal(self) -> None:
        table, model = self.table, self.model
        assert list(table) == model.runs
        assert len(table) == len(model.runs)
        assert table.waiting == len(set(model.runs) - model.permitted)
        for run in model.runs:
            assert run in table
            assert table.is_held(run) == (run in model.held)
            assert table.may_start(run) == (run in model.permitted - model.held)
            why = table.why(run)
            assert [
                ((miss.lock.space, miss.lock.name), miss.blocker, miss.position) for miss in why.missing
            ] == model.missing(run)
            assert why.root == model.root(run)
        views = {(view.lock.space, view.lock.name): view for view in table.locks()}
        assert views.keys() == {lock for run in model.runs for lock in model.locks[run]}
        for lock, view in views.items():
            wanted_by = [run for run in model.runs if lock in model.locks[run]]
            assert view.holders == tuple(run for run in wanted_by if run in model.permitted)
            assert view.waiting == tuple(run for run in wanted_by if run not in model.permitted)
        assert table.why_all(model.runs) == tuple(table.why(run) for run in model.runs)
        for shown in (0, 1, 2):
            for view in table.locks(shown):
                whole = views[view.lock.space, view.lock.name]
                assert (view.holders, view.waiting) == (whole.holders, whole.waiting[:shown])
                assert view.more == len(whole.waiting) - len(view.waiting)

    @invariant()
    def conflicting_runs_never_run_together(self) -> None:
        """LCK-2: by the table's own word, and whatever the model says."""
        running = [run for run in self.table if self.table.may_start(run)]
        for at, run in enumerate(running):
            for other in running[at + 1 :]:
                assert not set(self.model.locks[run]) & set(self.model.locks[other])

    def teardown(self) -> None:
        """LCK-2: no starvation. What is permitted ends and what is held is released, until nothing is left."""
        while len(self.table):
            running = [run for run in self.table if self.table.may_start(run)]
            held = [run for run in self.table if self.table.is_held(run)]
            assert running or held, "nothing runs and nothing is held, yet runs wait"
            for run in running:
                self.both(self.table.end(run), self.model.end(run, False))
            for signal in sorted({self.model.signal[run] for run in held}):
                self.both(self.table.release(signal), self.model.release(signal))
        assert list(self.table.locks()) == []
        assert self.table.waiting == 0


TestLockTable = LockTableMachine.TestCase
