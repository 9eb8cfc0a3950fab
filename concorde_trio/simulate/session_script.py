"""A scenario of one session, as plain data: what people, the model, the tools and the summary model will do, and when.

The law of this module: it knows what was asked for, and nothing of what will come of it. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from concorde_trio._sansio.model_events import CallStarted, ModelEvent
from concorde_trio._sansio.session_terms import SessionSettings
from concorde_trio.sessions.tool import TIMEOUT

TIMES = (
    "llm_timeout",
    "llm_ceiling",
    "summarizing_timeout",
    "summarizing_ceiling",
    "stop_wait",
    "backoff",
    "backoff_cap",
    "max_backoff",
)
"""The settings that are times and that a session looks at; ``heartbeat`` changes nothing that can be seen."""


@attrs.frozen(kw_only=True)
class ScriptedInput:
    """What a person does ``at`` seconds: says ``text``, or interrupts (None)."""

    at: float
    text: str | None


@attrs.frozen
class ScriptedError:
    """A request fails: the HTTP ``status`` (None: the connection failed), and what a Retry-After header said.

    ``retry_after``: seconds, or the header's text where that is no number; None: there was none.
    """

    status: int | None
    retry_after: float | str | None = None


@attrs.frozen
class ScriptedStep:
    """``after`` seconds, counted from the step before, or from the request's start: this."""

    after: float
    event: ModelEvent | ScriptedError


@attrs.frozen(kw_only=True)
class ScriptedToolTerms:
    """What a tool says of itself."""

    timeout: float = TIMEOUT
    concurrent: bool = False


@attrs.frozen(kw_only=True)
class ScriptedCall:
    """What a call with this id does: ``takes`` seconds (None: for ever), then gives ``output``, as an error or not."""

    takes: float | None
    output: str = ""
    error: bool = False


Reply = tuple[ScriptedStep, ...]


@attrs.frozen(kw_only=True)
class SessionScenario:
    """All of it. ``inputs`` in file order; ``model`` and ``summaries``: the n-th is the answer to the n-th request.

    ``toolset``: by tool name; ``tools``: by call id. ``remote``: the host cannot stop what it has begun.
    """

    inputs: tuple[ScriptedInput, ...]
    model: tuple[Reply, ...]
    toolset: Mapping[str, ScriptedToolTerms]
    tools: Mapping[str, ScriptedCall] = attrs.field(factory=dict)
    summaries: tuple[Reply, ...] = ()
    settings: SessionSettings = attrs.field(factory=SessionSettings)
    remote: bool = False

    def calls(self) -> Iterator[CallStarted]:
        """Every call of every reply, in file order."""
        for reply in self.model:
            for step in reply:
                if isinstance(step.event, CallStarted):
                    yield step.event

    def times(self) -> Iterator[float]:
        """Every time and duration that the scenario names, in seconds, as often as it can pass."""
        yield from (each.at for each in self.inputs)
        for reply in (*self.model, *self.summaries):
            for step in reply:
                yield step.after
                if isinstance(step.event, ScriptedError) and isinstance(step.event.retry_after, float):
                    yield step.event.retry_after
        yield from (each.takes or 0.0 for each in self.tools.values())
        for call in self.calls():
            made = self.tools.get(call.id)
            yield (made.takes or 0.0) if made is not None else 0.0

    def limits(self) -> Iterator[float]:
        """Every bound that something of this session may run up to, in seconds, as often as it can pass."""
        settings = self.settings
        for name in TIMES:
            yield getattr(settings, name) or 0.0
        for _ in self.model:
            yield from (settings.llm_timeout, settings.max_backoff)
        yield from (settings.summarizing_timeout for _ in self.summaries)
        yield from (each.timeout for each in self.toolset.values())
        for call in self.calls():
            tool = self.toolset.get(call.name)
            if tool is not None:
                yield from (tool.timeout, settings.stop_wait)

    def longest(self) -> float:
        """Seconds in which it must be over: all of its parts, one after the other."""
        return sum(self.times()) + sum(self.limits()) + 1.0

    def parts(self) -> int:
        """How many things the scenario has that can happen."""
        return len(self.inputs) + sum(1 + len(reply) for reply in (*self.model, *self.summaries))
