"""A transcript: results stand where their calls want them, repairs fill every gap, compaction keeps what must be kept (SES-9)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.model_events import StopReason
from concorde_trio._sansio.reply import Reply
from concorde_trio._sansio.transcript import Transcript
from concorde_trio.errors import InternalError
from concorde_trio.messages import CallOutcome, Input, Message, Role, ToolCall, message_from_json
from concorde_trio.records import Usage
from concorde_trio.testing.message_shape import check_message_shape

OK = CallOutcome.OK


def reply(*call_ids: str, text: str = "", usage: Usage | None = None) -> Reply:
    calls = tuple(ToolCall(id=each, name="look") for each in call_ids)
    return Reply(text=text, calls=calls, usage=usage, reason=StopReason.STOP)


def user(transcript: Transcript, text: str) -> Message:
    return transcript.add_user((Input(id=f"i{transcript.last_seq}", text=text, at=0.0),), text, 0.0)


def results(transcript: Transcript) -> list[tuple[int, str | None, str]]:
    return [(each.seq, each.call_id, each.text) for each in transcript if each.role is Role.TOOL]


def reloaded(transcript: Transcript, stored: Sequence[Message], last_seq: int | None = None) -> Transcript:
    """What a new process has of it: JSON, in order of seq behind the summary, without what was never stored."""
    plain = [message_from_json(each.as_json()) for each in stored]
    summaries = [each for each in plain if each.role is Role.SUMMARY]
    rest = sorted((each for each in plain if each.role is not Role.SUMMARY), key=lambda each: each.seq)
    return Transcript([*summaries, *rest], max(each.seq for each in plain) if last_seq is None else last_seq)


# --- results ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_results_in_any_order_stand_in_the_order_of_their_calls(order: tuple[int, ...]) -> None:
    """SES-9, F-15: each with its own id and text."""
    transcript = Transcript()
    user(transcript, "go")
    transcript.add_reply(reply("a", "b", "c"), 0.0, "m")
    places = list(transcript.open_calls)
    for done, number in enumerate(order, 1):
        transcript.add_result(places[number], OK, f"of {'abc'[number]}", 0.0)
        assert [each.seq for each in transcript] == sorted(each.seq for each in transcript)
        assert transcript.open_calls_left == 3 - done
    assert results(transcript) == [(3, "a", "of a"), (4, "b", "of b"), (5, "c", "of c")]
    check_message_shape(transcript.messages)


def test_nothing_comes_between_a_call_and_its_result() -> None:
    """SES-9, F-24: and a place takes one result."""
    transcript = Transcript()
    user(transcript, "go")
    transcript.add_reply(reply("a", "b"), 0.0, "m")
    transcript.add_result(3, OK, "", 0.0)
    for add in (
        lambda: user(transcript, "more"),
        lambda: transcript.add_reply(reply(), 0.0, "m"),
        lambda: transcript.add_interrupted("half", 0.0, "m", None),
        lambda: transcript.add_result(3, OK, "again", 0.0),
        lambda: transcript.add_result(9, OK, "nowhere", 0.0),
    ):
        with pytest.raises(InternalError):
            add()
    assert transcript.compactable() is None
    assert [each.seq for each in transcript] == [1, 2, 3] and list(transcript.open_calls) == [4]


# --- repair -------------------------------------------------------------------------------------------------


@st.composite
def cut_off(draw: st.DrawFn) -> tuple[list[Message], int]:
    """Messages of a session whose last reply has any subset of its results."""
    transcript = Transcript()
    for _ in range(draw(st.integers(0, 3))):
        user(transcript, "go")
        transcript.add_reply(reply(*draw(st.sampled_from(["", "a", "ab", "ba"]))), 0.0, "m")
        for place in draw(st.permutations(list(transcript.open_calls))):
            transcript.add_result(place, OK, "done", 0.0)
    user(transcript, "last")
    transcript.add_reply(reply(*"abcd"[: draw(st.integers(1, 4))]), 0.0, "m")
    for place in draw(st.permutations(list(transcript.open_calls))):
        if draw(st.booleans()):
            transcript.add_result(place, OK, "done", 0.0)
    return list(transcript.messages), transcript.last_seq


@given(cut_off())
def test_a_repair_fills_any_subset_of_missing_results_and_changes_no_other(cut: tuple[list[Message], int]) -> None:
    """SES-17, F-17: whatever results a crash left, then each call has exactly one, in order, and new ones go behind them."""
    messages, last_seq = cut
    transcript = reloaded(Transcript(), messages, max(each.seq for each in messages))
    missing = transcript.open_calls
    added = transcript.repair("cut off", 5.0)
    assert [(each.seq, each.call_id) for each in added] == [(place, call.id) for place, call in missing.items()]
    assert all((each.outcome, each.text) == (CallOutcome.INTERRUPTED, "cut off") for each in added)
    assert [each for each in transcript if each not in added] == messages
    assert transcript.open_calls_left == 0 and transcript.repair("again", 6.0) == ()
    assert user(transcript, "next").seq == last_seq + 1
    check_message_shape(transcript.messages)


def test_an_id_that_was_answered_in_an_earlier_reply_is_a_new_call_in_a_later_one() -> None:
    """SES-13, F-14: call-1 of turn 1 has its result; call-1 of turn 5 gets the synthetic one."""
    transcript = Transcript()
    for _ in range(4):
        user(transcript, "go")
        transcript.add_reply(reply("call-1"), 0.0, "m")
        transcript.add_result(transcript.last_seq, OK, "real", 0.0)
    user(transcript, "go")
    transcript.add_reply(reply("call-1"), 0.0, "m")
    again = reloaded(transcript, transcript.messages)
    (added,) = again.repair("cut off", 0.0)
    assert added.seq == transcript.last_seq == 15
    assert [text for _, _, text in results(again)] == ["real"] * 4 + ["cut off"]
    check_message_shape(again.messages)


# --- compaction ---------------------------------------------------------------------------------------------


def talk(*turns: tuple[str, str], usage: Usage | None = None) -> Transcript:
    transcript = Transcript()
    for asked, answered in turns:
        user(transcript, asked)
        transcript.add_reply(reply("c", usage=usage), 0.0, "m")
        transcript.add_result(transcript.last_seq, OK, "found", 0.0)
        transcript.add_reply(reply(text=answered, usage=usage), 0.0, "m")
    return transcript


def compacted(transcript: Transcript, text: str = "so far") -> Message:
    found = transcript.compactable()
    assert found is not None
    gone, kept = found
    assert sorted([*gone, *kept], key=transcript.messages.index) == list(transcript.messages)
    return transcript.compact(text, 1.0, kept)


def test_a_compaction_keeps_the_last_message_of_a_person_and_what_follows_it() -> None:
    """SES-15: where that is the smaller part."""
    transcript = talk(("a long question " * 9, "a long answer " * 9), ("the last question", "short"))
    summary = compacted(transcript)
    assert [(each.role, each.text) for each in transcript] == [
        (Role.SUMMARY, "so far"),
        (Role.USER, "the last question"),
        (Role.ASSISTANT, ""),
        (Role.TOOL, "found"),
        (Role.ASSISTANT, "short"),
    ]
    assert (summary.seq, summary.covers, summary.keeps) == (9, 8, (5, 6, 7, 8))
    check_message_shape(transcript.messages)


def test_where_most_of_it_came_after_the_last_message_of_a_person_that_message_alone_stays() -> None:
    """SES-15: one turn may fill the window by itself."""
    transcript = talk(("hi", "hi"), ("the last question", "a very long answer " * 9))
    summary = compacted(transcript)
    assert [each.text for each in transcript] == ["so far", "the last question"] and summary.keeps == (5,)
    assert user(transcript, "next").seq == 10
    check_message_shape(transcript.messages)


def test_there_may_be_nothing_worth_a_compaction() -> None:
    """SES-15: nothing, a single question, a summary that is alone or has one question behind it; open calls."""
    transcript = Transcript()
    assert transcript.compactable() is None
    user(transcript, "only")
    assert transcript.compactable() is None
    transcript = talk(("q", "a " * 50))
    compacted(transcript)
    assert transcript.compactable() is None
    transcript.add_reply(reply("c"), 0.0, "m")
    assert transcript.compactable() is None


def test_a_second_compaction_takes_the_first_summary_with_it() -> None:
    """SES-15: the last message of a person is kept again."""
    transcript = talk(("q", "a " * 50))
    compacted(transcript, "one")
    transcript.add_reply(reply(text="b " * 50), 0.0, "m")
    compacted(transcript, "two")
    assert [each.text for each in transcript] == ["two", "q"]
    check_message_shape(transcript.messages)


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=99)), min_size=1, max_size=4))
def test_no_compaction_loses_the_last_message_of_a_person(turns: list[tuple[str, str]]) -> None:
    """SES-15: and what is left is a valid transcript."""
    transcript = talk(*turns)
    last = max(each.seq for each in transcript if each.role is Role.USER)
    if transcript.compactable() is not None:
        compacted(transcript)
    assert last in [each.seq for each in transcript if each.role is Role.USER]
    check_message_shape(transcript.messages)


# --- reloading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("usage", [None, Usage(input_tokens=90_000, output_tokens=10)])
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("after", range(4))
def test_a_transcript_that_is_reloaded_from_its_messages_is_the_same(
    usage: Usage | None, compact: bool, after: int
) -> None:
    """SES-17, SES-15: same messages, same next place, same idea of its size: a reload leads to no compaction of its own."""
    transcript = talk(("question " * 9, "answer " * 9), ("the last", "x"), usage=usage)
    if compact:
        compacted(transcript)
    steps = [
        lambda: user(transcript, "more"),
        lambda: transcript.add_reply(reply("z", usage=usage), 0.0, "m"),
        lambda: transcript.add_result(transcript.last_seq, OK, "found again", 0.0),
    ]
    for step in steps[:after]:
        step()
    again = reloaded(transcript, transcript.messages)
    assert again.messages == transcript.messages
    assert again.last_seq == transcript.last_seq
    assert again.open_calls == transcript.open_calls
    assert again.tokens == transcript.tokens
    assert again.compactable() == transcript.compactable()


def test_the_size_is_what_the_provider_counted_and_a_guess_for_what_came_after() -> None:
    """SES-15: an interrupted reply's usage tells nothing of what a request has."""
    transcript = talk(("q", "a"), usage=Usage(input_tokens=1_000, output_tokens=50))
    assert transcript.tokens == 1_050
    user(transcript, "x" * 400)
    assert transcript.tokens == 1_150
    transcript.add_interrupted("y" * 40, 0.0, "m", Usage(input_tokens=7))
    assert transcript.tokens == 1_160
