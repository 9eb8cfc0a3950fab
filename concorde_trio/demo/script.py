"""What the demo's scripted model answers: the steps of the prompt, one tool call after another, then a few words.

The law: it knows nothing but the transcript it is sent, as any model. It reads the steps anew with each request and goes
through them with the results so far, so the same transcript gets the same reply.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import attrs

from concorde_trio._sansio.model_events import (
    CallStarted,
    ModelEvent,
    ModelRequest,
    ReplyEnd,
    StopReason,
    TextDelta,
    UsageReport,
)
from concorde_trio.demo.errands import with_heard
from concorde_trio.demo.reading import Reading, read_errand
from concorde_trio.messages import CallOutcome, Message
from concorde_trio.models.scripted import ScriptedModel
from concorde_trio.records import Usage

LATENCY = 0.05
"""Seconds until a reply begins."""
SHOWN = (
    "read FILE",
    "write FILE: TEXT",
    "add to FILE: TEXT",
    "recall",
    "look at the budget",
    "spend N on THING",
    "work for N s",
)


@attrs.frozen
class Call:
    """A tool call to be made."""

    tool: str
    arguments: dict[str, Any]


class GaveUp(Exception):
    """A step cannot be taken; the answer says why."""


Course: TypeAlias = Generator[Call, Message, str]
"""Gives calls, gets their results, and ends with a sentence."""


def scripted_model() -> ScriptedModel:
    """The model of the demo where no other is named."""
    return ScriptedModel(reply, name="a script")


def reply(request: ModelRequest) -> list[tuple[float, ModelEvent]]:
    """The reply to one request."""
    reading = read_errand(request.messages)
    move = next_move(reading)
    text = move if isinstance(move, str) else ""
    tokens = Usage(
        input_tokens=sum(len(each.text) for each in request.messages) // 4, output_tokens=10 + len(text) // 4
    )
    if isinstance(move, str):
        return [(LATENCY, TextDelta(text)), (0.0, UsageReport(tokens)), (0.0, ReplyEnd())]
    call_id = f"call_{reading.number}_{len(reading.results) + 1}"
    call = CallStarted(0, call_id, move.tool, json.dumps(move.arguments))
    return [(LATENCY, call), (0.0, UsageReport(tokens)), (0.0, ReplyEnd(StopReason.CALLS))]


def next_move(reading: Reading) -> Call | str:
    """The next call, or the answer."""
    course = _errand(reading)
    try:
        call = next(course)
        for result in reading.results:
            call = course.send(result)
    except StopIteration as over:
        return str(over.value)
    return call


def _errand(reading: Reading) -> Course:
    lines = [line.strip() for line in reading.said.splitlines()]
    steps = [line[2:].strip() for line in lines if line.startswith("- ")]
    steps = steps or [line for line in lines if _step(line)]
    if not steps:
        return f"I know no more than these steps: {', '.join(SHOWN)}."
    said: list[str] = []
    try:
        for step in steps:
            found = _step(step)
            if found is None:
                raise GaveUp(f"I don't know how to {step!r}; I can: {', '.join(SHOWN)}.")
            action, words = found
            sentence = yield from action(reading, *words)
            if sentence:
                said.append(sentence)
    except GaveUp as error:
        said.append(str(error))
    return "\n".join(said)


def _step(step: str) -> tuple[Callable[..., Course], tuple[str, ...]] | None:
    for pattern, action in _STEPS:
        match = re.fullmatch(pattern, step)
        if match is not None:
            return action, match.groups()
    return None


# --- steps ----------------------------------------------------------------------------------------------------------


def _path(reading: Reading, name: str) -> str:
    if reading.place is None:
        raise GaveUp(f"Nobody told me where to work, so I don't know where {name} is.")
    return f"{reading.place}/{name}"


def _read(reading: Reading, name: str) -> Course:
    result = yield Call("read_file", {"path": _path(reading, name)})
    if result.outcome is not CallOutcome.OK:
        raise GaveUp(f"I could not read {name}: {result.text}.")
    return f"{name} says: {'; '.join(result.text.splitlines())}."


def _write(reading: Reading, name: str, text: str) -> Course:
    text = with_heard(text, [each.text for each in reading.heard])
    yield from _done(Call("write_file", {"path": _path(reading, name), "content": f"{text}\n"}))
    return f"I wrote {name}: {text}."


def _add(reading: Reading, name: str, text: str) -> Course:
    """By reading all of it and writing all of it: right only for who has the place alone."""
    result = yield Call("read_file", {"path": _path(reading, name)})
    lines = result.text.splitlines() if result.outcome is CallOutcome.OK else []
    content = "".join(f"{line}\n" for line in [*lines, text])
    yield from _done(Call("write_file", {"path": _path(reading, name), "content": content}))
    return f"{name} has {len(lines) + 1} line{'s' if lines else ''} now, the last: {text}."


def _recall(reading: Reading) -> Course:
    """A session remembers by what was said in it."""
    said = [line for text in reading.earlier for line in text.splitlines() if line.startswith(("I wrote", "I bought"))]
    return f"I remember: {' '.join(said)}" if said else "I remember nothing of this."
    yield


def _look(reading: Reading, without: str | None) -> Course:
    return (yield from _command(reading, "look", nameless=without is not None))


def _spend(reading: Reading, amount: str, thing: str) -> Course:
    return (yield from _command(reading, "spend", amount, thing))


def _work(reading: Reading, seconds: str) -> Course:
    yield from _command(reading, "work", seconds)
    return ""


def _wait(reading: Reading, thing: str) -> Course:
    return (yield from _command(reading, "wait"))


def _think(reading: Reading, thing: str) -> Course:
    """Write, and write on: this is what usage limits are for."""
    number = 0
    while True:
        number += 1
        yield from _done(
            Call("write_file", {"path": "novel.txt", "content": f"Chapter {number} of {thing}. " + "And then. " * 60})
        )


def _command(reading: Reading, *words: str, nameless: bool = False) -> Course:
    tag = "-" if nameless or reading.tag is None else reading.tag
    return (yield from _done(Call("shell", {"command": shlex.join(["errand", str(reading.number), tag, *words])})))


def _done(call: Call) -> Course:
    """What the call says, without the shell's last line."""
    result = yield call
    said = " ".join(line for line in result.text.splitlines() if not line.startswith("["))
    if result.outcome is not CallOutcome.OK:
        raise GaveUp(said or f"{call.tool} gave nothing but: {result.text}")
    return said


_STEPS: tuple[tuple[str, Callable[..., Course]], ...] = (
    (r"read (\S+)", _read),
    (r"write (\S+): (.+)", _write),
    (r"add to (\S+): (.+)", _add),
    (r"recall", _recall),
    (r"look at the budget( without the tag)?", _look),
    (r"spend (\d{1,6}) on (.+)", _spend),
    (r"work for (\d{1,2}(?:\.\d)?) s", _work),
    (r"think about (.+)", _think),
    (r"wait for (.+)", _wait),
)
