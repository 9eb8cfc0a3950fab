"""Spans of real workers and sessions, as an OpenTelemetry SDK exports them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.trace import SpanKind, StatusCode

from concorde_trio import (
    FunctionRuntime,
    InProcessRuntime,
    MemoryStore,
    ModelRequest,
    Prompt,
    RunPrompt,
    ScriptedModel,
    SessionHarness,
    Usage,
    UsageReport,
    instrument,
    new_tag,
    open_worker,
    spans,
    tool,
)
from concorde_trio._sansio.model_events import CallStarted, ReplyEnd, StopReason, TextDelta
from concorde_trio.errors import ModelError, UsageError
from concorde_trio.observability import otel


class Trace:
    """What was exported."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("tests")

    def spans(self, name: str) -> list[ReadableSpan]:
        """All of this name, in the order of their start."""
        found = [span for span in self.exporter.get_finished_spans() if span.name == name]
        return sorted(found, key=lambda span: span.start_time or 0)

    def one(self, name: str) -> ReadableSpan:
        """The only one."""
        (span,) = self.spans(name)
        return span


@pytest.fixture
def traced() -> Iterator[Trace]:
    """Traced until the test is over."""
    traced = Trace()
    stop = instrument(tracer_provider=traced.provider)
    yield traced
    stop()
    assert not spans.tracing()


def parent(span: ReadableSpan) -> int | None:
    """The id of the span that it is a part of."""
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    """Its own id."""
    return span.get_span_context().span_id


def jobs(signal: Any) -> list[Prompt]:
    """A prompt for each session of the payload."""
    return [Prompt(text="go", session=session) for session in signal.payload]


@tool
async def look() -> str:
    """Look."""
    with trace.get_tracer("theirs", tracer_provider=LOOKED.provider).start_as_current_span("of the tool"):
        await trio.lowlevel.checkpoint()
    return "seen"


LOOKED = Trace()


def talk(request: ModelRequest) -> Any:
    """A model that calls a tool once, and then says so."""
    used = (0, UsageReport(Usage(input_tokens=100, output_tokens=7, cached_tokens=60)))
    if request.messages[-1].role == "user":
        return [(0, CallStarted(0, "call-1", "look", "{}")), used, (0, ReplyEnd(StopReason.CALLS))]
    return [(0, TextDelta("so")), used, (0, ReplyEnd())]


async def test_a_signal_its_runs_turns_requests_and_calls_are_one_trace(
    traced: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    """Traces: signal, run, turn, model request and tool, each a part of the one before, by the GenAI conventions."""
    runtime = InProcessRuntime(model=ScriptedModel(talk), tools=[look])
    async with open_worker(MemoryStore(), runtime, {"jobs": jobs}) as worker:
        signal_id = await worker.emit("jobs", ["ann"])
        await worker.wait_settled(signal_id)
    signal, run, turn = traced.one("signal jobs"), traced.one("invoke_agent"), traced.one("turn")
    asked, called = traced.spans("chat scripted"), traced.one("execute_tool look")
    assert signal.parent is None
    assert signal.links == ()
    assert [parent(span) for span in (run, turn, *asked, called)] == [
        id_of(signal), id_of(run), id_of(turn), id_of(turn), id_of(turn),
    ]  # fmt: skip
    assert {span.get_span_context().trace_id for span in (signal, run, turn, *asked, called)} == {
        signal.get_span_context().trace_id
    }
    assert signal.attributes is not None and signal.attributes["concorde_trio.signal.id"] == signal_id
    assert run.attributes is not None and run.attributes["concorde_trio.run.id"] == f"{signal_id}-1"
    assert run.attributes[gen_ai.GEN_AI_CONVERSATION_ID] == "ann"
    first, second = (dict(span.attributes or {}) for span in asked)
    assert 0 <= first.pop(gen_ai.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK) < 60  # type: ignore[operator]
    assert first == {
        gen_ai.GEN_AI_OPERATION_NAME: gen_ai.GenAiOperationNameValues.CHAT.value,
        gen_ai.GEN_AI_PROVIDER_NAME: "concorde_trio.scripted",
        gen_ai.GEN_AI_REQUEST_MODEL: "scripted",
        gen_ai.GEN_AI_REQUEST_STREAM: True,
        gen_ai.GEN_AI_CONVERSATION_ID: "ann",
        gen_ai.GEN_AI_USAGE_INPUT_TOKENS: 100,
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: 7,
        gen_ai.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: 60,
        gen_ai.GEN_AI_RESPONSE_FINISH_REASONS: ("tool_calls",),
        "concorde_trio.request.purpose": "turn",
    }
    assert second[gen_ai.GEN_AI_RESPONSE_FINISH_REASONS] == ("stop",)
    assert asked[0].kind is SpanKind.CLIENT
    assert called.attributes == {
        gen_ai.GEN_AI_OPERATION_NAME: gen_ai.GenAiOperationNameValues.EXECUTE_TOOL.value,
        gen_ai.GEN_AI_TOOL_NAME: "look",
        gen_ai.GEN_AI_TOOL_CALL_ID: "call-1",
        gen_ai.GEN_AI_TOOL_TYPE: "function",
        gen_ai.GEN_AI_CONVERSATION_ID: "ann",
    }
    assert all(span.status.status_code is StatusCode.UNSET for span in (signal, run, turn, *asked, called))
    assert parent(LOOKED.one("of the tool")) == id_of(called)


async def test_runs_are_linked_to_the_request_that_emitted_them_and_no_part_of_it(
    traced: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    """Traces: also where the whole worker was started inside a span; and a signal that a run emits is linked to that run."""

    async def agent(prompt: RunPrompt) -> str:
        if prompt.session == "ann":
            await worker.emit("jobs", ["bob"])
        with traced.tracer.start_as_current_span(f"of {prompt.session}"):
            await trio.lowlevel.checkpoint()
        return "done"

    with traced.tracer.start_as_current_span("outermost"):
        async with open_worker(MemoryStore(), FunctionRuntime(agent), {"jobs": jobs}) as worker:
            with traced.tracer.start_as_current_span("request") as request:
                await worker.emit("jobs", ["ann"])
            while len(traced.spans("signal jobs")) < 2:
                await trio.sleep(1)
    signals, runs = traced.spans("signal jobs"), traced.spans("invoke_agent")
    assert [parent(span) for span in signals] == [None, None]
    assert [parent(span) for span in runs] == [id_of(span) for span in signals]
    assert [[link.context.span_id for link in span.links] for span in (*signals, *runs)] == [
        [request.get_span_context().span_id],
        [id_of(runs[0])],
        [request.get_span_context().span_id],
        [id_of(runs[0])],
    ]
    assert [parent(traced.one(f"of {name}")) for name in ("ann", "bob")] == [id_of(span) for span in runs]


@pytest.mark.parametrize("chosen", [None, "telegram-1"])
async def test_what_a_person_says_to_a_session_is_linked_to_the_request_that_brought_it(
    chosen: str | None, traced: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    """Traces, SES-20: though the session's loop is what makes a signal of it; with an id of the sender's, too."""
    runtime = InProcessRuntime(model=ScriptedModel(talk), tools=[look])
    async with open_worker(MemoryStore(), runtime, {}) as worker:
        with traced.tracer.start_as_current_span("request") as request:
            await runtime.sessions.turn("ann", "hello", id=chosen)
        while not traced.spans("signal session.input"):
            await trio.sleep(1)
        assert worker.status == "running"
    signal, run = traced.one("signal session.input"), traced.one("invoke_agent")
    assert [link.context for link in signal.links] == [request.get_span_context()]
    assert parent(run) == id_of(signal)
    assert signal.parent is None


async def test_what_fails_is_marked_by_its_kind_and_says_nothing_in_words(
    traced: Trace, autojump_clock: trio.testing.MockClock
) -> None:
    """Traces, TAG-4: failed and cancelled runs, tools and requests; no error's text leaves by a span."""
    secret = "the-secret-text"

    async def agent(prompt: RunPrompt) -> str:
        if prompt.session == "stuck":
            await trio.sleep_forever()
        raise ValueError(secret)

    async with open_worker(MemoryStore(), FunctionRuntime(agent), {"jobs": jobs}) as worker:
        signal_id = await worker.emit("jobs", ["bad", "stuck"])
        await trio.sleep(1)
        await worker.cancel_run(f"{signal_id}-2")
        await worker.wait_settled(signal_id)

    def model(request: ModelRequest) -> Any:
        if request.messages[-1].role == "user" and len(model_requests) == 0:
            model_requests.append(request)
            raise ModelError(secret, status=429)
        return (
            [(0, CallStarted(0, "call-1", "fail", "{}")), (0, ReplyEnd(StopReason.CALLS))]
            if (request.messages[-1].role == "user")
            else [(0, TextDelta("so")), (0, ReplyEnd())]
        )

    model_requests: list[ModelRequest] = []

    @tool
    async def fail() -> str:
        """Fail."""
        raise ValueError(secret)

    async with SessionHarness(store=MemoryStore(), model=ScriptedModel(model), tools=[fail]).open() as harness:
        await harness.turn("ann", "hi")
    kinds = {
        name: [None if span.attributes is None else span.attributes.get("error.type") for span in traced.spans(name)]
        for name in ("signal jobs", "invoke_agent", "turn", "chat scripted", "execute_tool fail")
    }
    assert sorted(map(str, kinds["invoke_agent"])) == ["cancelled", "failed"]
    assert kinds["signal jobs"] == ["failed"]
    assert kinds["turn"] == [None]
    assert kinds["chat scripted"] == ["429", None, None]
    assert kinds["execute_tool fail"] == ["tool_error"]
    assert traced.one("turn").parent is None
    exported = "".join(span.to_json() for span in traced.exporter.get_finished_spans())
    assert secret not in exported


async def test_no_live_tag_leaves_by_a_span(autojump_clock: trio.testing.MockClock) -> None:
    """TAG-4: though somebody makes it a part of a session's name."""
    tag, traced = new_tag(), Trace()

    async def agent(prompt: RunPrompt) -> str:
        return "done"

    handlers = {"jobs": lambda signal: [Prompt(text="go", session=f"of {tag}", tag=tag)]}
    async with open_worker(MemoryStore(), FunctionRuntime(agent), handlers) as worker:
        stop = instrument(tracer_provider=traced.provider, mask=worker.mask)
        await worker.wait_settled(await worker.emit("jobs"))
        stop()
    assert traced.one("invoke_agent")
    assert tag not in "".join(span.to_json() for span in traced.exporter.get_finished_spans())


async def test_a_tracer_that_fails_fails_no_run(
    traced: Trace,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Traces: it is told and decides nothing; its failure is logged once and ends the tracing."""

    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(otel.OtelTracer, "_start", broken)

    async def agent(prompt: RunPrompt) -> str:
        return "done"

    async with open_worker(MemoryStore(), FunctionRuntime(agent), {"jobs": jobs}) as worker:
        for _ in range(3):
            assert (await worker.wait_settled(await worker.emit("jobs", ["ann"]))).state == "done"
    assert caplog.text.count("the tracer failed") == 1


def test_what_is_remembered_of_emitters_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces: signals that nobody claims."""
    monkeypatch.setattr(otel, "LINKED", 3)
    traced = Trace()
    tracer = otel.OtelTracer(traced.provider, str)
    with traced.tracer.start_as_current_span("request"):
        for number in range(10):
            tracer.emitted(f"s{number}")
    assert list(tracer._emitters) == ["s7", "s8", "s9"]


def test_a_process_is_traced_once(traced: Trace) -> None:
    """Traces: a second tracer would get half of everything."""
    with pytest.raises(UsageError, match="already"):
        instrument()
