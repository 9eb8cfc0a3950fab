"""Many sessions in one nursery: each name one event loop, whoever asks for it (SES-0), one heartbeat, one host.

The law: a session that is in memory is in ``_loops``, and one that is being loaded is in ``_opening``; nothing comes between
the look and the note. Its failure is the harness's: a store that cannot be written stops it with that error.
"""

from __future__ import annotations

import logging
import random
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from concorde_trio._sansio.input_queue import Receipt
from concorde_trio._sansio.session_machine import SessionMachine
from concorde_trio._sansio.session_terms import (
    Classify,
    Linked,
    Policy,
    SessionSettings,
    SessionTerms,
    SignalFor,
    TurnResult,
)
from concorde_trio.errors import SessionElsewhere, UnknownId, UsageError, WrongState
from concorde_trio.events import Event, SessionUnloaded
from concorde_trio.failures import alone
from concorde_trio.messages import Input, InputState
from concorde_trio.records import check_name
from concorde_trio.sessions.fleet_sessions import FleetSessions
from concorde_trio.sessions.heartbeat import Heartbeat
from concorde_trio.sessions.host import Host
from concorde_trio.sessions.inputs import new_input
from concorde_trio.sessions.local_host import LocalHost, Surroundings
from concorde_trio.sessions.loop import SessionLoop
from concorde_trio.sessions.model import Model
from concorde_trio.sessions.offered_tools import OfferedTools
from concorde_trio.sessions.store import SessionStore, StoredInput
from concorde_trio.sessions.submitting import Submissions
from concorde_trio.sessions.tool import Tool, ToolSource
from concorde_trio.sessions.tools_as_terms import ToolsAsTerms
from concorde_trio.watchdog import LIMIT, check_watchdog, watching

logger = logging.getLogger("concorde_trio.sessions")

CLOSING = 15.0
"""Seconds in which every turn must have ended once the harness is closed; then what is left is cancelled."""


class SessionHarness:
    """Keeps sessions, by itself (SES-22) or for a runtime: ``async with harness.open():``, then ``submit``, ``turn``, ...

    ``store``: a MemoryStore or SqliteStore. ``model``: what answers; ``summary_model``: what summarises long outputs (the
    same unless given). ``tools``: Tools and ToolSources. ``system``: instructions, or a function of the session's name.
    ``policy(call, kind)`` gives "allow", "deny" or "ask"; ``classify(call, kind)`` a call's kind (SES-18). ``outputs``: an
    absolute folder for outputs that are cut. ``env``: variables for programs that tools start. ``publish`` gets every event.
    ``make_host(nursery, harness)`` gives another Host than this process. ``watchdog``: seconds that the event loop may be
    blocked before its stack is logged, 0 for never. Settings may be given one by one as well:
    ``SessionHarness(..., llm_timeout=60)``.
    """

    def __init__(
        self,
        *,
        store: SessionStore,
        model: Model,
        tools: Iterable[Tool | ToolSource] = (),
        system: str | Callable[[str], str | None] | None = None,
        summary_model: Model | None = None,
        policy: Policy | None = None,
        classify: Classify | None = None,
        settings: SessionSettings | None = None,
        outputs: Path | None = None,
        env: Mapping[str, str] | None = None,
        publish: Callable[[Sequence[Event]], None] | None = None,
        wall_clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
        make_host: Callable[[trio.Nursery, SessionHarness], Host] | None = None,
        watchdog: float = LIMIT,
        **more: Any,
    ) -> None:
        if settings is not None and more:
            raise UsageError(f"give settings=... or single ones ({', '.join(more)}), not both")
        try:
            self.settings = settings or SessionSettings(**more)
        except TypeError:
            known = SessionSettings.__annotations__
            raise UsageError(
                f"unknown: {', '.join(name for name in more if name not in known)}; the settings are {', '.join(known)}"
            ) from None
        self.store = store
        self.model = model
        self._summary_model = summary_model or model
        self._tools = OfferedTools(tools)
        self._terms = ToolsAsTerms(self.tools)
        self._system = (lambda name: system) if isinstance(system, str) else system
        self._policy, self._classify = policy, classify
        self._outputs = outputs
        self._env = dict(env or {})
        self._publish = publish or (lambda events: None)
        self._wall_clock = wall_clock
        self._jitter = jitter
        self._make_host = make_host
        self._watchdog = check_watchdog(watchdog)
        self._loops: dict[str, SessionLoop] = {}
        self._opening: dict[str, trio.Event] = {}
        self._submissions = Submissions(store)
        self._heartbeat = Heartbeat()
        self._nursery: trio.Nursery | None = None
        self._host: Host | None = None
        self._closing = False
        self._signal_for: SignalFor | None = None
        self._fleet: FleetSessions | None = None

    def tools(self) -> Mapping[str, Tool]:
        """What there is now, by name; a tool of its own hides one of a source, and a source one of those after it."""
        return self._tools.now()

    # --- life -----------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def open(self) -> AsyncIterator[SessionHarness]:
        """Open the store, as its one owner, and keep sessions until the block is left; queued inputs go on at once.

        QueueTaken if another process has it. Leaving ends every turn, properly and in bounded time.
        """
        own = getattr(self.store, "own", None)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.store.open())
            if own is not None:
                await stack.enter_async_context(own())
            await stack.enter_async_context(self.serve())
            for name in dict.fromkeys(each.session for each in await self.store.unsettled_inputs()):
                await self.loop(name)
            yield self

    @asynccontextmanager
    async def serve(
        self,
        *,
        signal_for: SignalFor | None = None,
        surroundings: Surroundings | None = None,
        publish: Callable[[Sequence[Event]], None] | None = None,
        fleet: FleetSessions | None = None,
    ) -> AsyncIterator[SessionHarness]:
        """The same over a store that is open and owned already: for a runtime inside a worker (SES-20), in a fleet or alone."""
        if self._nursery is not None:
            raise UsageError("this harness is open already; make one for each place that needs one")
        self._signal_for = signal_for
        self._fleet = fleet
        self._publish = publish or self._publish
        try:
            async with AsyncExitStack() as stack:
                if surroundings is None:
                    surroundings = Surroundings(env=self._env, outputs=self._folder(stack), queue=_queue_of(self.store))
                stack.enter_context(watching(self._watchdog, self._publish, self._wall_clock))
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    self._host = (
                        self._make_host(nursery, self)
                        if self._make_host is not None
                        else LocalHost(
                            nursery,
                            model=self.model,
                            summary_model=self._summary_model,
                            tools=self.tools,
                            surroundings=surroundings,
                            keep=self._keep,
                            keep_over=self.settings.summarize_over,
                            wall_clock=self._wall_clock,
                        )
                    )
                    nursery.start_soon(self._heartbeat.run)
                    nursery.start_soon(self._unload)
                    await self._tools.start(nursery, queue=surroundings.queue, programs_lock=surroundings.programs_lock)
                    try:
                        yield self
                    finally:
                        with trio.move_on_after(CLOSING, shield=True):
                            await self._close()
                        self._tell_stubborn()
                        nursery.cancel_scope.cancel("the harness is closed")
        except BaseExceptionGroup as group:
            single = alone(group)
            if single is None:
                raise
            raise single from None
        finally:
            self._nursery = self._host = None
            self._loops.clear()
            self._closing = False

    def _folder(self, stack: AsyncExitStack) -> Path:
        if self._outputs is not None:
            return self._outputs
        path = getattr(self.store, "path", None)
        if path is not None:
            return Path(f"{path}.outputs").absolute()
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="concorde-outputs-")))

    async def _close(self) -> None:
        self._closing = True
        async with trio.open_nursery() as nursery:
            for loop in self._loops.values():
                nursery.start_soon(self._close_loop, loop)

    def _tell_stubborn(self) -> None:
        """Nothing can end a call that ignores its cancellation, and the nursery waits for it: name it at least."""
        for name, loop in self._loops.items():
            for each in loop.machine.calls.abandoned.records:
                if each.what == "call" and each.ended is None:
                    told = "tool %s (call %s) of session %s goes on though it was cancelled; the program waits for it"
                    logger.warning(told, each.tool, each.call_id, name)

    async def _close_loop(self, loop: SessionLoop) -> None:
        try:
            await loop.ask(loop.machine.close)
            await loop.wait_until(lambda: loop.machine.idle)
            loop.kept.stop()
            await loop.kept.gone()
        except WrongState:
            pass  # it ended by itself
        loop.close()

    async def _unload(self) -> None:
        """SES-19: sessions that were idle for a while leave memory. An idle session sets no timer; this is all of theirs."""
        after = self.settings.unload_after
        while True:
            await trio.sleep(after / 2)
            now = trio.current_time()
            for name, loop in list(self._loops.items()):
                if not loop.unused:
                    loop.used_at = now
                elif now - loop.used_at >= after:
                    del self._loops[name]  # and with that whoever asks for it loads it again
                    loop.close()
                    self._publish([SessionUnloaded(at=self._wall_clock(), session=name)])

    def _keep(self, session: str, function: Callable[[], Awaitable[None]]) -> None:
        loop = self._loops.get(session)
        if loop is None:
            raise WrongState(f"session {session!r} is not in memory, so nothing can be kept running beside it")
        loop.kept.start(function)

    # --- sessions -------------------------------------------------------------------------------------------

    def loaded(self, name: str) -> SessionLoop | None:
        """The loop of a session that is in memory, None if it is not."""
        return self._loops.get(name)

    @property
    def loops(self) -> Mapping[str, SessionLoop]:
        """The loops that are in memory, by name."""
        return self._loops

    async def loop(self, name: str) -> SessionLoop:
        """The one loop of this session, loaded if need be (SES-0). InvalidName for what is no name.

        SessionElsewhere while a run of it is in flight in another process of the fleet.
        """
        check_name(name, "session")
        await self._check_here(name)
        return await self._loop(name)

    async def loop_for_run(self, name: str) -> SessionLoop:
        """The same for a run, which is the only one of its session: a loop that has missed what others said is loaded anew."""
        check_name(name, "session")
        loop = self._loops.get(name)
        if self._fleet is not None and loop is not None and not loop.over:
            record = await self.store.session(name)
            if (0 if record is None else record.messages) != loop.stored_messages:
                self._loops.pop(name, None)
                loop.close()
        return await self._loop(name)

    async def _check_here(self, name: str) -> None:
        loop = self._loops.get(name)
        if self._fleet is None or (loop is not None and loop.machine.run is not None):
            return
        if (found := await self._fleet.elsewhere(name)) is not None:
            raise SessionElsewhere(name, found[0])

    async def _loop(self, name: str) -> SessionLoop:
        while True:
            loop = self._loops.get(name)
            if loop is not None and not loop.over:
                return loop
            if self._nursery is None or self._closing:
                raise WrongState("the harness is not open; use it inside `async with harness.open():`")
            opening = self._opening.get(name)
            if opening is None:
                return await self._load(name, self._nursery)
            await opening.wait()

    async def _load(self, name: str, nursery: trio.Nursery) -> SessionLoop:
        opening = self._opening[name] = trio.Event()
        try:
            stored = await self.store.load_session(name)
            unsettled = await self.store.unsettled_inputs(name) if stored is not None else []
            machine = self._machine(name, stored, unsettled)
            assert self._host is not None
            loop = SessionLoop(
                machine,
                store=self.store,
                host=self._host,
                heartbeat=self._heartbeat,
                publish=self._publish,
                nursery=nursery,
            )
            loop.stored_messages = 0 if stored is None else stored.record.messages
            self._loops[name] = loop
            try:
                await nursery.start(loop.run, name=f"session {name}")
            except BaseException:
                del self._loops[name]
                raise
            return loop
        finally:
            del self._opening[name]
            opening.set()

    def _machine(self, name: str, stored: Any, unsettled: Sequence[StoredInput]) -> SessionMachine:
        assert self._host is not None
        terms = SessionTerms(
            clock=trio.current_time,
            wall_clock=self._wall_clock,
            jitter=self._jitter,
            tools=self._terms,
            classify=self._classify,
            policy=self._policy,
            settings=self.settings,
            system=self._system,
            model_name=self.model.name,
            context_window=self.model.context_window,
            stoppable=self._host.stoppable,
            signal_for=self._signal_for,
        )
        if stored is None:
            return SessionMachine(name, terms)
        machine = SessionMachine(
            name,
            terms,
            messages=stored.messages,
            last_seq=stored.last_seq,
            last_epoch=stored.record.last_epoch,
            last_registration=stored.record.last_registration,
            usage=stored.record.usage,
            queued=[each.input for each in unsettled if each.signal_id is None and not each.prompt],
            linked={
                each.input.id: Linked(each.input, each.signal_id) for each in unsettled if each.signal_id is not None
            },
            held=stored.record.held,
            order=[each.input.id for each in unsettled],
        )
        machine.close_prompts([each.input for each in unsettled if each.signal_id is None and each.prompt])
        if self._signal_for is not None:
            machine.route()
        machine.timer()
        return machine

    # --- what people do -------------------------------------------------------------------------------------

    async def submit(
        self,
        session: str,
        text: str,
        *,
        id: str | None = None,
        sender: str | None = None,
        attachments: Sequence[Any] = (),
    ) -> Receipt:
        """Say something to a session (SES-10); its receipt, once it is in the ledger (SES-10a).

        ``id``: yours, for safe repeats: again with the same text it gives the first receipt, with another an InputConflict.
        A submit that is cancelled may have been accepted; submit again with the same id to know.
        """
        given = self._input(text, id, sender, attachments)
        if self._fleet is not None and self.loaded(session) is None:
            return await self._fleet.submit(session, given)  # whoever runs it next, or runs it now, finds it there
        loop = await self._loop(check_name(session, "session"))
        return await self._submissions.submit(loop, given, chosen=id is not None)

    async def turn(
        self,
        session: str,
        text: str,
        *,
        id: str | None = None,
        sender: str | None = None,
        attachments: Sequence[Any] = (),
    ) -> TurnResult:
        """The same, and wait for the end of the turn that takes it. WrongState if it is rejected or cancelled."""
        given = self._input(text, id, sender, attachments)
        loop = await self.loop(session)
        with loop.awaiting_turn(given.id) as waiter:
            receipt = await self._submissions.submit(loop, given, chosen=id is not None)
            if not receipt.accepted:
                raise WrongState(f"the input was not accepted: {receipt.reason}")
            await waiter.done.wait()
        if waiter.result is None:
            await trio.lowlevel.checkpoint()  # where the harness failed, that is what is told
            raise WrongState(f"input {given.id} was cancelled before a turn took it, or session {session!r} was closed")
        return waiter.result

    def _input(self, text: str, id: str | None, sender: str | None, attachments: Sequence[Any]) -> Input:
        return new_input(text, at=self._wall_clock(), id=id, sender=sender, attachments=attachments)

    async def interrupt(self, session: str, reason: str = "a person interrupted") -> bool:
        """End the turn that is being taken (SES-12). False if nothing is in flight, or the session is not in memory."""
        await self._check_here(session)
        loop = self.loaded(session)
        return False if loop is None else await loop.ask(lambda: loop.machine.interrupt(reason))

    async def resume(self, session: str) -> bool:
        """Let what an interrupt held in the queue run (SES-12). False if nothing was held."""
        loop = await self.loop(session)
        return await loop.ask(loop.machine.resume)

    async def compact(self, session: str) -> None:
        """Compact the transcript at the next boundary (SES-15)."""
        loop = await self.loop(session)
        await loop.ask(loop.machine.compact)

    async def cancel_input(self, session: str, input_id: str) -> None:
        """Take a queued input back. UnknownId if there is none; WrongState if it is not queued any more, or became a signal."""
        loop = await self.loop(session)
        if not await loop.ask(lambda: loop.machine.cancel_input(input_id)):
            stored = await self.store.input(input_id)
            if stored is None or stored.session != session:
                raise UnknownId(f"session {session!r} has no input {input_id!r:.80}")
            if stored.state is InputState.QUEUED:
                waits = f"waits as signal {stored.signal_id}" if stored.signal_id else "is on its way to a signal"
                raise WrongState(f"input {input_id} {waits}; cancel that signal, and the input is cancelled with it")
            if stored.state is not InputState.CANCELLED:
                raise WrongState(f"input {input_id} is {stored.state} already; there is nothing left to cancel")

    async def answer(self, session: str, call_id: str, *, allow: bool) -> None:
        """Allow or deny one call that a person is asked about (SES-18). UnknownId if nobody asks."""
        await self._check_here(session)
        loop = self.loaded(session)
        if loop is None or not await loop.ask(lambda: loop.machine.answer(call_id, allow)):
            raise UnknownId(f"session {session!r} asks about no call {call_id!r:.80} now; see what it waits for")


def _queue_of(store: SessionStore) -> str:
    return str(getattr(store, "queue", "sessions"))
