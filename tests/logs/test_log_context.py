"""Lines of the log for machines: whom each is about, one JSON object each, with nothing secret in it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
import trio

from concorde_trio import (
    FunctionRuntime,
    InProcessRuntime,
    JsonLogFormatter,
    MemoryStore,
    Prompt,
    RunLogFilter,
    RunPrompt,
    ScriptedModel,
    new_tag,
    open_worker,
    tool,
)
from concorde_trio._sansio.model_events import CallStarted, ReplyEnd, StopReason, TextDelta
from concorde_trio.log_context import NOBODY, subject

logger = logging.getLogger("tests.logs")


@attrs.frozen
class Lines:
    """What was logged, as it would stand in a file."""

    stream: io.StringIO
    handler: logging.Handler

    def read(self) -> list[dict[str, Any]]:
        """Each line as an object."""
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def about(self, message: str) -> tuple[str | None, str | None, str | None]:
        """Whom the one line with this message is about: run, signal, session."""
        (line,) = [line for line in self.read() if line["message"] == message]
        return line["run_id"], line["signal_id"], line["session"]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """A log of JSON lines."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RunLogFilter())
    handler.setFormatter(JsonLogFormatter())
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield Lines(stream, handler)
    logger.removeHandler(handler)
    logger.setLevel(logging.NOTSET)


class Jobs:
    """A handler that logs in each of its phases."""

    async def handle(self, signal: Any) -> list[Prompt]:
        """Two runs at once."""
        logger.info("handling")
        return [Prompt(text="a", session="ann"), Prompt(text="b", session="bob")]

    async def post(self, signal: Any, outcome: Any) -> None:
        """The post phase."""
        logger.info("posting")


async def test_each_line_says_which_run_signal_and_session_it_is_about(lines: Lines) -> None:
    """Logs: in handlers, runs, their child tasks and threads, and post; side by side, and after nothing."""
    both = trio.Event()
    begun: list[str] = []

    async def agent(prompt: RunPrompt) -> str:
        begun.append(prompt.session)
        if len(begun) == 2:
            both.set()
        await both.wait()
        logger.info("run of %s", prompt.session)

        async def child() -> None:
            await trio.lowlevel.checkpoint()
            logger.info("child of %s", prompt.session)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
        await trio.to_thread.run_sync(logger.info, f"thread of {prompt.session}")
        return "done"

    async with open_worker(MemoryStore(), FunctionRuntime(agent), {"jobs": Jobs()}) as worker:
        signal_id = await worker.emit("jobs")
        await worker.wait_settled(signal_id)
        logger.info("nobody's")
    assert lines.about("handling") == lines.about("posting") == (None, signal_id, None)
    for number, session in ((1, "ann"), (2, "bob")):
        for what in ("run", "child", "thread"):
            assert lines.about(f"{what} of {session}") == (f"{signal_id}-{number}", signal_id, session)
    assert lines.about("nobody's") == (None, None, None)
    assert subject() == NOBODY


async def test_a_sessions_model_and_tools_are_put_down_to_the_run_that_it_has_just_then(lines: Lines) -> None:
    """Logs: a session's loop outlasts its runs, and each line belongs to the run in flight."""

    @tool
    async def look() -> str:
        """Look."""
        logger.info("tool %d", len(model.requests))
        return "seen"

    def answer(request: Any) -> Any:
        logger.info("model %d", len(model.requests))
        if request.messages[-1].role == "user":
            return [(0, CallStarted(0, f"c{len(request.messages)}", "look", "{}")), (0, ReplyEnd(StopReason.CALLS))]
        return [(0, TextDelta("so")), (0, ReplyEnd())]

    model = ScriptedModel(answer)
    runtime = InProcessRuntime(model=model, tools=[look])
    handlers = {"jobs": lambda signal: [Prompt(text="go", session="ann")]}
    async with open_worker(MemoryStore(), runtime, handlers) as worker:
        found = []
        for _ in range(2):
            found.append(await worker.emit("jobs"))
            await worker.wait_settled(found[-1])
    about = [(line["message"].partition(" ")[0], line["run_id"], line["session"]) for line in lines.read()]
    assert about == [(what, f"{signal_id}-1", "ann") for signal_id in found for what in ("model", "tool", "model")]


def formatted(formatter: JsonLogFormatter, message: str, *arguments: object, **how: Any) -> dict[str, Any]:
    """A line."""
    record = logger.makeRecord("a.logger", logging.WARNING, "f.py", 1, message, arguments, how.pop("exc", None), **how)
    line = formatter.format(record)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_is_one_object_whatever_is_logged() -> None:
    """Logs: line breaks, what is no text, and objects of anybody's; with the traceback, and what was said beside."""
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        raised = (type(error), error, error.__traceback__)
    line = formatted(
        JsonLogFormatter(), "hello\n%s", "\ud800 wörld", exc=raised, extra={"run_id": "r", "cost": 3, "about": {"a": 1}}
    )
    assert line["message"] == "hello\n? wörld"
    assert (line["level"], line["logger"], line["run_id"], line["session"]) == ("warning", "a.logger", "r", None)
    assert (line["cost"], line["about"]) == (3, "{'a': 1}")
    assert line["exception"].endswith("ValueError: two\nlines")
    assert line["time"].endswith("+00:00")


async def test_no_live_tag_is_in_a_line_wherever_it_stood() -> None:
    """TAG-4: in the message, an argument, a field or a traceback."""
    tag, running = new_tag(), trio.Event()

    async def agent(prompt: RunPrompt) -> str:
        running.set()
        await trio.sleep_forever()
        return "never"

    handlers = {"jobs": lambda signal: [Prompt(text=f"go {tag}", session="ann", tag=tag)]}
    async with open_worker(MemoryStore(), FunctionRuntime(agent), handlers) as worker:
        await worker.emit("jobs")
        await running.wait()
        try:
            raise ValueError(f"with {tag}")
        except ValueError as error:
            raised = (type(error), error, error.__traceback__)
        formatter = JsonLogFormatter(mask=worker.mask)
        line = formatted(formatter, f"x {tag} %s", tag, exc=raised, extra={"session": tag, "more": {"deep": [tag]}})
        worker.stop("cancel")
    assert tag not in json.dumps(line)
    assert line["session"] != tag
