"""A Runtime that executes each run as a turn of a session in this process: our own loop, a model, and tools.

The law: it adds nothing to what sessions do; it gives them what the worker has: the store, the agent server's URL for the
programs that tools start, the lock file of REC-6.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from concorde_trio.conversations.conversations import Conversations
from concorde_trio.conversations.session_input import SESSION_INPUT, SessionInputHandler, SessionResources
from concorde_trio.errors import UsageError, WrongState
from concorde_trio.processes.sweep import sweep_queue
from concorde_trio.records import RunOutcome, RunPrompt
from concorde_trio.sessions.harness import SessionHarness
from concorde_trio.sessions.local_host import Surroundings
from concorde_trio.sessions.model import Model
from concorde_trio.sessions.store import SessionStore
from concorde_trio.sessions.tool import Tool, ToolSource
from concorde_trio.signals.runtime import RuntimeContext


class InProcessRuntime:
    """Runs are turns of sessions: ``InProcessRuntime(model=OpenAIModel("..."), tools=[ShellTool("/work/{session}")])``.

    ``model``, ``tools``, ``system``, ``summary_model``, ``policy``, ``classify``, ``outputs`` and every setting are those of
    SessionHarness. ``store``: where sessions are kept; the worker's own unless given. ``env``: variables for programs that
    tools start; AGENT_SERVER_URL is added when there is an agent server. ``session_resources(name)``: the resources
    that a run of input from outside needs (SES-20).
    """

    def __init__(
        self,
        *,
        model: Model,
        tools: Iterable[Tool | ToolSource] = (),
        store: SessionStore | None = None,
        env: Mapping[str, str] | None = None,
        outputs: Path | None = None,
        session_resources: SessionResources | None = None,
        **options: Any,
    ) -> None:
        self._make: Callable[[SessionStore], SessionHarness] = lambda store: SessionHarness(
            store=store, model=model, tools=tools, outputs=outputs, **options
        )
        tools = tuple(tools)
        SessionHarness(
            store=cast("SessionStore", store), model=model, tools=tools, **options
        )  # wrong arguments fail here
        self._store = store
        self._env = dict(env or {})
        self._outputs = outputs
        self._conversations: Conversations | None = None
        self.builtin_handlers = {SESSION_INPUT: SessionInputHandler(session_resources)}

    @property
    def sessions(self) -> SessionHarness:
        """The sessions: ``submit``, ``interrupt``, ``answer``, ... WrongState while no worker has opened this runtime."""
        if self._conversations is None:
            raise WrongState("this runtime is not open; its sessions live as long as a worker that runs it")
        return self._conversations.harness

    @asynccontextmanager
    async def open(self, context: RuntimeContext, /) -> AsyncIterator[InProcessRuntime]:
        """Be one worker's Runtime, after what an earlier one's tools left was ended (REC-6)."""
        if self._conversations is not None:
            raise UsageError("this InProcessRuntime is open already; give each worker its own")
        store = self._store or cast("SessionStore | None", context.store)
        if not hasattr(store, "load_session"):
            raise UsageError(
                f"sessions need a store that keeps them, such as SqliteStore, not {type(store).__name__}; give "
                "InProcessRuntime(store=...) one, or the worker"
            )
        await sweep_queue(context.queue)
        env = dict(self._env)
        if context.agent_server_url is not None:
            env["AGENT_SERVER_URL"] = context.agent_server_url
        async with AsyncExitStack() as stack:
            around = Surroundings(
                env=env,
                outputs=self._folder(context, stack),
                queue=context.queue,
                programs_lock=context.programs_lock,
            )
            conversations = Conversations(self._make(cast("SessionStore", store)))
            await stack.enter_async_context(conversations.open(context, around))
            self._conversations = conversations
            try:
                yield self
            finally:
                self._conversations = None

    def _folder(self, context: RuntimeContext, stack: AsyncExitStack) -> Path:
        if self._outputs is not None:
            return self._outputs
        path = getattr(context.store, "path", None)
        if path is not None:
            return Path(f"{path}.outputs").absolute()
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="concorde-outputs-")))

    async def settle_left(self, sessions: Collection[str] | None, but: Collection[str]) -> None:
        """For the leader of a fleet: settle inputs that a process left which is gone (SES-20)."""
        if self._conversations is not None:
            await self._conversations.settle_left(sessions, but)

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        """Execute one run: its prompt is a turn of its session."""
        if self._conversations is None:
            raise WrongState("this runtime is not open; a worker opens it")
        return await self._conversations.run(prompt)
