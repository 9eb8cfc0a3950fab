"""The model, the tools and the host of a scenario of a session: ordinary ones, which wait for their cue and do as told.

The law of this module: nothing here knows turns, leases or the transcript. What a user can give a harness is all that is
used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import trio

from concorde_trio._sansio.message_shape import message_shape
from concorde_trio._sansio.model_events import ModelRequest, ReplyEnd, ToolSpec
from concorde_trio._sansio.session_terms import StartCall, StartRequest
from concorde_trio.errors import ModelError
from concorde_trio.sessions.host import Port, Work
from concorde_trio.sessions.local_host import LocalHost
from concorde_trio.sessions.model import OnEvent
from concorde_trio.sessions.retry_after import retry_after_seconds
from concorde_trio.sessions.tool import ExecKind, ToolContext, ToolResult
from concorde_trio.simulate.session_cues import MODEL, TOOL, Cues
from concorde_trio.simulate.session_script import Reply, ScriptedCall, ScriptedError, ScriptedToolTerms
from concorde_trio.simulate.ticks import Ticks

NOWHERE = Path("/nowhere")
"""The folder for outputs. Nothing here writes any."""
_MOST = 999_999_999
"""Seconds that a Retry-After header can say."""


class ScriptedFault(Exception):
    """Raised by a tool about which the scenario says nothing."""


class ScenarioModel:
    """Answers its n-th request with the n-th reply. ``who``: its rank among the cues.

    ``wrong``: what was no valid transcript in a request (SES-9), which a model would refuse.
    """

    context_window = None

    def __init__(self, name: str, replies: tuple[Reply, ...], cues: Cues, ticks: Ticks, *, who: int = MODEL) -> None:
        self.name = name
        self.wrong: str | None = None
        self._replies = replies
        self._cues = cues
        self._ticks = ticks
        self._who = who
        self._asked = 0

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        """See ``Model.stream``. A reply without end or error stalls for ever after its last event."""
        self.wrong = self.wrong or message_shape(request.messages)
        number = self._asked
        self._asked += 1
        if number >= len(self._replies):
            raise ModelError(
                f"the scenario has {len(self._replies)} answers of its {self.name}, and is asked once more"
            )
        for step in self._replies[number]:
            await self._cues.after(step.after, self._who, number)
            if isinstance(step.event, ScriptedError):
                raise self._error(step.event)
            on_event(step.event)
            if isinstance(step.event, ReplyEnd):
                return
        await trio.sleep_forever()

    def _error(self, error: ScriptedError) -> ModelError:
        what = "the connection failed" if error.status is None else f"HTTP {error.status}"
        header = error.retry_after
        if isinstance(header, str):  # a date, or nonsense, which is passed on
            wait = retry_after_seconds(header, self._ticks.seconds(trio.current_time()))
            header = header if wait is None else wait
        if isinstance(header, float):
            # The harness reads the header in its own seconds, which are ticks here.
            header = f"{min(self._ticks.of(header), _MOST):.9f}"
        return ModelError(
            f"the scenario's {self.name}: {what}",
            status=error.status,
            retry_after=header,
            connection=error.status is None,
        )


@attrs.frozen
class ScenarioTool:
    """Gives each call what ``calls`` has under its id; ``order`` tells who comes first at one instant."""

    spec: ToolSpec
    timeout: float
    concurrent: bool
    calls: Mapping[str, ScriptedCall]
    order: Mapping[str, int]
    cues: Cues
    kind: ExecKind = "execute"

    async def call(self, arguments: Mapping[str, Any], context: ToolContext, /) -> ToolResult:
        """Take the time, then give the output."""
        call_id = context.call_id
        given = self.calls.get(call_id)
        if given is None:
            raise ScriptedFault(f"the scenario does not say, under tools, what call {call_id!r:.80} does")
        if given.takes is None:
            await trio.sleep_forever()
            raise AssertionError
        await self.cues.after(given.takes, TOOL, self.order.get(call_id, len(self.order)))
        return ToolResult(given.output, is_error=given.error)


def scenario_tool(
    name: str,
    terms: ScriptedToolTerms,
    calls: Mapping[str, ScriptedCall],
    order: Mapping[str, int],
    cues: Cues,
    ticks: Ticks,
) -> ScenarioTool:
    """The tool of this name."""
    spec = ToolSpec(name=name, description="A tool of the scenario.", parameters={"type": "object"})
    return ScenarioTool(spec, ticks.of(terms.timeout), terms.concurrent, calls, order, cues)


class _Unstoppable:
    """Work elsewhere: one can stop listening to it, and that is all."""

    def stop(self, reason: str) -> None:
        """Nothing: it goes on."""

    def extend(self, deadline: float) -> None:
        """Nothing: it has no deadline."""


class RemoteHost:
    """A host that cannot stop what it has begun, so that late replies and results do arrive (SES-2, SES-7)."""

    stoppable = False

    def __init__(self, inner: LocalHost) -> None:
        self._inner = inner

    def request(self, port: Port, start: StartRequest) -> Work:
        """Begin a request."""
        self._inner.request(port, attrs.evolve(start, deadline=math.inf))
        return _Unstoppable()

    def execute(self, port: Port, start: StartCall) -> Work:
        """Begin a call."""
        self._inner.execute(port, attrs.evolve(start, deadline=math.inf))
        return _Unstoppable()
