"""Spans for OpenTelemetry, by the conventions for generative AI: signals, runs, turns, requests to models, calls of tools.

The law: a signal's trace is its own. It is linked to whatever emitted it, and is no child of that: a request that is answered in a
millisecond has no part that lasts for hours. Below it are its runs, below a run its session's turns, and below a turn what that asks of
models and tools. A span has names, ids, states and numbers, and no text of anybody's.

The only owner of ``opentelemetry``, of which the extra ``otel`` brings the API; without an SDK that somebody sets up, all of it
is thrown away.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, StatusCode
from opentelemetry.trace import Span as OtelSpan
from opentelemetry.util.types import AttributeValue

from concorde_trio import spans
from concorde_trio._sansio.model_events import Ping, ReplyEnd, StopReason, UsageReport
from concorde_trio.errors import UsageError
from concorde_trio.events import Event, SignalClaimed, SignalSettled, TurnEnded, TurnStarted
from concorde_trio.records import SignalState

LINKED = 10_000
"""Signals that are not claimed yet and whose emitters are remembered; of older ones the link is lost."""

PROVIDERS = {"OpenAIModel": "openai", "AnthropicModel": "anthropic", "ScriptedModel": "concorde_trio.scripted"}
FINISHES = {
    StopReason.STOP: "stop",
    StopReason.CALLS: "tool_calls",
    StopReason.LENGTH: "length",
    StopReason.REFUSED: "content_filter",
}


def instrument(
    *, tracer_provider: trace.TracerProvider | None = None, mask: Callable[[str], str] = str
) -> Callable[[], None]:
    """Trace everything that workers and sessions of this process do from now on, until the function that it gives is called.

    ``tracer_provider``: OpenTelemetry's global one unless given. ``mask``: applied to names of sessions and kinds, such as
    ``gateway.worker.mask``, for who puts tags into names (TAG-4). UsageError if it is traced already.
    """
    if spans.tracing():
        raise UsageError("this process is traced already; call what instrument() gave before you call it again")
    tracer = OtelTracer(tracer_provider, mask)
    spans.trace_by(tracer)

    def stop() -> None:
        if spans.tracer() is tracer:
            spans.trace_by(None)
        tracer.close()

    return stop


class OtelTracer:
    """A Tracer. It holds a span for each signal that is processed, each run and each turn, and no more."""

    def __init__(self, provider: trace.TracerProvider | None, mask: Callable[[str], str]) -> None:
        self._tracer = trace.get_tracer("concorde_trio", tracer_provider=provider)
        self._mask = mask
        self._emitters: OrderedDict[str, trace.SpanContext] = OrderedDict()
        self._signals: dict[str, tuple[OtelSpan, Sequence[Link]]] = {}
        self._runs: dict[str, OtelSpan] = {}
        self._turns: dict[str, OtelSpan] = {}

    def close(self) -> None:
        """End what is still open."""
        for span in (*self._turns.values(), *self._runs.values(), *(span for span, _ in self._signals.values())):
            span.end()
        self._turns.clear()
        self._runs.clear()
        self._signals.clear()

    def emitted(self, signal_id: str) -> None:
        """Remember by whom."""
        emitter = trace.get_current_span().get_span_context()
        if emitter.is_valid:
            self._emitters[signal_id] = emitter
            if len(self._emitters) > LINKED:
                self._emitters.popitem(last=False)

    def told(self, event: Event) -> None:
        """Signals and turns begin and end by their events."""
        match event:
            case SignalClaimed():
                emitter = self._emitters.pop(event.signal_id, None)
                links = () if emitter is None else (Link(emitter),)
                span = self._start(f"signal {self._mask(event.kind)}", None, links=links)
                span.set_attribute("concorde_trio.signal.id", event.signal_id)
                span.set_attribute("concorde_trio.signal.kind", self._mask(event.kind))
                self._signals[event.signal_id] = span, links
            case SignalSettled():
                found = self._signals.pop(event.signal_id, None)
                if found is not None:
                    _end(found[0], "failed" if event.state is SignalState.FAILED else None)
            case TurnStarted():
                parent = self._runs.get(event.session)
                span = self._start("turn", parent, {"gen_ai.conversation.id": self._mask(event.session)})
                span.set_attribute("concorde_trio.turn", event.turn)
                self._turns[event.session] = span
            case TurnEnded():
                turn = self._turns.pop(event.session, None)
                if turn is not None:
                    _end(turn, None if event.outcome == "ok" else event.outcome)

    def open_run(self, run_id: str, signal_id: str, session: str, kind: str) -> spans.Span:
        """``invoke_agent``: the runtime's whole execution of a run."""
        parent, links = self._signals.get(signal_id, (None, ()))
        about: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": self._mask(session),
            "concorde_trio.run.id": run_id,
            "concorde_trio.signal.id": signal_id,
            "concorde_trio.signal.kind": self._mask(kind),
        }
        span = self._start("invoke_agent", parent, about, links=links)
        self._runs[session] = span
        _make_current(span)

        def over() -> None:
            if self._runs.get(session) is span:
                del self._runs[session]

        return _Open(span, over)

    def open_request(self, session: str, purpose: str, model: object) -> spans.Span:
        """``chat``: one request to a model, whatever for."""
        name = str(getattr(model, "name", "")) or "unknown"
        made_by = type(model).__name__
        about: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": PROVIDERS.get(made_by, made_by),
            "gen_ai.request.model": name,
            "gen_ai.request.stream": True,
            "gen_ai.conversation.id": self._mask(session),
            "concorde_trio.request.purpose": purpose,
        }
        span = self._start(f"chat {name}", self._parent(session), about, kind=SpanKind.CLIENT)
        _make_current(span)
        return _Request(span)

    def open_call(self, session: str, call_id: str, tool: str) -> spans.Span:
        """``execute_tool``: one call of a tool."""
        about: dict[str, AttributeValue] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.type": "function",
            "gen_ai.conversation.id": self._mask(session),
        }
        span = self._start(f"execute_tool {tool}", self._parent(session), about)
        _make_current(span)
        return _Open(span)

    def _parent(self, session: str) -> OtelSpan | None:
        return self._turns.get(session) or self._runs.get(session)

    def _start(
        self,
        name: str,
        parent: OtelSpan | None,
        about: dict[str, AttributeValue] | None = None,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        links: Sequence[Link] = (),
    ) -> OtelSpan:
        # Never the context of the task: a worker that was started inside a request would be a part of it for ever.
        context = Context() if parent is None else trace.set_span_in_context(parent, Context())
        return self._tracer.start_span(name, context=context, kind=kind, attributes=about, links=links)


class _Open:
    """A span that is open."""

    def __init__(self, span: OtelSpan, over: Callable[[], None] = lambda: None) -> None:
        self.span = span
        self._over = over

    def heard(self, event: Any) -> None:
        """Of no interest."""

    def end(self, failure: str | None) -> None:
        """End it."""
        self._over()
        _end(self.span, failure)


class _Request(_Open):
    """A request's span: it hears of the first that comes, of what was used, and how the reply ended."""

    def __init__(self, span: OtelSpan) -> None:
        super().__init__(span)
        self._began: float | None = time.perf_counter()

    def heard(self, event: Any) -> None:
        """Note what a span says of it."""
        if isinstance(event, UsageReport):
            used = event.usage
            self.span.set_attribute("gen_ai.usage.input_tokens", used.input_tokens)
            self.span.set_attribute("gen_ai.usage.output_tokens", used.output_tokens)
            self.span.set_attribute("gen_ai.usage.cache_read.input_tokens", used.cached_tokens)
        elif isinstance(event, ReplyEnd):
            self.span.set_attribute("gen_ai.response.finish_reasons", (FINISHES[event.reason],))
        elif self._began is not None and not isinstance(event, Ping):
            self.span.set_attribute("gen_ai.response.time_to_first_chunk", time.perf_counter() - self._began)
            self._began = None


def _make_current(span: OtelSpan) -> None:
    """For this task, which is the work's own, and whatever it starts: so it is never undone."""
    contexts.attach(trace.set_span_in_context(span, Context()))


def _end(span: OtelSpan, failure: str | None) -> None:
    if failure is not None:
        span.set_attribute("error.type", failure)
        span.set_status(StatusCode.ERROR)
    span.end()
