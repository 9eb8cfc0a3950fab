"""Reading scenarios: what is one, and what is refused, with the place where it stands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.errors import InvalidScenario
from concorde_trio.simulate import parse_scenario, read_scenario, simulate_file
from concorde_trio.simulate.scenario import parse_signal_scenario


def scenario(**changes: Any) -> dict[str, Any]:
    return {"signals": [signal()]} | changes


def signal(**changes: Any) -> dict[str, Any]:
    return {"id": "s1", "kind": "task", "at": 0, "prompts": [prompt()]} | changes


def prompt(**changes: Any) -> dict[str, Any]:
    return {"id": "r1", "session": "ann", "duration": 1} | changes


def without(given: dict[str, Any], field: str) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key != field}


def in_signal(**changes: Any) -> dict[str, Any]:
    return scenario(signals=[signal(**changes)])


def in_prompt(**changes: Any) -> dict[str, Any]:
    return in_signal(prompts=[prompt(**changes)])


def test_what_is_left_out_has_its_default() -> None:
    """CLM-2: 100,000 runs may wait."""
    found = parse_signal_scenario({"signals": [{"id": "s1", "kind": "task", "at": 1}]})
    assert (found.claim_ahead, found.max_running, found.stop, found.unknown_kinds) == (100_000, None, None, frozenset())
    only = found.signals[0]
    assert (only.handle, only.fail_handle, only.post, only.fail_post, only.prompts) == (0.0, False, None, False, ())


def test_null_is_no_bound_no_post_and_a_fresh_session() -> None:
    """CLM-2, LCK-1, LCK-4."""
    found = parse_signal_scenario(
        in_signal(post=None, prompts=[prompt(session=None, tag=None)]) | {"claim_ahead": None}
    )
    assert found.claim_ahead is None
    assert found.signals[0].post is None
    assert found.signals[0].prompts[0].session is None


def test_about_and_expected_mean_nothing() -> None:
    """They are for the reader and the test."""
    assert parse_scenario(scenario(about=3, expected=[])) == parse_scenario(scenario())


REFUSED = [
    ([], "the scenario", "an object (a scenario of signals, or of a session), got a list"),
    (None, "the scenario", "got null"),
    ({}, "the scenario", "got neither: an empty object"),
    ({"signal": []}, "the scenario", 'got neither: "signal"'),
    (scenario(signals={}), "signals", "a list of signals, got an object"),
    (scenario(signals=["s1"]), "signals[0]", 'an object (a signal), got "s1"'),
    (scenario(signal=[]), "signal", "unknown field 'signal'; did you mean 'signals'?"),
    (scenario(claim_ahead=-1), "claim_ahead", "a whole number of at least 0, or null for no bound, got -1"),
    (scenario(claim_ahead=1.5), "claim_ahead", "got 1.5"),
    (scenario(claim_ahead=True), "claim_ahead", "got true"),
    (scenario(max_running=0), "max_running", "of at least 1"),
    (scenario(unknown_kinds="typo"), "unknown_kinds", 'a list of kind names, got "typo"'),
    (scenario(unknown_kinds=["a", ""]), "unknown_kinds[1]", "1 to 200 characters"),
    (scenario(stop=3), "stop", "an object (a stop), got 3"),
    (scenario(stop={"mode": "drain"}), "stop.at", "seconds of at least 0, got nothing"),
    (scenario(stop={"at": 1}), "stop.mode", "one of drain, park, cancel, got nothing"),
    (scenario(stop={"at": 1, "mode": "now"}), "stop.mode", 'one of drain, park, cancel, got "now"'),
    (scenario(stop={"at": 1, "mode": ["drain"]}), "stop.mode", "got a list"),
    (scenario(stop={"at": 1, "mode": "park", "why": 1}), "stop.why", "unknown field 'why'; a stop has at, mode"),
    (scenario(signals=[without(signal(), "id")]), "signals[0].id", "the id of the signal, a string, got nothing"),
    (in_signal(id=7), "signals[0].id", "got 7"),
    (in_signal(id=""), "signals[0].id", 'got ""'),
    (scenario(signals=[without(signal(), "kind")]), "signals[0].kind", "a kind name, got nothing"),
    (in_signal(kind=3), "signals[0].kind", "must be a string"),
    (in_signal(kind="a\nb"), "signals[0].kind", "control characters"),
    (scenario(signals=[without(signal(), "at")]), "signals[0].at", "seconds of at least 0, got nothing"),
    (
        scenario(signals=[{**without(signal(), "at"), "att": 0}]),
        "signals[0].att",
        "unknown field 'att'; did you mean 'at'?",
    ),
    (in_signal(at=-0.5), "signals[0].at", "got -0.5"),
    (in_signal(at=float("nan")), "signals[0].at", "got NaN"),
    (in_signal(at=float("inf")), "signals[0].at", "got Infinity"),
    (in_signal(at=1e10), "signals[0].at", "at most 1,000,000,000"),
    (in_signal(at=10**400), "signals[0].at", "seconds"),
    (in_signal(handle=None), "signals[0].handle", "got null"),
    (in_signal(post="1"), "signals[0].post", 'seconds of at least 0, or null, got "1"'),
    (in_signal(fail_handle=1), "signals[0].fail_handle", "true or false, got 1"),
    (in_signal(fail_post="yes"), "signals[0].fail_post", "true or false"),
    (in_signal(prompts=None), "signals[0].prompts", "a list of prompts, got null"),
    (in_signal(prompts=[prompt(), 3]), "signals[0].prompts[1]", "an object (a prompt), got 3"),
    (in_signal(prompt=[]), "signals[0].prompt", "unknown field 'prompt'; did you mean 'prompts'?"),
    (in_signal(**{"fail handle": True}), 'signals[0]."fail handle"', "did you mean 'fail_handle'?"),
    (in_prompt(duration="x"), "signals[0].prompts[0].duration", 'expected seconds of at least 0, got "x"'),
    (in_signal(prompts=[without(prompt(), "duration")]), "signals[0].prompts[0].duration", "got nothing"),
    (in_signal(prompts=[without(prompt(), "id")]), "signals[0].prompts[0].id", "the id of the run"),
    (in_prompt(session=""), "signals[0].prompts[0].session", "1 to 200 characters"),
    (in_prompt(session="a" * 201), "signals[0].prompts[0].session", "this has 201"),
    (in_prompt(resources="w"), "signals[0].prompts[0].resources", "a list of resource names"),
    (in_prompt(resources=["w", None]), "signals[0].prompts[0].resources[1]", "must be a string"),
    (in_prompt(outcome="done"), "signals[0].prompts[0].outcome", 'one of ok, fail, limited, got "done"'),
    (in_prompt(tag=5), "signals[0].prompts[0].tag", "a tag, a string, or null, got 5"),
    (in_prompt(time_limit=0), "signals[0].prompts[0].time_limit", "seconds above 0, or null, got 0"),
    (
        in_prompt(text="hello"),
        "signals[0].prompts[0].text",
        "unknown field 'text'; a prompt has id, session, resources",
    ),
    (scenario(signals=[signal(), signal(prompts=[])]), "signals[1].id", "'s1' is taken by signals[0].id"),
    (
        scenario(signals=[signal(), signal(id="s2")]),
        "signals[1].prompts[0].id",
        "'r1' is taken by signals[0].prompts[0].id",
    ),
    (scenario(inputs=[]), "inputs", "this has signals and inputs; a scenario is of signals, or of a session"),
    (scenario(model=[], inputs=[]), "inputs", "this has signals and inputs and model"),
]


@pytest.mark.parametrize(("given", "place", "words"), REFUSED)
def test_what_is_no_scenario_is_refused_with_its_place(given: Any, place: str, words: str) -> None:
    """A file that is no scenario gets an error that names the field."""
    with pytest.raises(InvalidScenario) as refused:
        parse_scenario(given)
    assert refused.value.place == place
    assert str(refused.value).startswith(f"{place}: ")
    assert words in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
PLACES = [
    ("signals",),
    ("claim_ahead",),
    ("stop",),
    *(("signals", 0, field) for field in (*signal(), "handle", "post", "extra")),
    *(("signals", 0, "prompts", 0, field) for field in (*prompt(), "resources", "outcome", "tag", "time_limit")),
]


@given(st.sampled_from(PLACES), JSON)
def test_any_value_anywhere_is_read_or_refused(place: tuple[Any, ...], value: Any) -> None:
    """Nothing but InvalidScenario comes out of reading, whatever stands in a file."""
    given: Any = json.loads(json.dumps(scenario()))
    inner = given
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    try:
        parse_scenario(given)
    except InvalidScenario as refused:
        assert refused.place
        assert len(str(refused)) < 2000


FILES = [
    (b"", "line 1, column 1"),
    (b'{"signals": [\n  {"id": }]}', "line 2, column 10"),
    (b'{"signals": []} x', "line 1, column 17"),
    (b"[" * 100_000, "line 1"),
    (b'{"signals": [], "claim_ahead": 1, "claim_ahead": 2}', "claim_ahead"),
    (b'{"signals": [{"id": "s", "kind": "k", "at": 0, "post": 1, "post": 2}]}', "signals[0].post"),
]


@pytest.mark.parametrize(("data", "place"), FILES)
def test_a_file_of_bad_json_is_refused_with_line_and_column(data: bytes, place: str, tmp_path: Path) -> None:
    """A key that is written twice is refused too: one of the two would be lost without a word."""
    file = tmp_path / "case.json"
    file.write_bytes(data)
    with pytest.raises(InvalidScenario) as refused:
        read_scenario(file)
    assert refused.value.place == place


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    """Missing, a folder, or not UTF-8."""
    (tmp_path / "latin.json").write_bytes(b'{"about": "\xe9"}')
    for name, words in (("missing.json", "No such file"), (".", "directory"), ("latin.json", "byte 11 is 0xe9")):
        with pytest.raises(InvalidScenario, match=words) as refused:
            simulate_file(tmp_path / name)
        assert refused.value.place == str(tmp_path / name)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """Some editors write one."""
    file = tmp_path / "case.json"
    file.write_text(json.dumps(scenario()), encoding="utf-8-sig")
    assert simulate_file(file)["runs"]["r1"]["ended"] == 1.0
