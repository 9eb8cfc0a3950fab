"""A Runtime that drives pi, the coding agent, over its RPC protocol. The law:

- Each run has a pi of its own: a connection to an operator's listener or a process, opened for it and closed after it.
- The outcome is the stop reason of the model's last reply, never an exit status.
- A turn that must end before its time is aborted before pi is left, for otherwise its tools would go on.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import posixpath
import secrets
from collections.abc import AsyncIterator

import attrs
import trio

from concorde_trio._sansio.encoded_names import encode_name
from concorde_trio._sansio.pi_turn import PiTurn
from concorde_trio.errors import InvalidName, ProgramError, UsageError
from concorde_trio.processes.sweep import sweep_queue
from concorde_trio.records import RunOutcome, RunPrompt, RunState, check_time_limit
from concorde_trio.runtimes.pi_conversation import ABORT, PiConversation, PiLimits
from concorde_trio.runtimes.pi_where import Connect, PiListener, PiPlace, PiProgram
from concorde_trio.signals.runtime import RuntimeContext

_log = logging.getLogger(__name__)


class PiRuntime:
    """Executes each run as a turn of a pi (RUN-4); ``pi --mode rpc`` of version 0.73 or later.

    ``where``: "tcp://HOST:PORT" or "unix:///PATH" of a listener that gives each connection a pi of its own (such as ``socat``
    with ``fork``), an async function that opens a ``trio.abc.Stream`` to one, or a PiProgram, which is started for each run.
    ``sessions``: the absolute folder of the session files, as pi sees it; a session's file is its encoded name (CLM-7)
    and ``.jsonl``.

    ``progress_limit``: seconds in which the model's reply must grow (LSE-3), ``tool_limit``: in which a tool at work must print
    something or end, ``ceiling``: for the turn as a whole (LSE-9); None is no bound. ``usage_told``: False for a model server that
    never tells usage; else a reply without is taken for one that was cut off, which pi 0.73 does not notice.

    Over a connection nothing of a run's environment reaches pi: a run's tag and the URL of the agent server must stand in its
    text, and a process that a tool left behind is the business of pi's host. UsageError for what can never be right. A pi that can't
    be reached, refuses, breaks off or stalls gives a failed outcome that says where and why.
    """

    def __init__(
        self,
        where: str | Connect | PiProgram,
        *,
        sessions: str | os.PathLike[str],
        progress_limit: float | None = 300.0,
        tool_limit: float | None = 1800.0,
        ceiling: float | None = 3600.0,
        usage_told: bool = True,
    ) -> None:
        self._place: PiPlace
        if isinstance(where, PiProgram):
            self._place = where
        elif isinstance(where, str) or callable(where):
            self._place = PiListener(where)
        else:
            raise UsageError(f"PiRuntime takes an address, a function that connects, or a PiProgram, not {where!r:.80}")
        folder = os.fspath(sessions)
        if not isinstance(folder, str) or not posixpath.isabs(folder) or "\0" in folder:
            raise UsageError(
                f"sessions must be an absolute folder, not {folder!r:.200}; write str(Path(...).resolve())"
            )
        self._sessions = posixpath.normpath(folder)  # pi tells paths in this form
        self._limits = PiLimits(
            progress=check_time_limit(progress_limit, "progress_limit") or math.inf,
            tool=check_time_limit(tool_limit, "tool_limit") or math.inf,
            ceiling=check_time_limit(ceiling, "ceiling") or math.inf,
        )
        self._usage_told = usage_told
        self._context: RuntimeContext | None = None
        self._alone = RuntimeContext(queue=f"alone-{secrets.token_hex(8)}")  # while there is no worker

    @contextlib.asynccontextmanager
    async def open(self, context: RuntimeContext, /) -> AsyncIterator[PiRuntime]:
        """Be one worker's Runtime, after what an earlier one left was ended (REC-6).

        UsageError if an agent server is needed and there is none, or if it is open already.
        """
        if self._place.needs_server and context.agent_server_url is None:
            raise UsageError(
                "{agent_server_url} is used, but this worker has no agent server; start one, or leave it out"
            )
        if self._context is not None:
            raise UsageError("this PiRuntime is open already; give each worker its own")
        self._context = context
        try:
            if isinstance(self._place, PiProgram) and (swept := await sweep_queue(context.queue)):
                _log.warning("ended %d processes that an earlier worker left", len(swept))
            yield self
        finally:
            self._context = None

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        """One turn in the prompt's session. A wrong name or a blank text fails it with no connection made."""
        if not prompt.text.strip():
            return RunOutcome.failed("the prompt is blank, and pi does nothing with that; it was not asked")
        try:
            file = posixpath.join(self._sessions, f"{encode_name(prompt.session)}.jsonl")
        except InvalidName as error:
            return RunOutcome.failed(str(error))
        turn = PiTurn(file, prompt.text, usage_limit=prompt.usage_limit, usage_told=self._usage_told)
        conversation = PiConversation(turn, self._limits)
        try:
            async with self._place.open(conversation, prompt.session, self._context or self._alone):
                try:
                    await conversation.hold()
                finally:
                    with trio.move_on_after(ABORT, shield=True):
                        await conversation.wind_up()
        except (ProgramError, OSError) as error:
            return RunOutcome.failed(self._place.masked(str(error)))
        finally:
            conversation.close()
        outcome = turn.outcome()
        if outcome.state is RunState.FAILED:
            return attrs.evolve(outcome, error=self._place.masked(f"pi at {self._place}: {outcome.error}"))
        return outcome
