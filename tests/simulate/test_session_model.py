"""Scenarios of one session: what the model does and does not, each answer worked out by hand from the rules."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulate.session_stage import END, answer, call, event, play, said, say, text, turns


def test_a_ceiling_ends_a_request_that_goes_on_and_on() -> None:
    """LSE-9, LSE-7: progress at 9, 17 and 25 s, and the ceiling of a request of 1 s is at 26 s."""
    steps = [text(8, "."), text(8, "."), text(8, "."), text(8, "."), END]
    result = play([say(1, "a")], [steps], settings={"llm_timeout": 10, "llm_ceiling": 25})
    assert result["expired"] == [{"kind": "llm", "epoch": 1, "waited": 25.0, "reason": "ceiling", "at": 26.0}]
    assert said(result) == ["user a"]
    assert turns(result) == [(1, 26, "failed")]
    assert not result["locked"]


@pytest.mark.parametrize("ceiling", [None, 40])
def test_without_a_ceiling_in_the_way_it_goes_on(ceiling: float | None) -> None:
    """LSE-9: the same stream, answered at 33 s."""
    steps = [text(8, "."), text(8, "."), text(8, "."), text(8, "."), END]
    result = play([say(1, "a")], [steps], settings={"llm_timeout": 10, "llm_ceiling": ceiling})
    assert turns(result) == [(1, 33, "ok")]
    assert result["expired"] == []


@pytest.mark.parametrize(
    "progress",
    [
        event(9, reasoning="hm"),
        text(9, "o"),
        call(9, "c1"),
    ],
)
def test_whatever_grows_is_progress(progress: list[Any]) -> None:
    """LSE-3: 9 s and 9 s more, with 10 s for each."""
    result = play(
        [say(0, "a")],
        [[progress, text(9, "k"), END], answer(1, "z")],
        tools={"c1": {"takes": 0, "output": ""}},
        settings={"llm_timeout": 10},
    )
    assert result["expired"] == []
    assert turns(result)[0][2] == "ok"


@pytest.mark.parametrize(
    "nothing",
    [
        event(9, ping=True),
        event(9, usage={"input": 5, "output": 5}),
        event(9, reasoning=""),
        text(9, ""),
    ],
)
def test_a_keep_alive_is_no_progress(nothing: list[Any]) -> None:
    """LSE-3: it is over at 10 s, and the answer at 18 s is never heard."""
    result = play([say(0, "a")], [[nothing, text(9, "k"), END]], settings={"llm_timeout": 10})
    assert result["expired"] == [{"kind": "llm", "epoch": 1, "waited": 10.0, "reason": "progress", "at": 10.0}]
    assert turns(result) == [(0, 10, "failed")]
    assert result["dropped"] == []  # it was stopped for real


def test_what_waited_counts_from_the_last_progress() -> None:
    """LSE-7: begun at 0 s, progress at 4 s, over at 14 s after 10 s."""
    result = play([say(0, "a")], [[text(4, "x"), event(9, ping=True)]], settings={"llm_timeout": 10})
    assert result["expired"] == [{"kind": "llm", "epoch": 1, "waited": 10.0, "reason": "progress", "at": 14.0}]
    assert said(result) == ["user a"]


def test_what_comes_at_the_deadline_is_late_and_times_are_exact() -> None:
    """LSE-2, SES-5: 0.1 s and 0.2 s are 0.3 s, the instant of the deadline."""
    result = play(
        [say(0.1, "a"), say(0.2, "b")], [answer(0.2, "late"), answer(0.1, "b's")], settings={"llm_timeout": 0.2}
    )
    assert result["expired"] == [{"kind": "llm", "epoch": 1, "waited": 0.2, "reason": "progress", "at": 0.3}]
    assert said(result) == ["user a", "user b", "assistant b's"]
    assert turns(result) == [(0.1, 0.3, "failed"), (0.3, 0.4, "ok")]


def test_a_late_reply_of_a_host_that_cannot_stop_is_dropped_once() -> None:
    """SES-2: three events after the deadline, one word of it, when its end arrives."""
    late = [text(12, "l"), text(1, "a"), text(1, "te"), END]
    result = play([say(0, "a")], [late], settings={"llm_timeout": 10}, remote=True)
    assert result["dropped"] == [{"kind": "reply", "epoch": 1, "at": 14.0}]
    assert said(result) == ["user a"]


def test_any_other_error_fails_the_turn_at_once() -> None:
    """SES-11: a bad request; the next input is answered."""
    result = play([say(0, "a"), say(5, "b")], [[event(2, error={"status": 400})], answer(1, "ok")])
    assert turns(result) == [(0, 2, "failed"), (5, 6, "ok")]
    assert said(result) == ["user a", "user b", "assistant ok"]
    assert result["requests"] == 2


def test_back_off_doubles_and_then_it_is_well() -> None:
    """SES-11: tries at 0, 2, 4.5 and 8.5 s; waits of 1, 2 and 4 s; a failed connection is one of them."""
    model = [
        [event(1, error={"status": 503})],
        [event(0.5, error={"status": 529})],
        [event(0, error={})],
        answer(1, "ok"),
    ]
    result = play([say(0, "a")], model)
    assert turns(result) == [(0, 9.5, "ok")]
    assert result["requests"] == 4
    assert result["expired"] == []


def test_the_partial_text_of_a_failed_try_is_forgotten() -> None:
    """SES-5, SES-11: only the try that ended counts."""
    model = [[text(1, "half"), event(1, error={"status": 502})], answer(1, "whole")]
    assert said(play([say(0, "a")], model)) == ["user a", "assistant whole"]


def test_the_tries_are_bounded() -> None:
    """SES-11: six of them, at 0, 1, 3, 7, 15 and 31 s."""
    result = play([say(0, "a")], [[event(0, error={"status": 500})]] * 9)
    assert result["requests"] == 6
    assert turns(result) == [(0, 31, "failed")]
    assert result["status"] == "waiting_for_input"


def test_tries_are_counted_anew_after_a_reply() -> None:
    """SES-11: three tries and a call, three tries and an answer, where four are too many."""
    down = [event(0, error={"status": 500})]
    model = [down, down, [call(0, "c1"), END], down, down, answer(0, "ok")]
    result = play([say(0, "a")], model, tools={"c1": {"takes": 1, "output": "r"}}, settings={"max_tries": 3})
    assert turns(result) == [(0, 7, "ok")]  # waits of 1 and 2 s, 1 s for the call, waits of 1 and 2 s


@pytest.mark.parametrize(
    ("retry_after", "ended"),
    [
        (0.25, 2.25),
        ("0.25", 2.25),
        (300, 302),
        ("soon", 3),  # the default: 1 s
        ("-5", 3),
        (0, 3),
        (None, 3),
        ("Thu, 01 Jan 1970 00:00:30 GMT", 31),  # the scenario's start is the epoch
    ],
)
def test_retry_after_is_waited_out_exactly(retry_after: object, ended: float) -> None:
    """SES-11: the error comes at 1 s, the answer takes 1 s."""
    model = [[event(1, error={"status": 429, "retry_after": retry_after})], answer(1, "ok")]
    assert turns(play([say(0, "a")], model)) == [(0, ended, "ok")]


@pytest.mark.parametrize("retry_after", [300.5, 301, 1e9, "999999999"])
def test_a_wait_that_is_too_long_ends_the_turn(retry_after: object) -> None:
    """SES-11: longer than max_backoff, 300 s."""
    model = [[event(1, error={"status": 429, "retry_after": retry_after})], answer(1, "ok")]
    result = play([say(0, "a")], model)
    assert turns(result) == [(0, 1, "failed")]
    assert result["requests"] == 1


def test_a_model_that_is_asked_more_than_the_scenario_says_fails_the_turn() -> None:
    """A session never waits for an answer that nobody wrote."""
    result = play([say(0, "a"), say(5, "b")], [answer(1, "ok")])
    assert turns(result) == [(0, 1, "ok"), (5, 5, "failed")]
