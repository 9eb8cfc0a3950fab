"""Reading scenarios of sessions: what is one, and what is refused, with the place where it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.errors import InvalidScenario
from concorde_trio.simulate import SessionScenario, parse_scenario, read_scenario, simulate
from concorde_trio.simulate.session_scenario import parse_session_scenario

TIME = "expected seconds of at least 0"


def scenario(**changes: Any) -> dict[str, Any]:
    return {"inputs": [{"at": 0, "text": "a"}], "model": [[[1, {"text": "ok"}], [0, {"end": True}]]]} | changes


def with_input(**given: Any) -> dict[str, Any]:
    return scenario(inputs=[given])


def with_step(*step: Any) -> dict[str, Any]:
    return scenario(model=[[list(step)]])


def with_event(**event: Any) -> dict[str, Any]:
    return with_step(1, event)


def with_call(**call: Any) -> dict[str, Any]:
    return with_event(call={"id": "c", "name": "look"} | call)


def with_tool(**tool: Any) -> dict[str, Any]:
    return scenario(tools={"c1": tool})


def with_summary(**summary: Any) -> dict[str, Any]:
    return scenario(summaries=[summary])


def with_settings(**given: Any) -> dict[str, Any]:
    return scenario(settings=given)


def test_what_is_left_out_has_its_default() -> None:
    """LSE-2, SES-14: the rules' own budgets, the tool look, and no limit."""
    found = parse_session_scenario({"inputs": [], "model": []})
    assert (found.toolset["look"].timeout, found.toolset["look"].concurrent) == (120, False)
    assert (found.tools, found.summaries, found.remote) == ({}, (), False)
    assert (found.settings.llm_timeout, found.settings.summarizing_timeout, found.settings.usage_limit) == (
        300,
        180,
        None,
    )


def test_null_is_no_bound() -> None:
    """LSE-9, SES-14, SES-16."""
    found = parse_session_scenario(scenario(settings={"llm_ceiling": None, "summarize_over": None}, usage_limit=None))
    assert (found.settings.llm_ceiling, found.settings.summarize_over) == (None, None)


def test_a_tool_may_be_given_beside_look_or_in_its_place() -> None:
    """A scenario has the tool look always."""
    found = parse_session_scenario(scenario(toolset={"dig": {"timeout": 5}}))
    assert {name: tool.timeout for name, tool in found.toolset.items()} == {"look": 120, "dig": 5}
    assert parse_session_scenario(scenario(toolset={"look": {"timeout": 5}})).toolset["look"].timeout == 5


def test_about_and_expected_mean_nothing() -> None:
    """They are for the reader and the test."""
    assert parse_scenario(scenario(about=3, expected=[])) == parse_scenario(scenario())


REFUSED = [
    ({"inputs": []}, "model", "a list of replies, one for each request, got nothing"),
    ({"model": []}, "inputs", "a list of inputs, got nothing"),
    ({"inputs": [], "model": [], "modell": []}, "modell", "unknown field 'modell'; did you mean 'model'?"),
    (scenario(inputs={}), "inputs", "a list of inputs, got an object"),
    (scenario(inputs=["a"]), "inputs[0]", 'an object (an input), got "a"'),
    (with_input(text="a"), "inputs[0].at", f"{TIME}, got nothing"),
    (with_input(at="0", text="a"), "inputs[0].at", f'{TIME}, got "0"'),
    (with_input(at=-1, text="a"), "inputs[0].at", "got -1"),
    (with_input(at=float("nan"), text="a"), "inputs[0].at", "got NaN"),
    (with_input(at=10**400, text="a"), "inputs[0].at", "seconds"),
    (with_input(at=0), "inputs[0]", "with one of text, interrupt, got none of them"),
    (with_input(at=0, text="a", interrupt=True), "inputs[0]", "got text and interrupt"),
    (with_input(at=0, interrupt=False), "inputs[0].interrupt", "expected true, got false"),
    (with_input(at=0, text=7), "inputs[0].text", "a string, got 7"),
    (with_input(at=0, text=" \n"), "inputs[0].text", "a text that says something"),
    (with_input(at=0, text="a\0b"), "inputs[0].text", "without NUL"),
    (with_input(at=0, text="\ud800"), "inputs[0].text", "lone surrogates"),
    (with_input(at=0, text="a", sender="x"), "inputs[0].sender", "unknown field 'sender'"),
    (scenario(model="x"), "model", "a list of replies"),
    (scenario(model=[{}]), "model[0]", "a list of [seconds, event], got an object"),
    (scenario(model=[[{"text": "a"}]]), "model[0][0]", "[seconds, event], got an object"),
    (with_step(1), "model[0][0]", "[seconds, event], got a list"),
    (with_step(1, {"text": "a"}, 2), "model[0][0]", "[seconds, event]"),
    (with_step(-1, {"text": "a"}), "model[0][0][0]", TIME),
    (with_step(True, {"text": "a"}), "model[0][0][0]", "got true"),
    (with_step(1, "end"), "model[0][0][1]", 'an object (an event), got "end"'),
    (
        with_step(1, {}),
        "model[0][0][1]",
        "with one of text, reasoning, call, usage, ping, end, error, got none of them",
    ),
    (with_event(text="a", end=True), "model[0][0][1]", "got text and end"),
    (with_event(txt="a"), "model[0][0][1].txt", "did you mean 'text'?"),
    (with_event(text=None), "model[0][0][1].text", "a string, got null"),
    (with_event(reasoning=1), "model[0][0][1].reasoning", "a string, got 1"),
    (with_event(ping=False), "model[0][0][1].ping", "true, got false"),
    (with_event(end=1), "model[0][0][1].end", "true, got 1"),
    (with_event(usage=5), "model[0][0][1].usage", "an object (a usage)"),
    (with_event(usage={"input": -1}), "model[0][0][1].usage.input", "a whole number of at least 0"),
    (with_event(usage={"input": 1.5}), "model[0][0][1].usage.input", "got 1.5"),
    (with_event(usage={"in": 1}), "model[0][0][1].usage.in", "unknown field"),
    (with_event(error=400), "model[0][0][1].error", "an object (an error), got 400"),
    (with_event(error={"status": "429"}), "model[0][0][1].error.status", "an HTTP status"),
    (with_event(error={"status": 7}), "model[0][0][1].error.status", "from 100 to 999"),
    (with_event(error={"status": 429, "retry_after": -1}), "model[0][0][1].error.retry_after", "got -1"),
    (with_event(error={"status": 429, "retry_after": []}), "model[0][0][1].error.retry_after", "got a list"),
    (with_event(call="c"), "model[0][0][1].call", "an object (a call)"),
    (with_event(call={"name": "look"}), "model[0][0][1].call.id", "the id of the call, a string, got nothing"),
    (with_call(id=1), "model[0][0][1].call.id", "got 1"),
    (with_call(name=None), "model[0][0][1].call.name", "got null"),
    (with_call(arguments=[]), "model[0][0][1].call.arguments", "an object, or a string that is passed on as it is"),
    (with_call(arguments={"a": {1, 2}}), "model[0][0][1].call.arguments", "an object that JSON can hold"),
    (
        scenario(model=[[[1, {"end": True}], [0, {"text": "a"}]]]),
        "model[0][1]",
        "nothing comes after the end or error of a reply",
    ),
    (scenario(toolset=[]), "toolset", "an object (tools by name), got a list"),
    (scenario(toolset={"": {}}), "toolset", "at least one character"),
    (scenario(toolset={"dig": 5}), "toolset.dig", "an object (a tool), got 5"),
    (scenario(toolset={"dig": {"timeout": 0}}), "toolset.dig.timeout", "seconds above 0"),
    (scenario(toolset={"dig it": {"concurrent": 1}}), 'toolset."dig it".concurrent', "true or false"),
    (scenario(tools={"c1": "r"}), "tools.c1", "an object (what a call does)"),
    (with_tool(takes=1), "tools.c1", "one of output, output_repeat, never, got none of them"),
    (with_tool(takes=1, output="a", never=True), "tools.c1", "got output and never"),
    (with_tool(output="a"), "tools.c1.takes", "got nothing"),
    (with_tool(takes=1, output=5), "tools.c1.output", "a string, got 5"),
    (with_tool(takes=1, output="x" * 1_000_001), "tools.c1.output", "at most 1,000,000 characters"),
    (with_tool(takes=1, never=True), "tools.c1.takes", "means nothing beside never"),
    (with_tool(never=1), "tools.c1.never", "true, got 1"),
    (with_tool(takes=1, output="a", error="x"), "tools.c1.error", "true or false"),
    (with_tool(takes=1, output_repeat="x"), "tools.c1.output_repeat", "[text, times]"),
    (with_tool(takes=1, output_repeat=[1, 2]), "tools.c1.output_repeat[0]", "a string"),
    (with_tool(takes=1, output_repeat=["x", -1]), "tools.c1.output_repeat[1]", "at least 0"),
    (with_tool(takes=1, output_repeat=["x", 1e3]), "tools.c1.output_repeat[1]", "a whole number"),
    (with_tool(takes=1, output_repeat=["x", 10**12]), "tools.c1.output_repeat", "at most 1,000,000 characters"),
    (scenario(summaries={}), "summaries", "a list of summaries"),
    (with_summary(after=1), "summaries[0]", "one of text, error, never, got none of them"),
    (with_summary(after=-1, text="s"), "summaries[0].after", TIME),
    (with_summary(after=1, text=2), "summaries[0].text", "a string, got 2"),
    (with_summary(after=1, never=True), "summaries[0].after", "means nothing beside never"),
    (with_summary(error="down"), "summaries[0].error", "an object (an error)"),
    (scenario(settings=[]), "settings", "an object (the settings)"),
    (with_settings(llm_timout=1), "settings.llm_timout", "did you mean 'llm_timeout'?"),
    (with_settings(llm_timeout=0), "settings.llm_timeout", "seconds above 0"),
    (with_settings(llm_timeout=1e9), "settings.llm_timeout", "seconds above 0"),
    (with_settings(llm_timeout=None), "settings.llm_timeout", "got null"),
    (with_settings(llm_ceiling=0), "settings.llm_ceiling", "seconds above 0"),
    (with_settings(heartbeat="1"), "settings.heartbeat", 'got "1"'),
    (with_settings(truncate_to=None), "settings.truncate_to", "a whole number of at least 1"),
    (with_settings(summarize_over=0), "settings.summarize_over", "a whole number of at least 1"),
    (with_settings(on_interrupt="stop"), "settings.on_interrupt", "one of run_queue, hold_queue"),
    (with_settings(usage_limit=5), "settings.usage_limit", "unknown field"),
    (scenario(usage_limit=0), "usage_limit", "a whole number of at least 1"),
    (scenario(remote=1), "remote", "true or false"),
]


@pytest.mark.parametrize(("given", "place", "words"), REFUSED)
def test_what_is_no_scenario_is_refused_with_its_place(given: Any, place: str, words: str) -> None:
    """A file that is no scenario gets an error that names the field."""
    with pytest.raises(InvalidScenario) as refused:
        parse_scenario(given)
    assert refused.value.place == place
    assert str(refused.value).startswith(f"{place}: ")
    assert words in str(refused.value)


FILES = [
    ('{"inputs": [], "model": [], "tools": {"c": {"never": true}, "c": {"never": true}}}', "tools.c"),
    ('{"inputs": [], "model": [[[0, {"end": true, "end": true}]]]}', "model[0][0][1].end"),
    ('{"inputs": [], "model": [[[0, {"call": {"id": "a", "id": "b", "name": "look"}}]]]}', "model[0][0][1].call.id"),
    ('{"inputs": [], "inputs": [], "model": []}', "inputs"),
]


@pytest.mark.parametrize(("text", "place"), FILES)
def test_a_key_that_is_written_twice_is_refused(text: str, place: str, tmp_path: Path) -> None:
    """One of the two would be lost without a word."""
    file = tmp_path / "case.json"
    file.write_text(text)
    with pytest.raises(InvalidScenario) as refused:
        read_scenario(file)
    assert refused.value.place == place


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FULL: dict[str, Any] = {
    "inputs": [{"at": 0, "text": "a"}, {"at": 9, "interrupt": True}],
    "model": [
        [
            [1, {"call": {"id": "c1", "name": "look", "arguments": {}}}],
            [1, {"usage": {"input": 1, "output": 1}}],
            [0, {"end": True}],
        ],
        [[1, {"error": {"status": 429, "retry_after": 3}}]],
        [[1, {"reasoning": "hm"}], [1, {"text": "ok"}], [1, {"ping": True}]],
    ],
    "toolset": {"look": {"timeout": 60, "concurrent": True}},
    "tools": {"c1": {"takes": 1, "output_repeat": ["x", 9]}},
    "summaries": [{"after": 1, "text": "s"}],
    "settings": {"heartbeat": 1, "llm_timeout": 5, "llm_ceiling": 9, "summarize_over": 4, "truncate_to": 2},
    "usage_limit": 100,
    "remote": False,
}


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in items for place in [(*at, key), *_places(inner, (*at, key))]]


@given(st.sampled_from(_places(FULL)), JSON)
def test_any_value_anywhere_is_refused_or_played(place: tuple[Any, ...], value: Any) -> None:
    """Nothing but InvalidScenario comes out of reading, and what could be read can be played."""
    given: Any = json.loads(json.dumps(FULL))
    inner = given
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    try:
        parsed = parse_scenario(given)
    except InvalidScenario as refused:
        assert refused.place
        assert len(str(refused)) < 2000
    else:
        assert isinstance(parsed, SessionScenario)
        assert not simulate(parsed)["locked"]


@pytest.mark.parametrize(
    "given",
    [
        scenario(inputs=[], model=[]),
        scenario(model=[]),
        scenario(model=[[]]),
        scenario(inputs=[{"at": 1e9, "text": "a"}], model=[[[1e9, {"text": "x"}]]]),
        scenario(
            model=[[[1, {"call": {"id": "c", "name": "look"}}], [0, {"end": True}]], []],
            tools={"c": {"never": True}},
            toolset={"look": {"timeout": 1e9}},
            settings={"llm_timeout": 9e8, "llm_ceiling": None, "heartbeat": 1e-9},
        ),
        scenario(model=[[[1e-9, {"text": "x"}], [0, {"end": True}]]], settings={"llm_timeout": 1e-7}),
        scenario(model=[[[0, {"usage": {"input": 2**62, "output": 2**62}}], [0, {"end": True}]]], usage_limit=1),
        scenario(model=[[[0, {"text": "\ud800\0"}], [0, {"end": True}]]]),
        scenario(model=[[[0, {"call": {"id": "", "name": "", "arguments": "x" * 100_000}}], [0, {"end": True}]]] * 2),
    ],
)
def test_odd_scenarios_are_played_to_their_end(given: Any) -> None:
    """Empty ones, huge and tiny times, and what no provider would send."""
    result = simulate(given)
    assert not result["locked"]
    json.dumps(result, allow_nan=False).encode()
