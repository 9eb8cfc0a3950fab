"""A queue, its worker and its agent server in one nursery, with one order of start and stop.

The law: store, then the server (so that agents have where to ask), then the worker; and back in reverse, so that all
that is claimed reaches its outcome while store and server are still up (STP-1). The worker never lives in the web
app's nursery, whose failures are only logged.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

import trio
from quart_trio import QuartTrio

from concorde_trio.conversations.keeper import keeps_sessions, sessions_of
from concorde_trio.conversations.session_input import SESSION_INPUT, SessionInputHandler, SessionResources
from concorde_trio.errors import UsageError, WrongState
from concorde_trio.failures import alone
from concorde_trio.records import JSON, Run, SignalRecord
from concorde_trio.records import Signal as SignalReceived
from concorde_trio.server.access import Access
from concorde_trio.server.app import check_routes, create_app, install
from concorde_trio.server.bodies import body_bound
from concorde_trio.server.endpoint import write_endpoint
from concorde_trio.server.heads import RequestLimits
from concorde_trio.server.serving import ServerLimits, serve
from concorde_trio.sessions.harness import SessionHarness
from concorde_trio.signals.fleet import for_fleet
from concorde_trio.signals.handlers import Handlers, RegisteredHandler
from concorde_trio.signals.lone_life import owned
from concorde_trio.signals.options import worker_options
from concorde_trio.signals.runtime import Runtime
from concorde_trio.signals.schedules import Schedules
from concorde_trio.signals.store import SignalStore, Transaction
from concorde_trio.signals.worker import SignalWorker
from concorde_trio.stores.urls import open_store

logger = logging.getLogger("concorde_trio.gateway")

R = TypeVar("R")

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
MODES = ("drain", "park", "cancel")
"""What the first, second and third stop signal ask for (STP-4)."""

SERVER_GRACE = 5.0
"""Seconds in which the server has to be gone, once the worker is."""


class Gateway:
    """Everything of one agent: ``await gateway.run()`` serves until told to stop.

    ``store``: the path of a database, ``sqlite:///PATH`` (``sqlite:////PATH`` is absolute), ``postgresql://…``,
    ``memory:``, or a store. ``runtime``: what executes runs. ``handlers``: by kind, as
    ``open_worker`` takes them; more are added by ``handler`` and ``add_handler``. ``app``: your own QuartTrio app, to which the agent server's routes are added; one is made otherwise, as
    ``gateway.app``. ``host`` and ``port`` (0: any free one) are where it listens; beyond loopback both tokens must be set
    (SRV-6). ``operator_token``: random at each start unless set. ``session_resources(name)``: the resources that a run of
    input from outside needs, by its session's name, where the runtime keeps sessions (SES-20); none unless given, and then
    such a run shares a workspace with whoever uses it. Every other argument is an option of the worker
    (WorkerOptions): claim_ahead, max_running, time_limit, drain_for, park_for, prune_after, schedules, ...
    """

    def __init__(
        self,
        *,
        store: str | SignalStore,
        runtime: Runtime,
        handlers: Mapping[str, Any] | None = None,
        app: QuartTrio | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        operator_token: str | None = None,
        agent_token: str | None = None,
        session_resources: SessionResources | None = None,
        **options: Any,
    ) -> None:
        self.store = open_store(store) if isinstance(store, str) else store
        self.handlers = Handlers(handlers)
        self.host = host
        self.port = port
        self.url: str | None = None
        self.access = Access.on(host, operator_token=operator_token, agent_token=agent_token)
        self.worker = SignalWorker(self.store, runtime, self.handlers, worker_options(options))
        self._input_handler: SessionInputHandler | None = None
        if session_resources is not None:
            if not keeps_sessions(runtime):
                raise UsageError(
                    f"session_resources is for a runtime that keeps sessions, such as InProcessRuntime; {type(runtime).__name__} "
                    "keeps none, so leave it out"
                )
            self._input_handler = SessionInputHandler(session_resources)
        self._closing = trio.Event()
        self._max_body = body_bound(self.worker.max_payload)
        if app is None:
            self.app = create_app(self.worker, access=self.access, closing=self._closing, max_body=self._max_body)
        else:
            self.app = app
            # Its own routes are agent routes of the server that this gateway makes of it (SRV-6).
            install(app, self.worker, access=self.access, closing=self._closing, whole_app=True)
        self._running = False

    def handler(
        self, kind: str, *, repeatable: bool | None = None
    ) -> Callable[[Callable[[SignalReceived], R]], RegisteredHandler[R]]:
        """Decorate the handler of a kind: a plain or async function of a signal that gives prompts (CLM-3, CLM-4).

        Its post phase is a function with the decorator ``@NAME.post``, after the handler's NAME (PST-1).
        """
        return self.handlers.handler(kind, repeatable=repeatable)

    def add_handler(self, kind: str, handler: Any, *, repeatable: bool | None = None) -> RegisteredHandler[Any]:
        """Register an object with ``handle`` and optionally ``post``, or a function, as the handler of a kind."""
        return self.handlers.add(kind, handler, repeatable=repeatable)

    async def emit(
        self, kind: str, payload: JSON = None, *, key: str | None = None, tx: Transaction | None = None
    ) -> str:
        """Record that something happened; see ``SignalWorker.emit``. Only while the gateway runs."""
        return await self.worker.emit(kind, payload, key=key, tx=tx)

    async def wait_settled(self, signal_id: str) -> SignalRecord:
        """Wait until a signal is done or failed; see ``SignalWorker.wait_settled``."""
        return await self.worker.wait_settled(signal_id)

    @property
    def schedules(self) -> Schedules:
        """What emits which signal when: put, remove, list. Only while the gateway runs."""
        return self.worker.schedules

    async def runs(self, signal_id: str) -> list[Run]:
        """The runs of a signal in the order of its prompts, with what they answered; see ``SignalWorker.runs``."""
        return await self.worker.runs(signal_id)

    def stop(self, mode: str = "drain") -> None:
        """Ask to stop: drain, park or cancel; a later call can only be stricter (STP-4)."""
        self.worker.stop(mode)

    @property
    def sessions(self) -> SessionHarness:
        """The sessions: ``submit``, ``interrupt``, ``answer``, ... UsageError if the runtime keeps none; WrongState until it runs."""
        return sessions_of(self.worker.runtime)

    @property
    def link(self) -> str:
        """Where a browser is logged in (SRV-6): the token is in the fragment, which none sends. WrongState before it runs."""
        if self.url is None:
            raise WrongState("the gateway does not listen yet; wait for run() to be started")
        return self.access.link(self.url)

    async def run(self, *, task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED) -> None:
        """Serve until stopped; ``nursery.start`` gives the URL once everything is up. Can be run once.

        On the main thread SIGTERM and Ctrl-C stop it: the first drains, a second parks, a third cancels. Cancelling it
        is a cancelling stop. Raises QueueTaken, StoreError and CannotServe (the port is taken) unwrapped; UsageError for a
        route of the app at a path of the agent server's.
        """
        if self._running:
            raise UsageError("a gateway can be run once; make a new one")
        check_routes(self.app)  # again, for those that were added since
        self._running = True
        if self._input_handler is not None and SESSION_INPUT not in self.handlers:
            self.handlers.add(SESSION_INPUT, self._input_handler)  # a user's own takes its place (SES-20)
        try:
            async with self.store.open(), owned(self.store, self.worker.options):
                await self._serve(task_status)
        except BaseExceptionGroup as group:
            single = alone(group)
            if single is None:
                raise
            raise single from None

    async def _serve(self, task_status: trio.TaskStatus[str]) -> None:
        async with trio.open_nursery() as watch:
            watch.start_soon(self._cancel_with)
            # The server must outlive the cancellation of its runs, so only the stop ends it.
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as nursery:
                    self.url = await nursery.start(self._serve_http)
                    heeding = None
                    if threading.current_thread() is threading.main_thread():
                        heeding = await nursery.start(self._heed_signals)
                    with ExitStack() as stack:
                        database = getattr(self.store, "path", None)
                        if database is not None:
                            endpoint = write_endpoint(
                                database,
                                url=self.url,
                                token=self.access.operator_token,
                                member=str(os.getpid()) if for_fleet(self.store) else "",
                            )
                            stack.enter_context(endpoint)
                        logger.info("serving at %s", self.url)
                        await self.worker.run(
                            agent_server_url=self.url, task_status=_StartedWith(task_status, self.url)
                        )
                    self._closing.set()
                    if heeding is not None:
                        heeding.cancel()
                    nursery.cancel_scope.deadline = trio.current_time() + SERVER_GRACE
            watch.cancel_scope.cancel()

    async def _serve_http(self, task_status: trio.TaskStatus[str]) -> None:
        await serve(
            self.app,
            host=self.host,
            port=self.port,
            closing=self._closing,
            limits=ServerLimits(request=RequestLimits(max_body=self._max_body, drain_size=4 * self._max_body)),
            mask=self.worker.mask,
            task_status=task_status,
        )

    async def _cancel_with(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self.stop("cancel")

    async def _heed_signals(self, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
        with trio.CancelScope() as scope, trio.open_signal_receiver(*STOP_SIGNALS) as received:
            task_status.started(scope)
            for mode in MODES:
                await anext(received)
                self.stop(mode)
            await trio.sleep_forever()


class _StartedWith:
    """Tells ``run``'s starter the URL when the worker says that it has started."""

    def __init__(self, outer: trio.TaskStatus[str], url: str) -> None:
        self._outer = outer
        self._url = url

    def started(self, value: object = None) -> None:
        self._outer.started(self._url)
