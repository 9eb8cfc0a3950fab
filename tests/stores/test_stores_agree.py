"""MemoryStore, the obvious form, and SqliteStore, the folded one, driven by the same operations: every read is compared."""

from __future__ import annotations

import queue
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from concorde_trio._sansio.changes import (
    Change,
    ClaimSignal,
    EndRun,
    FinishRequest,
    InterruptSignal,
    QueueRuns,
    SettleSignal,
    StartPost,
    StartRun,
)
from concorde_trio.errors import StoreError
from concorde_trio.records import NewSignal, RequestKind, Run, RunState, SignalState, Usage
from concorde_trio.signals.store import RunFilter, SignalFilter, SignalStore
from concorde_trio.stores import MemoryStore, SqliteStore
from concorde_trio.testing.store_checks.samples import everything

pytestmark = pytest.mark.slow

SIGNALS = st.sampled_from([f"s{number}" for number in range(6)])
RUNS = st.sampled_from([f"s{number}/{index}" for number in range(4) for index in range(2)])
KINDS = st.sampled_from(["k", "l"])
KEYS = st.none() | st.sampled_from(["x", "y"])
SESSIONS = st.sampled_from(["ann", "bob"])
RESOURCES = st.lists(st.sampled_from(["w", "v"]), max_size=2, unique=True).map(tuple)
TIMES = st.floats(min_value=0, max_value=2e9) | st.just(1_764_451_234.1234567)
ERRORS = st.none() | st.sampled_from(["", "why"])
TAGS = st.none() | st.sampled_from(["a" * 16, "b" * 16])
TEXTS = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
NEW = st.builds(NewSignal, id=SIGNALS, kind=KINDS, payload=st.sampled_from(["null", "[1]"]), emitted_at=TIMES, key=KEYS)
USAGES = st.none() | st.builds(Usage, input_tokens=st.integers(0, 9), cost=st.none() | st.floats(0, 9))


@st.composite
def _queue_runs(draw: Any) -> QueueRuns:
    signal_id = draw(SIGNALS)
    runs = tuple(
        Run(
            id=f"{signal_id}/{index}",
            signal_id=signal_id,
            signal_seq=1,
            position=draw(st.integers(-1, 12)) if draw(st.integers(0, 9)) == 0 else -100,  # -100: the next
            index=index,
            session=draw(SESSIONS),
            prompt="do it",
            resources=draw(RESOURCES),
            context=draw(st.sampled_from([None, {"a": [1]}])),
            tag=draw(TAGS),
            time_limit=draw(st.none() | st.floats(0.001, 9)),
            queued_at=draw(TIMES),
        )
        for index in range(draw(st.integers(0, 2)))
    )
    return QueueRuns(signal_id, runs, draw(ERRORS), draw(st.booleans()))


@st.composite
def _end(draw: Any) -> EndRun:
    state = draw(st.sampled_from(RunState))
    right = None if state is RunState.DONE else "why"
    error = draw(ERRORS) if draw(st.integers(0, 5)) == 0 else right
    return EndRun(
        draw(RUNS),
        state,
        draw(TIMES),
        error,
        draw(TEXTS),
        draw(USAGES),
        draw(TEXTS),
        draw(st.sampled_from([None, "null", "2"])),
    )


@st.composite
def _settle(draw: Any) -> SettleSignal:
    state = draw(st.sampled_from([SignalState.DONE, SignalState.FAILED, *SignalState]))
    right = "why" if state is SignalState.FAILED else None
    return SettleSignal(draw(SIGNALS), state, draw(TIMES), draw(ERRORS) if draw(st.integers(0, 5)) == 0 else right)


CHANGES = st.one_of(
    st.builds(ClaimSignal, SIGNALS, TIMES),
    _queue_runs(),
    st.builds(StartRun, RUNS, TIMES),
    _end(),
    st.builds(InterruptSignal, SIGNALS),
    st.builds(StartPost, SIGNALS, TIMES),
    _settle(),
    st.builds(FinishRequest, st.integers(1, 4)),
)


@st.composite
def _life(draw: Any) -> list[Change]:
    """Some way along the life of a signal, in the right order."""
    signal_id = draw(SIGNALS)
    queued = attrs.evolve(draw(_queue_runs()), signal_id=signal_id, error=None)
    runs = tuple(
        attrs.evolve(run, id=f"{signal_id}/{run.index}", signal_id=signal_id, position=-100) for run in queued.runs
    )
    way: list[Change] = [ClaimSignal(signal_id, draw(TIMES)), attrs.evolve(queued, runs=runs)]
    way += [StartRun(run.id, draw(TIMES)) for run in runs]
    way += [attrs.evolve(draw(_end()), run_id=run.id, state=RunState.DONE, error=None) for run in runs]
    way += [StartPost(signal_id, 1.0), SettleSignal(signal_id, SignalState.FAILED, draw(TIMES), "why")]
    first = draw(st.integers(0, len(way) - 1))
    return way[first if draw(st.booleans()) else 0 :][: draw(st.integers(1, len(way)))]


class _Run:
    """A Trio run in a thread of its own, in which both stores are open."""

    def __init__(self, stores: list[SignalStore]) -> None:
        self._ready: queue.Queue[trio.lowlevel.TrioToken] = queue.Queue()
        self._stores = stores
        self._end: trio.Event
        self._thread = threading.Thread(target=trio.run, args=(self._main,))
        self._thread.start()
        self._token = self._ready.get()

    async def _main(self) -> None:
        self._end = trio.Event()
        async with self._stores[0].open(), self._stores[1].open():
            self._ready.put(trio.lowlevel.current_trio_token())
            await self._end.wait()

    def call(self, function: Callable[[], Awaitable[Any]]) -> Any:
        return trio.from_thread.run(function, trio_token=self._token)

    def close(self) -> None:
        trio.from_thread.run_sync(self._end.set, trio_token=self._token)
        self._thread.join()


class _Planned(Exception):
    pass


class StoresAgree(RuleBasedStateMachine):
    """Both stores get each operation; both do it with the same result, or both refuse."""

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.folder = TemporaryDirectory(dir=memory if memory.is_dir() else None)
        self.stores: list[SignalStore] = [MemoryStore(), self.second()]
        self.run = _Run(self.stores)

    def second(self) -> SignalStore:
        """A fresh store to compare with."""
        return SqliteStore(Path(self.folder.name) / "q.db", inline=True)

    def teardown(self) -> None:
        self.run.close()
        self.folder.cleanup()

    def both(self, do: Callable[[SignalStore], Awaitable[Any]]) -> None:
        results = []
        for store in self.stores:
            try:
                results.append(("gave", self.run.call(lambda store=store: do(store))))  # type: ignore[misc]
            except StoreError:
                results.append(("refused", None))
        assert results[0] == results[1]

    @rule(signals=st.lists(NEW, max_size=4))
    def emit(self, signals: list[NewSignal]) -> None:
        self.both(lambda store: store.emit(signals))

    @rule(signal=NEW)
    def emit_sync(self, signal: NewSignal) -> None:
        async def emit(store: SignalStore) -> list[str]:
            return store.emit_sync([signal])

        self.both(emit)

    @rule(signals=st.lists(NEW, max_size=3), more=st.lists(NEW, max_size=2), commit=st.booleans())
    def transaction(self, signals: list[NewSignal], more: list[NewSignal], commit: bool) -> None:
        async def do(store: SignalStore) -> Any:
            ids = None
            try:
                async with store.transaction() as tx:
                    ids = [await store.emit(signals, tx=tx), await store.emit(more, tx=tx)]
                    if not commit:
                        raise _Planned
            except _Planned:
                pass
            return ids

        self.both(do)

    @rule(changes=st.lists(CHANGES, max_size=4))
    def apply(self, changes: list[Change]) -> None:
        self.write(changes)

    @rule(lives=st.lists(_life(), min_size=1, max_size=2), other=st.lists(CHANGES, max_size=1))
    def live(self, lives: list[list[Change]], other: list[Change]) -> None:
        self.write([change for life in lives for change in life] + other)

    def write(self, changes: list[Change]) -> None:
        position = self.run.call(self.stores[0].last_position)
        placed: list[Change] = []
        for change in changes:
            if isinstance(change, QueueRuns):
                runs = []
                for run in change.runs:
                    if run.position == -100:
                        run = attrs.evolve(run, position=position + 1)
                    position = max(position, run.position)
                    runs.append(run)
                change = attrs.evolve(change, runs=tuple(runs))
            placed.append(change)
        self.both(lambda store: store.apply(placed))

    @rule(asked_for=SIGNALS)
    def request(self, asked_for: str) -> None:
        self.both(lambda store: store.request(RequestKind.CANCEL_SIGNAL, asked_for))

    @rule(before=TIMES)
    def prune(self, before: float) -> None:
        self.both(lambda store: store.prune(before))

    @rule(
        kind=st.none() | KINDS,
        state=st.none() | st.sampled_from(SignalState),
        limit=st.integers(0, 4),
        skip=st.integers(0, 4),
    )
    def list_signals(self, kind: str | None, state: SignalState | None, limit: int, skip: int) -> None:
        async def read(store: SignalStore) -> Any:
            newest = await store.signals(SignalFilter())
            before = newest[skip].seq if skip < len(newest) else None
            return _ranked(await store.signals(SignalFilter(kind=kind, state=state, before=before, limit=limit)))

        self.both(read)

    @rule(
        signal_id=st.none() | SIGNALS,
        kind=st.none() | KINDS,
        session=st.none() | SESSIONS,
        resource=st.none() | st.just("w"),
        state=st.none() | st.sampled_from(RunState),
        before=st.none() | st.integers(0, 20),
        limit=st.integers(0, 4),
    )
    def list_runs(self, **where: Any) -> None:
        self.both(lambda store: store.runs(RunFilter(**where)))

    @invariant()
    def all_reads_agree(self) -> None:
        async def read(store: SignalStore) -> dict[str, Any]:
            found = await everything(store)
            found["first"] = _ranked(await store.pending(2))
            found["one"] = _ranked([each for each in [await store.signal("s0")] if each])
            found["run"] = await store.run("s0/0")
            for each in ("pending", "signals"):
                found[each] = _ranked(found[each])
            found["unfinished"] = [attrs.evolve(one, signal=_ranked([one.signal])[0]) for one in found["unfinished"]]
            return found

        self.both(read)


def _ranked(signals: list[Any]) -> list[Any]:
    """Signals without the numbers of their seqs, which may have gaps, but with their order."""
    order = [signal.seq for signal in signals]
    assert len(set(order)) == len(order)
    assert order in (sorted(order), sorted(order, reverse=True))
    return [attrs.evolve(signal, seq=0) for signal in signals]


TestStoresAgree = StoresAgree.TestCase
profile = settings.default
assert profile is not None
TestStoresAgree.settings = settings(stateful_step_count=25, max_examples=max(10, profile.max_examples // 6))
