"""Scenarios of one session: inputs and interrupts, each answer worked out by hand from the rules."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulate.session_stage import (
    END,
    answer,
    call,
    calls,
    event,
    interrupt,
    outcomes,
    play,
    said,
    say,
    text,
    turns,
)

LIST = "[Multiple inputs received while processing:]\n"


def test_inputs_of_one_instant_come_in_file_order() -> None:
    """SES-10: the first begins a turn, and the others wait for its end."""
    result = play(
        [say(5, "late"), say(0, "a"), say(0, "b"), say(0, "c")], [answer(1, "A"), answer(1, "BC"), answer(1, "L")]
    )
    assert said(result) == [
        "user a",
        "assistant A",
        f"user {LIST}b\n---\nc",
        "assistant BC",
        "user late",
        "assistant L",
    ]
    assert turns(result) == [(0, 1, "ok"), (1, 2, "ok"), (5, 6, "ok")]


def test_an_input_at_the_instant_of_a_result_joins_the_turn() -> None:
    """SES-10: at one instant inputs come before what models and tools say."""
    result = play(
        [say(0, "a"), say(3, "b")], [calls(1, "x"), answer(1, "ok")], tools={"x": {"takes": 2, "output": "X"}}
    )
    assert said(result) == ["user a", "assistant  [x]", "tool x ok: X", "user b", "assistant ok"]
    assert turns(result) == [(0, 4, "ok")]


def test_a_full_queue_refuses_and_the_result_says_which() -> None:
    """SES-10, SES-10a: one may wait; the third input of the file is refused."""
    result = play([say(0, "a"), say(1, "b"), say(2, "c")], [answer(5, "A"), answer(1, "B")], settings={"max_queue": 1})
    assert result["rejected"] == [2]
    assert said(result) == ["user a", "assistant A", "user b", "assistant B"]


def test_an_interrupt_keeps_what_was_said_and_stops_the_stream() -> None:
    """SES-12, SES-5: the text up to 3 s, and nothing of what would have come at 6 s."""
    model = [[text(1, "Once upon"), text(5, " a time"), END], answer(1, "ok")]
    result = play([say(0, "a"), interrupt(3), say(4, "b")], model)
    assert said(result) == ["user a", "assistant Once upon", "user b", "assistant ok"]
    assert turns(result) == [(0, 3, "interrupted"), (4, 5, "ok")]
    assert result["dropped"] == []


def test_an_interrupt_of_a_stream_that_said_nothing_leaves_nothing() -> None:
    """SES-12, SES-13: a call of a reply that did not end was never made."""
    model = [[event(1, reasoning="hm"), call(1, "x"), event(9, ping=True), END], answer(1, "ok")]
    result = play([say(0, "a"), interrupt(3), say(4, "b")], model, tools={"x": {"takes": 1, "output": "X"}})
    assert said(result) == ["user a", "user b", "assistant ok"]
    assert turns(result) == [(0, 3, "interrupted"), (4, 5, "ok")]


def test_a_reply_that_a_remote_host_ends_after_an_interrupt_is_dropped() -> None:
    """SES-12, SES-2: the second answer is the session's, the first comes at 10 s to nobody."""
    result = play([say(0, "a"), interrupt(3), say(4, "b")], [answer(10, "late"), answer(1, "ok")], remote=True)
    assert said(result) == ["user a", "user b", "assistant ok"]
    assert result["dropped"] == [{"kind": "reply", "epoch": 1, "at": 10.0}]


def test_with_nothing_in_flight_an_interrupt_does_nothing() -> None:
    """SES-12: before the first input, and after the last turn."""
    result = play([interrupt(0), say(1, "a"), interrupt(5)], [answer(1, "ok")])
    assert said(result) == ["user a", "assistant ok"]
    assert turns(result) == [(1, 2, "ok")]


@pytest.mark.parametrize(
    ("settings", "expected", "when"),
    [
        (
            {"on_interrupt": "hold_queue"},
            ["user a", f"user {LIST}b\n---\nc", "assistant two"],
            [(0, 2, "interrupted"), (10, 11, "ok")],
        ),
        (
            {},
            ["user a", "user b", "assistant two", "user c", "assistant three"],
            [(0, 2, "interrupted"), (2, 3, "ok"), (10, 11, "ok")],
        ),
    ],
)
def test_what_is_queued_runs_after_an_interrupt_or_waits_for_the_next_input(
    settings: dict[str, Any], expected: list[str], when: list[tuple[float, float, str]]
) -> None:
    """SES-12: run_queue is the default; with hold_queue b waits for c."""
    model = [answer(5, "one"), answer(1, "two"), answer(1, "three")]
    result = play([say(0, "a"), say(1, "b"), interrupt(2), say(10, "c")], model, settings=settings)
    assert said(result) == expected
    assert turns(result) == when


def test_a_held_queue_sets_no_timer() -> None:
    """SES-10b, SES-12: b waits for a person who never comes, and the scenario is over."""
    result = play([say(0, "a"), say(1, "b"), interrupt(2)], [answer(5, "one")], settings={"on_interrupt": "hold_queue"})
    assert said(result) == ["user a"]
    assert (result["status"], result["locked"], result["requests"]) == ("waiting_for_input", False, 1)


def test_an_interrupt_ends_a_back_off_and_the_next_request_waits_it_out() -> None:
    """SES-11, SES-12: Retry-After runs until 21 s; the turn of 8 s asks then."""
    model = [[event(1, error={"status": 429, "retry_after": 20})], answer(1, "ok")]
    result = play([say(0, "a"), interrupt(5), say(8, "b")], model)
    assert turns(result) == [(0, 5, "interrupted"), (8, 22, "ok")]
    assert said(result) == ["user a", "user b", "assistant ok"]


def test_a_back_off_of_our_own_is_over_with_the_interrupt() -> None:
    """SES-11, SES-12: the provider asked for nothing, so b need not wait for the 2 s that were left."""
    down = [event(0, error={"status": 500})]
    result = play([say(0, "a"), interrupt(1.5), say(1.75, "b")], [down, down, answer(1, "ok")])
    assert turns(result) == [(0, 1.5, "interrupted"), (1.75, 2.75, "ok")]


def test_what_queued_during_a_back_off_runs_after_the_interrupt() -> None:
    """SES-12: at 5 s b begins its turn, and asks at 21 s."""
    model = [[event(1, error={"status": 429, "retry_after": 20})], answer(1, "ok")]
    result = play([say(0, "a"), say(3, "b"), interrupt(5)], model)
    assert turns(result) == [(0, 5, "interrupted"), (5, 22, "ok")]


def test_an_interrupt_during_a_summary_keeps_the_output_cut() -> None:
    """SES-12, SES-6: the tool ended at 2 s, so its result is kept; z never ran."""
    result = play(
        [say(0, "a"), interrupt(3), say(4, "b")],
        [calls(1, "x", "z"), answer(1, "ok")],
        tools={"x": {"takes": 1, "output": "abcdefghijkl"}, "z": {"takes": 1, "output": "Z"}},
        summaries=[{"after": 5, "text": "late"}],
        settings={"summarize_over": 10, "truncate_to": 4},
    )
    assert outcomes(result) == [
        "user a",
        "assistant  [x z]",
        "tool x truncated",
        "tool z interrupted",
        "user b",
        "assistant ok",
    ]
    assert turns(result) == [(0, 3, "interrupted"), (4, 5, "ok")]


def test_an_interrupt_of_a_remote_tool_lists_it_until_its_end() -> None:
    """SES-12, SES-7, SES-8: settled at 3 s, and seen to end at 9 s."""
    result = play(
        [say(0, "a"), interrupt(3)], [calls(1, "x")], tools={"x": {"takes": 8, "output": "late"}}, remote=True
    )
    assert outcomes(result) == ["user a", "assistant  [x]", "tool x interrupted"]
    assert result["abandoned"] == [{"call": "x", "since": 3.0, "ended": 9.0}]
    assert result["dropped"] == [{"kind": "result", "call": "x", "at": 9.0}]


def test_input_during_a_stream_waits_for_the_end_of_the_turn() -> None:
    """SES-10: one that came during the answer has a turn of its own."""
    result = play([say(0, "a"), say(1, "b")], [answer(3, "A"), answer(1, "B")])
    assert turns(result) == [(0, 3, "ok"), (3, 4, "ok")]
    assert result["roles"] == ["user", "assistant", "user", "assistant"]
