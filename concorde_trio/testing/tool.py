"""What every Tool must do (SES-3, SES-8, SES-13), as a check that people who write one run in their tests.

It raises AssertionError with a sentence that names the rule. It takes as long as the tool's own calls take.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import trio

from concorde_trio.sessions.tool import ExecKind, Tool, ToolContext, ToolResult
from concorde_trio.testing.tool_context import FakeToolContext, tool_context

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


async def check_tool(
    tool: Tool,
    *,
    good_arguments: Mapping[str, Any],
    bad_arguments: Sequence[Mapping[str, Any]] = (),
    slow_arguments: Mapping[str, Any] | None = None,
    context: FakeToolContext | None = None,
    stops_within: float = 15.0,
) -> None:
    """Check a Tool; AssertionError for the first thing that is wrong.

    ``good_arguments`` give a good result, several times over. Each of ``bad_arguments`` must give an error result.
    ``slow_arguments`` take for ever, or None: not checked. ``context``: to call it with (default: one of its own).
    ``stops_within``: seconds in which a cancelled call must have returned.
    """
    _check_shape(tool)
    if context is not None:
        await _check_calls(tool, good_arguments, bad_arguments, slow_arguments, context, stops_within)
        return
    async with tool_context() as made:
        await _check_calls(tool, good_arguments, bad_arguments, slow_arguments, made, stops_within)
    left = [work.leftover for work in made.leftovers if work.leftover.what == "process" and not work.is_over]
    assert not left, f"SES-8: the run is over, and these were not seen to end: {left}"


def _check_shape(tool: Tool) -> None:
    spec = tool.spec
    assert _NAME.fullmatch(spec.name), f"a tool's name is 1 to 64 of A-Z a-z 0-9 _ -, not {spec.name!r}"
    assert isinstance(spec.description, str), f"the description is a text, not {spec.description!r:.80}"
    assert spec.parameters.get("type") == "object", "the parameters are the JSON Schema of an object"
    json.dumps(dict(spec.parameters), allow_nan=False)
    assert 0 < tool.timeout < math.inf, f"timeout is in seconds, above 0 and finite, not {tool.timeout!r}"
    assert isinstance(tool.concurrent, bool), f"concurrent is a bool, not {tool.concurrent!r}"
    assert tool.kind in get_args(ExecKind), f"SES-18: kind is one of {get_args(ExecKind)}, not {tool.kind!r}"
    assert inspect.iscoroutinefunction(tool.call), "call must be async"


async def _check_calls(
    tool: Tool,
    good: Mapping[str, Any],
    bad: Sequence[Mapping[str, Any]],
    slow: Mapping[str, Any] | None,
    context: FakeToolContext,
    stops_within: float,
) -> None:
    await _expect(tool, good, context, is_error=False)
    for arguments in bad:
        await _expect(tool, arguments, context, is_error=True)
    results: list[ToolResult] = []

    async def one(number: int) -> None:
        results.append(await tool.call(dict(good), context.another(session=f"{context.session}-{number}")))

    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(one, number)
    for result in results:
        _check_result(result, good, is_error=False)
    if slow is not None:
        for after in (0.0, 0.3):
            await _check_cancel(tool, slow, context.another(), after, stops_within)
    await _expect(tool, good, context.another(), is_error=False)


async def _expect(tool: Tool, arguments: Mapping[str, Any], context: ToolContext, *, is_error: bool) -> None:
    _check_result(await tool.call(dict(arguments), context), arguments, is_error=is_error)


def _check_result(result: object, arguments: Mapping[str, Any], *, is_error: bool) -> None:
    assert isinstance(result, ToolResult), f"a call must give a ToolResult, not {result!r:.80}"
    assert isinstance(result.text, str), f"a result's text is a str, not {result.text!r:.80}"
    assert result.is_error is is_error, (
        f"SES-13: {dict(arguments)!r:.200} should give {'an error result' if is_error else 'a good result'}: {result!r:.500}"
    )
    assert result.text.strip() or not is_error, "an error result says what was expected"


async def _check_cancel(
    tool: Tool, slow: Mapping[str, Any], context: ToolContext, after: float, stops_within: float
) -> None:
    ended = trio.Event()
    with trio.CancelScope() as scope:

        async def call() -> None:
            try:
                await tool.call(dict(slow), context)
            finally:
                ended.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            with trio.move_on_after(after):
                await ended.wait()
            early = after > 0 and ended.is_set()
            scope.cancel("check_tool")
            with trio.move_on_after(stops_within, shield=True):
                await ended.wait()
            in_time = ended.is_set()
    assert not early, f"{dict(slow)!r:.80} should take for ever"
    assert in_time, f"SES-3: a cancelled call had not returned after {stops_within:g} s"
