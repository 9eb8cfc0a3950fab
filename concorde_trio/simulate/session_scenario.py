"""Scenarios of one session: what is one, read from JSON, every field checked.

The law of this module: a scenario that could be parsed can be played. Times are seconds from the start of the
scenario; their decimal digits are exact (0.1 is one tenth). A file looks like this::

    {"inputs": [{"at": 0, "text": "look it up"}, {"at": 9, "interrupt": true}],
     "model": [[[1, {"call": {"id": "c1", "name": "look", "arguments": {}}}], [0, {"end": true}]],
               [[0.5, {"text": "It is 42"}], [0, {"usage": {"input": 30, "output": 5}}], [0, {"end": true}]],
               [[1, {"error": {"status": 429, "retry_after": 7}}]]],
     "toolset": {"look": {"timeout": 60, "concurrent": true}},
     "tools": {"c1": {"takes": 3, "output": "42"}},
     "summaries": [{"after": 2, "text": "short"}, {"error": {"status": 500}}, {"never": true}],
     "settings": {"llm_timeout": 300, "on_interrupt": "hold_queue"}, "usage_limit": 10000, "remote": false}

``inputs`` and ``model`` are required. ``about`` and ``expected`` mean nothing to a play.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from concorde_trio._sansio.model_events import ReplyEnd, TextDelta
from concorde_trio._sansio.session_terms import SessionSettings
from concorde_trio.errors import InvalidScenario, UsageError
from concorde_trio.records import TEXT_LIMIT, storable_text
from concorde_trio.sessions.tool import TIMEOUT
from concorde_trio.simulate.fields import Fields, refuse
from concorde_trio.simulate.session_events import error, step
from concorde_trio.simulate.session_script import (
    Reply,
    ScriptedCall,
    ScriptedError,
    ScriptedInput,
    ScriptedStep,
    ScriptedToolTerms,
    SessionScenario,
)

T = TypeVar("T")

FIELDS = ("inputs", "model", "toolset", "tools", "summaries", "settings", "usage_limit", "remote", "about", "expected")

_TIMES = ("heartbeat", "llm_timeout", "summarizing_timeout", "stop_wait", "backoff", "backoff_cap", "max_backoff")
_CEILINGS = ("llm_ceiling", "summarizing_ceiling")
_COUNTS = ("summarize_over", "truncate_to", "max_queue", "max_tries")
_ON_INTERRUPT = ("run_queue", "hold_queue")
_LONGEST_OUTPUT = 1_000_000
"""Characters. A host cuts what is longer, and keeps it in a file."""
ALWAYS = "look"
"""The tool that every scenario has."""


def parse_session_scenario(value: object) -> SessionScenario:
    """The scenario of a session in a JSON value; InvalidScenario, naming the field, if it is none."""
    fields = Fields(value, "", "a scenario of a session", FIELDS)
    inputs = fields.each("inputs", "a list of inputs", _input, required=True)
    model = fields.each("model", "a list of replies, one for each request", _reply, required=True)
    usage_limit = fields.count("usage_limit", default=None, least=1)
    toolset = fields.optional("toolset", lambda given, place: _by_name(given, place, "tools by name", _tool)) or {}
    return SessionScenario(
        inputs=inputs,
        model=model,
        toolset={ALWAYS: ScriptedToolTerms(), **toolset},
        tools=fields.optional("tools", lambda given, place: _by_name(given, place, "calls by id", _call)) or {},
        summaries=fields.each("summaries", "a list of summaries", _summary, required=False),
        settings=_settings(fields, usage_limit),
        remote=fields.flag("remote"),
    )


def _input(value: object, place: str) -> ScriptedInput:
    fields = Fields(value, place, "an input", ("at", "text", "interrupt"))
    at = fields.seconds("at")
    if fields.one_of("text", "interrupt") == "interrupt":
        fields.true("interrupt")
        return ScriptedInput(at=at, text=None)
    text = fields.string("text", "what a person says, a string")
    if not text.strip():
        refuse(fields.at("text"), "a text that says something", text)
    if len(text) > TEXT_LIMIT or storable_text(text) != text:
        refuse(fields.at("text"), f"at most {TEXT_LIMIT:,} characters, without NUL or lone surrogates", text)
    return ScriptedInput(at=at, text=text)


def _reply(value: object, place: str) -> Reply:
    if not isinstance(value, list | tuple):
        refuse(place, "a list of [seconds, event]", value)
    steps: list[ScriptedStep] = []
    for index, given in enumerate(value):
        where = f"{place}[{index}]"
        if steps and isinstance(steps[-1].event, ReplyEnd | ScriptedError):
            raise InvalidScenario(
                f"{where}: nothing comes after the end or error of a reply; leave it out", place=where
            )
        steps.append(step(given, where, index))
    return tuple(steps)


def _summary(value: object, place: str) -> Reply:
    """A summary as the steps of its reply: none, if it never comes."""
    fields = Fields(value, place, "a summary", ("after", "text", "error", "never"))
    given = fields.one_of("text", "error", "never")
    if given == "never":
        fields.true("never")
        _nothing_beside(fields, "after")
        return ()
    after = fields.seconds("after", 0.0)
    if given == "error":
        return (ScriptedStep(after, fields.need("error", _summary_error)),)
    text = fields.string("text", "the summary, a string")
    return (ScriptedStep(after, TextDelta(text)), ScriptedStep(0.0, ReplyEnd()))


def _summary_error(value: object, place: str) -> ScriptedError:
    return ScriptedError(500) if value is True else error(value, place)


def _tool(value: object, place: str) -> ScriptedToolTerms:
    fields = Fields(value, place, "a tool", ("timeout", "concurrent"))
    timeout = fields.optional_seconds("timeout", above=True)
    concurrent = fields.flag("concurrent")
    return ScriptedToolTerms(timeout=TIMEOUT if timeout is None else timeout, concurrent=concurrent)


def _call(value: object, place: str) -> ScriptedCall:
    fields = Fields(value, place, "what a call does", ("takes", "output", "output_repeat", "error", "never"))
    given = fields.one_of("output", "output_repeat", "never")
    if given == "never":
        fields.true("never")
        _nothing_beside(fields, "takes", "error")
        return ScriptedCall(takes=None)
    if given == "output":
        output = fields.string("output", "what the call gives, a string")
        if len(output) > _LONGEST_OUTPUT:
            refuse(fields.at("output"), f"at most {_LONGEST_OUTPUT:,} characters", output)
    else:
        output = fields.need("output_repeat", _repeat)
    return ScriptedCall(takes=fields.seconds("takes"), output=output, error=fields.flag("error"))


def _nothing_beside(fields: Fields, *names: str) -> None:
    for name in filter(fields.has, names):
        where = fields.at(name)
        raise InvalidScenario(f"{where}: means nothing beside never; leave it out", place=where)


def _repeat(value: object, place: str) -> str:
    if not isinstance(value, list | tuple) or len(value) != 2:
        refuse(place, "[text, times]", value)
    text, times = value
    if not isinstance(text, str):
        refuse(f"{place}[0]", "a string", text)
    if not isinstance(times, int) or isinstance(times, bool) or times < 0:
        refuse(f"{place}[1]", "a whole number of at least 0", times)
    if len(text) * times > _LONGEST_OUTPUT:
        refuse(place, f"at most {_LONGEST_OUTPUT:,} characters in all", value)
    return text * times


def _by_name(value: object, place: str, what: str, read: Callable[[object, str], T]) -> dict[str, T]:
    if not isinstance(value, Mapping):
        refuse(place, f"an object ({what})", value)
    twice = getattr(value, "twice", None)
    if twice is not None:
        where = Fields.join(place, twice)
        raise InvalidScenario(f"{where}: {twice!r:.60} is written twice; keep one of them", place=where)
    found: dict[str, T] = {}
    for name, given in value.items():
        if not isinstance(name, str) or not name:
            refuse(place, f"an object ({what}), each name a string of at least one character", name)
        found[name] = read(given, Fields.join(place, name))
    return found


def _settings(fields: Fields, usage_limit: int | None) -> SessionSettings:
    given: dict[str, Any] = fields.optional("settings", _given) or {}
    return SessionSettings(usage_limit=usage_limit, **given)


def _given(value: object, place: str) -> dict[str, Any]:
    """The settings that are written down, each as its own check wants it."""
    known = (*_TIMES, *_CEILINGS, *_COUNTS, "on_interrupt")
    fields = Fields(value, place, "the settings", known)
    given: dict[str, Any] = {}
    for name in filter(fields.has, known):
        if name in _TIMES:
            given[name] = fields.seconds(name)
        elif name in _CEILINGS:
            given[name] = fields.optional_seconds(name)
        elif name in _COUNTS:
            given[name] = fields.count(name, default=None, least=1)
        else:
            given[name] = fields.choice(name, _ON_INTERRUPT)
        try:
            SessionSettings(**{name: given[name]})
        except UsageError as refused:
            where = fields.at(name)
            raise InvalidScenario(f"{where}: {refused}", place=where) from None
    return given
