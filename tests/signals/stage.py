"""A stage for the worker: agents that do what their prompt says, handlers that do what their payload says.

The law: what a run does stands in its prompt's text, and what a handler does in its signal's payload, so a worker that
is started again on the same store plays the same piece; and whatever happens goes into one list, ``log``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

import attrs
import trio
import trio.testing

from concorde_trio.errors import UsageError
from concorde_trio.events import Event
from concorde_trio.records import (
    PostOutcome,
    Prompt,
    Run,
    RunOutcome,
    RunPrompt,
    RunState,
    Signal,
    SignalRecord,
    SignalState,
)
from concorde_trio.signals.handlers import SignalHandler
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.store import RunFilter, SignalFilter, SignalStore
from concorde_trio.signals.worker import SignalWorker, open_worker
from concorde_trio.stores.memory import MemoryStore


def run(name: str, seconds: float = 1, ending: str = "ok", **fields: Any) -> dict[str, Any]:
    """A prompt for a payload: run ``name`` works for ``seconds`` and ends as ``ending`` (see ``Stage.run``)."""
    return {"text": json.dumps([name, seconds, ending]), **fields}


@attrs.define(slots=False, eq=False)
class Stage:
    """A Runtime and handlers in one. ``log`` has (time, what, name); name is a run's, or its signal's id."""

    store: Any = attrs.field(factory=MemoryStore)
    log: list[tuple[float, str, str]] = attrs.field(factory=list)
    outcomes: dict[str, PostOutcome] = attrs.field(factory=dict)
    events: list[Event] = attrs.field(factory=list)
    gates: dict[str, trio.Event] = attrs.field(factory=dict)
    worker: SignalWorker | None = None

    def note(self, what: str, name: str) -> None:
        self.log.append((trio.current_time(), what, name))

    def noted(self, what: str) -> list[str]:
        """The names this happened to, in order."""
        return [name for _, happened, name in self.log if happened == what]

    def when(self, what: str, name: str) -> list[float]:
        """The times at which this happened to ``name``."""
        return [at for at, happened, who in self.log if (happened, who) == (what, name)]

    def gate(self, name: str) -> trio.Event:
        return self.gates.setdefault(name, trio.Event())

    # --- the runtime --------------------------------------------------------------------------------------------

    async def run(self, prompt: RunPrompt) -> RunOutcome:
        """ok, fail, limited, raise, gate (works until its gate opens), stubborn (ignores cancellation)."""
        name, seconds, ending = json.loads(prompt.text)
        self.note("start", name)
        try:
            if ending == "gate":
                await self.gate(name).wait()
            elif ending == "stubborn":
                with trio.CancelScope(shield=True):
                    await trio.sleep(seconds)
            else:
                await trio.sleep(seconds)
        finally:
            self.note("end", name)
        if ending == "raise":
            raise ValueError(f"{name} raised")
        if ending == "fail":
            return RunOutcome.failed(f"{name} failed")
        if ending == "limited":
            return RunOutcome.limited(f"{name} is over its limit")
        return RunOutcome.ok(f"{name} did it")

    # --- the handlers: kinds held (with post), free (without), again (repeatable, with post), quick (repeatable) ---

    def handlers(self) -> dict[str, SignalHandler]:
        return {
            "held": SignalHandler(handle=self.handle, post=self.post),
            "free": SignalHandler(handle=self.handle),
            "again": SignalHandler(handle=self.handle, post=self.post, repeatable=True),
            "quick": SignalHandler(handle=self.plain, repeatable=True),
        }

    async def handle(self, signal: Signal) -> list[Prompt]:
        self.note("handle", signal.id)
        try:
            if seconds := signal.payload["handle"]:
                await trio.sleep(seconds)
        finally:
            self.note("handled", signal.id)
        return self.plain(signal)

    def plain(self, signal: Signal) -> list[Prompt]:
        if "fail_handle" in signal.payload:
            raise ValueError(signal.payload["fail_handle"])
        return [Prompt(**fields) for fields in signal.payload["runs"]]

    async def post(self, signal: Signal, outcome: PostOutcome) -> None:
        self.outcomes[signal.id] = outcome
        self.note("post", signal.id)
        try:
            if seconds := signal.payload["post"]:
                await trio.sleep(seconds)
        finally:
            self.note("posted", signal.id)
        if "fail_post" in signal.payload:
            raise ValueError(signal.payload["fail_post"])

    # --- playing --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def serve(self, *, handlers: dict[str, Any] | None = None, **options: Any) -> AsyncIterator[SignalWorker]:
        """A worker on this stage's store, under whatever clock runs; every event is kept."""
        chosen = {"settle": trio.testing.wait_all_tasks_blocked, "wall_clock": trio.current_time, "sweep": None}
        kinds = self.handlers() if handlers is None else handlers
        async with open_worker(self.store, self, kinds, **{**chosen, **options}) as worker:
            self.worker = worker
            worker.bus.call(self.events.append)
            yield worker

    @asynccontextmanager
    async def recover(
        self, stop: str | None = None, handlers: dict[str, Any] | None = None, **options: Any
    ) -> AsyncIterator[SignalWorker]:
        """The same, but heard from its first event on: those of its recovery too. ``stop`` is asked for before it starts."""
        chosen: dict[str, Any] = {
            "settle": trio.testing.wait_all_tasks_blocked,
            "wall_clock": trio.current_time,
            "sweep": None,
        }
        kinds = self.handlers() if handlers is None else handlers
        self.worker = worker = SignalWorker(self.store, self, kinds, WorkerOptions(**{**chosen, **options}))
        worker.bus.call(self.events.append)
        if stop is not None:
            worker.stop(stop)
        async with self.store.open(), self.store.own(), trio.open_nursery() as nursery:
            await nursery.start(worker.run)
            yield worker
            worker.stop("drain")

    async def emit(
        self, kind: str, *runs: dict[str, Any], handle: float = 0, post: float = 0, tx: Any = None, **fields: Any
    ) -> str:
        """Emit a signal that makes these runs."""
        assert self.worker is not None
        return await self.worker.emit(kind, {"runs": list(runs), "handle": handle, "post": post, **fields}, tx=tx)

    async def all_settled(self) -> None:
        """Wait for every signal emitted so far."""
        assert self.worker is not None
        for signal_id in await self.signals():
            await self.worker.wait_settled(signal_id)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[SignalStore]:
        """The store, whether a worker has it open or not."""
        async with AsyncExitStack() as stack:
            with suppress(UsageError):
                await stack.enter_async_context(self.store.open())
            yield self.store

    async def signals(self) -> dict[str, SignalRecord]:
        """Every signal in the store, by id, in seq order."""
        async with self.opened() as store:
            found = await store.signals(SignalFilter(limit=100_000))
        return {record.id: record for record in reversed(found)}

    async def runs(self) -> dict[str, Run]:
        """Every run in the store, by the name in its prompt, in emission order."""
        async with self.opened() as store:
            found = await store.runs(RunFilter(limit=200_000))
        return {json.loads(each.prompt)[0]: each for each in reversed(found)}

    async def states(self) -> dict[str, str]:
        """The state of every run, by name."""
        return {name: each.state.value for name, each in (await self.runs()).items()}

    def told(self, *kinds: type[Event]) -> list[Event]:
        """The events of these kinds, in order."""
        return [event for event in self.events if isinstance(event, kinds)]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Trio wakes tasks that become ready together in an order that this number decides."""
    scheduler = trio._core._run._r  # type: ignore[attr-defined]
    state = scheduler.getstate()
    scheduler.seed(seed)
    try:
        yield
    finally:
        scheduler.setstate(state)


def play(piece: Callable[[], Any], *, seed: int = 0, instruments: tuple[Any, ...] = ()) -> Any:
    """``trio.run`` on a virtual clock, the same every time."""
    with seeded(seed):
        return trio.run(piece, clock=trio.testing.MockClock(autojump_threshold=0), instruments=instruments)


def settled(record: SignalRecord) -> bool:
    return record.state in (SignalState.DONE, SignalState.FAILED)


def ended(record: Run) -> bool:
    return record.state not in (RunState.PENDING, RunState.RUNNING)
