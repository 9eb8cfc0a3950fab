"""The one thread that writes a queue in a SQL database: whoever waits is written in one commit (group commit).

The law: a work is taken once the write lock is held; until then its task can be cancelled and nothing is written,
after it the task waits for the commit, whatever it is told, and gets what became of it. Replies of a commit go to the
Trio thread in one call. The thread ends with the store: every wait of it is bounded or can be woken.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

import trio
from outcome import Error, Outcome, Value, capture

from concorde_trio.errors import StoreError
from concorde_trio.stores.hold import HeldSession, Hold
from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.works import Work, wakes

POLL = 0.02
"""Seconds between two looks for commits of other processes (2.4 µs each), while somebody wants to hear of them."""

MOST_WORKS = 1000
"""Works in one commit."""

STOP_PATIENCE = 5.0
"""Seconds that what is queued has when the store closes."""

RETRY_PAUSE = 0.02
"""Seconds before a commit is tried again that an interruption of the disk has cut off."""


class WriteSession(HeldSession, Protocol):
    """A writer's connection. Nothing of it waits: what must be tried again says False (or gives None)."""

    @property
    def name(self) -> str:
        """How errors call the database."""
        ...

    @property
    def next_in_line(self) -> bool:
        """True while it will be the next to write, so that its caller may look again soon."""
        ...

    def try_open(self) -> bool:
        """True once it is connected and the schema up to date; StoreError for what cannot pass."""
        ...

    def try_begin(self) -> bool:
        """True once a write transaction has begun; StoreError for what cannot pass."""
        ...

    def commit_works(self, works: Sequence[Work]) -> Sequence[Outcome[Any]] | None:
        """Write them in the transaction that has begun, and commit; None if it must be begun and tried again."""
        ...

    def busy(self, patience: float) -> StoreError:
        """What to tell whoever has waited for ``patience`` seconds."""
        ...

    def others_committed(self) -> bool:
        """True if another connection has committed since it was asked last."""
        ...

    def interrupt(self) -> None:
        """End the statement that runs, from any thread, because the store is to be closed."""
        ...

    def interrupt_held(self) -> None:
        """End the statement of a hold that runs, from the Trio thread, if the database cannot ask by itself."""
        ...

    def close(self) -> None:
        """Close it, rolling back what is open."""
        ...


class _Ticket:
    """A task that waits for its work to be written."""

    __slots__ = ("_lock", "_open", "patience", "task", "until", "work")

    def __init__(self, work: Work | Hold, patience: float, lock: threading.Lock) -> None:
        self.work = work
        self.patience = patience
        self.until = time.monotonic() + patience
        self.task = trio.lowlevel.current_task()
        self._open = True
        self._lock = lock

    def close(self) -> bool:
        """Take it or withdraw it: True for the first who asks."""
        with self._lock:
            was, self._open = self._open, False
            return was

    @property
    def withdrawn(self) -> bool:
        """True, while it is queued, once its task does not wait any more."""
        return not self._open

    def reopen(self) -> None:
        """Nothing of it was written after all."""
        with self._lock:
            self._open = True


class ThreadWriter:
    """Writes in a thread of its own. ``wake`` is called in the Trio thread after commits that a worker waits for."""

    def __init__(self, session: WriteSession, patience: float, wake: Callable[[], None]) -> None:
        self._session = session
        self._patience = patience
        self._wake = wake
        self._queue: queue.SimpleQueue[_Ticket | None] = queue.SimpleQueue()
        self._backlog: deque[_Ticket] = deque()
        self._lock = threading.Lock()
        self._stopping = False
        self._stop_by = math.inf
        self._watched = False
        self._looked = 0.0
        self._token = trio.lowlevel.current_trio_token()
        self._opened: Outcome[None] = Value(None)
        self._failure: BaseException | None = None
        self._ready = trio.Event()
        self._ended = trio.Event()
        name = f"writer of {session.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    # --- the Trio side --------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Start it, and bring the schema up to date; a StoreError if the database cannot be used."""
        self._thread.start()
        with trio.CancelScope(shield=True):  # Bounded by the patience; closing joins the thread either way.
            await self._ready.wait()
        self._opened.unwrap()

    async def write(self, work: Work | Hold, patience: float) -> Any:
        """What became of the work. Cancelled, and nothing written, only while it was not taken yet."""
        await trio.lowlevel.checkpoint_if_cancelled()
        ticket = _Ticket(work, patience, self._lock)
        with self._lock:
            if self._stopping:
                raise self._closed()
            self._queue.put(ticket)

        def abort(_: object) -> trio.lowlevel.Abort:
            return trio.lowlevel.Abort.SUCCEEDED if ticket.close() else trio.lowlevel.Abort.FAILED

        return await trio.lowlevel.wait_task_rescheduled(abort)

    async def begin(self, time_limit: float, patience: float) -> Hold:
        """A transaction of the user's, begun; the writer serves nothing else until it is over."""
        hold = Hold(time_limit, self._session.interrupt_held)
        await self.write(hold, patience)
        return hold

    def watch(self, watched: bool) -> None:
        """Look for other processes' commits, or no more."""
        self._watched = watched
        self._queue.put(None)

    async def close(self) -> None:
        """Write what is queued, stop, and wait for its end; a statement that runs on is interrupted."""
        with self._lock:
            self._stop_by = time.monotonic() + STOP_PATIENCE
            self._stopping = True
            self._queue.put(None)
        for seconds in (10, 5):
            with trio.move_on_after(seconds, shield=True):
                await self._ended.wait()
            if self._ended.is_set():
                self._thread.join()
                if self._failure is not None:
                    raise self._closed()
                return
            self._session.interrupt()
        raise StoreError(f"the writer of {self._session.name} does not end; its disk may hang")

    def _closed(self) -> StoreError:
        closed = StoreError(
            f"the store of {self._session.name} is closed"
            + (f", because its writer failed: {self._failure!r}" if self._failure is not None else "")
        )
        closed.__cause__ = self._failure
        return closed

    # --- the thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._opened = capture(self._open)
            self._tell(self._ready.set)
            if isinstance(self._opened, Value):
                self._serve()
        except BaseException as error:  # noqa: BLE001, ASYNC103  Nobody sees what a thread raises; closing the store tells it.
            self._failure = error
        finally:
            self._refuse_rest()
            try:
                self._session.close()
            finally:
                self._tell(self._ended.set)

    def _open(self) -> None:
        until = time.monotonic() + self._patience
        for pause in pauses():
            if self._session.try_open():
                return
            if time.monotonic() > min(until, self._stop_by):
                raise self._session.busy(self._patience)
            time.sleep(pause)

    def _serve(self) -> None:
        while self._next():
            if not self._begin():
                continue
            if isinstance(self._backlog[0].work, Hold):
                self._hold()
            else:
                self._write()

    def _next(self) -> bool:
        """Wait until something is queued; False once it is time to end."""
        self._look()
        while not self._backlog:
            if self._stopping and self._queue.empty():
                return False
            with suppress(queue.Empty):
                ticket = self._queue.get(timeout=POLL if self._watched else None)
                if ticket is not None:
                    self._backlog.append(ticket)
            self._look()
        return True

    def _gather(self) -> None:
        while True:
            try:
                ticket = self._queue.get_nowait()
            except queue.Empty:
                return
            if ticket is not None:
                self._backlog.append(ticket)

    def _begin(self) -> bool:
        """Begin a transaction; False if nobody is left who waits for one."""
        for pause in pauses():
            self._expire()
            if not self._backlog:
                return False
            try:
                if self._session.try_begin():
                    self._gather()
                    return True
            except StoreError as error:
                self._refuse([self._backlog.popleft()], error)
                continue
            self._gather()
            self._look()
            time.sleep(0.0005 if self._session.next_in_line else pause)
        return False

    def _expire(self) -> None:
        now = time.monotonic()
        if any(ticket.withdrawn for ticket in self._backlog):
            self._backlog = deque(ticket for ticket in self._backlog if not ticket.withdrawn)
        late = [ticket for ticket in self._backlog if now > min(ticket.until, self._stop_by)]
        for ticket in late:
            self._backlog.remove(ticket)
            self._refuse([ticket], self._session.busy(ticket.patience))

    def _write(self) -> None:
        """Write the works that stand before the next hold, in one commit."""
        taken: list[_Ticket] = []
        while self._backlog and len(taken) < MOST_WORKS and not isinstance(self._backlog[0].work, Hold):
            ticket = self._backlog.popleft()
            if ticket.close():
                taken.append(ticket)
        if not taken:
            self._session.roll_back()
            return
        works: list[Any] = [ticket.work for ticket in taken]
        results = self._commit(works)
        if results is None:
            for ticket in reversed(taken):
                ticket.reopen()
                self._backlog.appendleft(ticket)
            time.sleep(RETRY_PAUSE)
            return
        wake = any(wakes(work) for work in works)
        self._reply([(ticket.task, result) for ticket, result in zip(taken, results, strict=True)], wake)

    def _commit(self, works: list[Any]) -> Sequence[Outcome[Any]] | None:
        try:
            return self._session.commit_works(works)
        except BaseException as error:  # noqa: BLE001, ASYNC103  They were taken, so they wait for an answer.
            return [Error(error) for _ in works]  # noqa: ASYNC104  This is a thread: no Cancelled comes here.

    def _hold(self) -> None:
        ticket = self._backlog.popleft()
        assert isinstance(ticket.work, Hold)
        if not ticket.close():
            self._session.roll_back()
            return
        self._look(now=True)  # While it is held nobody else can commit, and nobody would look.
        self._reply([(ticket.task, Value(None))], wake=False)
        ticket.work.serve(self._session, self._reply, lambda: time.monotonic() > self._stop_by)

    def _look(self, *, now: bool = False) -> None:
        """Wake the worker if another process has committed (SIG-6), once in a while or right now."""
        if self._watched and (now or time.monotonic() - self._looked >= POLL):
            self._looked = time.monotonic()
            if self._session.others_committed():
                self._tell(self._wake)

    def _refuse(self, tickets: Iterable[_Ticket], error: StoreError) -> None:
        self._reply([(ticket.task, Error(error)) for ticket in tickets if ticket.close()], wake=False)

    def _refuse_rest(self) -> None:
        self._stopping = True
        self._gather()
        self._refuse(self._backlog, self._closed())
        self._backlog.clear()

    def _reply(self, replies: Sequence[tuple[trio.lowlevel.Task, Outcome[Any]]], wake: bool) -> None:
        def deliver() -> None:
            for task, result in replies:
                trio.lowlevel.reschedule(task, result)
            if wake:
                self._wake()

        if replies:
            self._tell(deliver)

    def _tell(self, call: Callable[[], object]) -> None:
        with suppress(trio.RunFinishedError):  # Trio has ended: nobody is left to be told.
            self._token.run_sync_soon(call)
