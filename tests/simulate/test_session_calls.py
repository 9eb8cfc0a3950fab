"""Scenarios of one session: calls, their results, long outputs, each answer worked out by hand from the rules."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulate.session_stage import END, answer, call, calls, event, outcomes, play, said, say, turns

LONG = {"takes": 1, "output": "abcdefghijkl"}
CUT = "ab\n[... 8 characters left out ...]\nkl"
SHORT = {"summarize_over": 10, "truncate_to": 4}


def test_an_id_twice_in_a_reply_is_run_once() -> None:
    """SES-13, SES-9: the second is answered in its place."""
    result = play([say(0, "a")], [calls(1, "x", "x"), answer(1, "ok")], tools={"x": {"takes": 2, "output": "X"}})
    assert outcomes(result) == ["user a", "assistant  [x x]", "tool x ok", "tool x error", "assistant ok"]
    assert turns(result) == [(0, 4, "ok")]


def test_an_id_of_an_earlier_reply_is_a_new_call() -> None:
    """SES-13: it runs again."""
    result = play(
        [say(0, "a")], [calls(1, "x"), calls(1, "x"), answer(1, "ok")], tools={"x": {"takes": 2, "output": "X"}}
    )
    assert said(result).count("tool x ok: X") == 2
    assert turns(result) == [(0, 7, "ok")]


@pytest.mark.parametrize(
    "bad",
    [
        call(1, "x", name="nope"),
        call(1, "x", arguments="{not"),
        call(1, "x", arguments="[1]"),
        call(1, "x", arguments="{} {}"),
        call(1, "x", arguments='{"a": NaN}'),
        call(1, "x", arguments='{"a": '),
    ],
)
def test_a_call_that_cannot_be_made_is_an_error_and_takes_no_time(bad: list[Any]) -> None:
    """SES-9, SES-13: an unknown tool, arguments that are no JSON object; its neighbour runs, and the turn goes on."""
    result = play(
        [say(0, "a")], [[bad, call(0, "y"), END], answer(1, "ok")], tools={"x": LONG, "y": {"takes": 2, "output": "Y"}}
    )
    assert outcomes(result) == ["user a", "assistant  [x y]", "tool x error", "tool y ok", "assistant ok"]
    assert turns(result) == [(0, 4, "ok")]


@pytest.mark.parametrize("arguments", ["", " {} ", {"deep": [{"a": 1}]}, "{}"])
def test_arguments_that_are_an_object_are_good(arguments: object) -> None:
    """SES-9: nothing at all is an empty object."""
    result = play([say(0, "a")], [[call(1, "x", arguments=arguments), END], answer(1, "ok")], tools={"x": LONG})
    assert outcomes(result)[2] == "tool x ok"


def test_calls_run_one_after_another_and_only_neighbours_that_may_overlap() -> None:
    """SES-13: two that may run together, one that may not, two that may: 3 + 4 + 2 s."""
    ids = ["p", "q", "r", "s", "t"]
    reply = [*(call(1 if one == "p" else 0, one, name="alone" if one == "r" else "look") for one in ids), END]
    takes = {"p": 2, "q": 3, "r": 4, "s": 1, "t": 2}
    result = play(
        [say(0, "a")],
        [reply, answer(1, "ok")],
        toolset={"look": {"concurrent": True}, "alone": {}},
        tools={one: {"takes": takes[one], "output": one} for one in ids},
    )
    assert outcomes(result)[2:7] == [f"tool {one} ok" for one in ids]
    assert turns(result) == [(0, 11, "ok")]


def test_a_late_result_is_kept_where_it_belongs() -> None:
    """SES-7: over at 11 s, the turn ends at 12 s, and at 16 s the result is dropped and the record of it closed."""
    result = play(
        [say(0, "a")],
        [calls(1, "x"), answer(1, "gave up")],
        toolset={"look": {"timeout": 10}},
        tools={"x": {"takes": 15, "output": "late"}},
        remote=True,
    )
    assert outcomes(result) == ["user a", "assistant  [x]", "tool x timeout", "assistant gave up"]
    assert turns(result) == [(0, 12, "ok")]
    assert result["expired"] == [{"kind": "tool", "call": "x", "waited": 10.0, "reason": "timeout", "at": 11.0}]
    assert result["dropped"] == [{"kind": "result", "call": "x", "at": 16.0}]
    assert result["abandoned"] == [{"call": "x", "since": 11.0, "ended": 16.0}]


def test_abandoned_work_that_never_ends_stays_listed() -> None:
    """SES-8: never seen to end."""
    result = play([say(0, "a")], [calls(1, "x"), answer(1, "ok")], tools={"x": {"never": True}}, remote=True)
    assert result["abandoned"] == [{"call": "x", "since": 121.0, "ended": None}]
    assert result["dropped"] == []


def test_here_a_tool_is_stopped_for_real() -> None:
    """SES-8, SES-7: nothing is left of it, and its result says how long was waited, in seconds."""
    result = play(
        [say(0, "a")],
        [calls(1, "x"), answer(1, "ok")],
        toolset={"look": {"timeout": 0.5}},
        tools={"x": {"takes": 15, "output": "late"}},
    )
    assert result["abandoned"] == result["dropped"] == []
    assert turns(result) == [(0, 2.5, "ok")]
    assert " after 0.5 s." in result["transcript"][2]["text"]


def test_a_tool_may_fail_and_one_of_which_nothing_is_said_does() -> None:
    """SES-9: error results, and the turn goes on."""
    result = play(
        [say(0, "a")], [calls(1, "x", "y"), answer(1, "ok")], tools={"x": {"takes": 1, "output": "no", "error": True}}
    )
    assert outcomes(result)[2:4] == ["tool x error", "tool y error"]
    assert said(result)[2] == "tool x error: no"
    assert turns(result) == [(0, 3, "ok")]


@pytest.mark.parametrize(
    ("summary", "outcome", "result_text"),
    [
        ({"after": 2, "text": "short"}, "summarized", "short"),
        ({"after": 2, "text": "as long as i"}, "summarized", "as long as i"),
        ({"after": 2, "text": "longer than it"}, "truncated", CUT),
        ({"after": 2, "text": ""}, "truncated", CUT),
        ({"after": 2, "text": "  \n"}, "truncated", CUT),
        ({"after": 2, "error": {"status": 500}}, "truncated", CUT),
        ({"after": 2, "error": True}, "truncated", CUT),
        ({"after": 2, "error": {"status": 429, "retry_after": 60}}, "truncated", CUT),
    ],
)
def test_a_good_summary_is_the_result_and_a_bad_one_cuts(
    summary: dict[str, Any], outcome: str, result_text: str
) -> None:
    """SES-6, SES-14: the call at 1 s, its end at 2 s, the summary at 4 s, the answer at 5 s."""
    result = play(
        [say(0, "a")], [calls(1, "x"), answer(1, "ok")], tools={"x": LONG}, summaries=[summary], settings=SHORT
    )
    assert result["transcript"][2] == {"role": "tool", "call": "x", "outcome": outcome, "text": result_text}
    assert turns(result) == [(0, 5, "ok")]
    assert result["expired"] == []
    assert result["requests"] == 2


def test_an_output_that_is_just_long_enough_is_not_summarised() -> None:
    """SES-14: over, not from."""
    result = play([say(0, "a")], [calls(1, "x"), answer(1, "ok")], tools={"x": LONG}, settings={"summarize_over": 12})
    assert said(result)[2] == "tool x ok: abcdefghijkl"


def test_two_long_outputs_are_summarised_one_after_another() -> None:
    """SES-14, SES-6, LSE-5: x from 2 to 5 s under epoch 2, y from then on under epoch 3, which ends after 180 s."""
    result = play(
        [say(0, "a")],
        [calls(1, "x", "y"), answer(1, "ok")],
        toolset={"look": {"concurrent": True}},
        tools={"x": LONG, "y": LONG},
        summaries=[{"after": 3, "text": "of x"}, {"never": True}],
        settings=SHORT,
    )
    assert said(result)[2:] == ["tool x summarized: of x", f"tool y truncated: {CUT}", "assistant ok"]
    assert result["expired"] == [
        {"kind": "summarizing", "epoch": 3, "waited": 180.0, "reason": "progress", "at": 185.0}
    ]
    assert turns(result) == [(0, 186, "ok")]


def test_a_late_summary_is_dropped() -> None:
    """SES-2, SES-6: cut at 12 s, the summary comes at 22 s to nobody."""
    result = play(
        [say(0, "a")],
        [calls(1, "x"), answer(1, "ok")],
        tools={"x": LONG},
        summaries=[{"after": 20, "text": "late"}],
        settings={**SHORT, "summarizing_timeout": 10},
        remote=True,
    )
    assert said(result)[2] == f"tool x truncated: {CUT}"
    assert result["dropped"] == [{"kind": "summary", "epoch": 2, "at": 22.0}]
    assert turns(result) == [(0, 13, "ok")]


def test_a_limit_is_reached_across_requests() -> None:
    """SES-16: 50 and 60 tokens of 100; the second reply's call is not started, and the next turn has its own limit."""
    model = [
        [call(1, "x"), event(0, usage={"input": 30, "output": 20}), END],
        [call(1, "y"), event(0, usage={"input": 30, "output": 30}), END],
        answer(1, "anew"),
    ]
    tools = {one: {"takes": 1, "output": "r"} for one in "xy"}
    result = play([say(0, "a"), say(10, "b")], model, tools=tools, usage_limit=100)
    assert outcomes(result) == [
        "user a",
        "assistant  [x]",
        "tool x ok",
        "assistant  [y]",
        "tool y limited",
        "user b",
        "assistant anew",
    ]
    assert turns(result) == [(0, 3, "limited"), (10, 11, "ok")]


def test_a_reply_counts_once_and_a_try_that_failed_counts_too() -> None:
    """SES-16: the last usage of each request: 10 of the failed one, 60, 30; of 101 nothing is reached, of 100 it is."""
    model = [
        [event(0, usage={"input": 10}), event(0, error={"status": 500})],
        [event(0, usage={"input": 40}), call(1, "x"), event(0, usage={"input": 40, "output": 20}), END],
        [call(1, "y"), event(0, usage={"output": 30}), END],
        answer(1, "ok"),
    ]
    tools = {one: {"takes": 1, "output": "r"} for one in "xy"}
    assert turns(play([say(0, "a")], model, tools=tools, usage_limit=101)) == [(0, 6, "ok")]
    assert turns(play([say(0, "a")], model, tools=tools, usage_limit=100)) == [(0, 4, "limited")]


def test_an_answer_that_needs_no_further_request_may_cross_the_limit() -> None:
    """SES-16: ok, for nothing more is asked."""
    model = [[event(1, usage={"input": 500}), event(0, text="ok"), END]]
    assert turns(play([say(0, "a")], model, usage_limit=100)) == [(0, 1, "ok")]
