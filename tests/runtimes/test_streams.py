"""Streams of four agent programs, judged by rules: good, refused, cut, garbage, stalled, killed."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.processes.ending import Exit
from concorde_trio.records import RunOutcome, RunState, Usage
from concorde_trio.runtimes.command_output import RulesReading
from concorde_trio.runtimes.command_rules import JsonLines, Rule, UsageRules
from tests.runtimes import streams as s

OK, FAILED = Exit(code=0, signal=None), Exit(code=1, signal=None)
KILLED = Exit(code=None, signal=9)


def judged(rules: JsonLines, printed: bytes, exit: Exit, piece: int = 65536) -> RunOutcome:
    """The verdict on what was printed, read in pieces of this size."""
    reading = RulesReading(rules, 1024)
    for place in range(0, len(printed), piece):
        reading.feed(printed[place : place + piece])
    reading.finish()
    return reading.judge(exit)


GOOD = {
    "pi": (s.PI, s.PI_GOOD, OK, "all done", Usage(input_tokens=240, output_tokens=14, cached_tokens=40, cost=0.5)),
    "codex": (s.CODEX, s.CODEX_GOOD, OK, "codex done", Usage(input_tokens=240, output_tokens=14, cached_tokens=40)),
    "claude": (
        s.CLAUDE,
        s.CLAUDE_GOOD,
        OK,
        "claude done",
        Usage(input_tokens=240, output_tokens=14, cached_tokens=40, cost=0.00137),
    ),
    "claude, an empty answer": (
        s.CLAUDE,
        s.CLAUDE_EMPTY,
        OK,
        "",
        Usage(input_tokens=240, output_tokens=14, cached_tokens=40, cost=0.00137),
    ),
    "opencode": (
        s.OPENCODE,
        s.OPENCODE_GOOD,
        OK,
        "open done",
        Usage(input_tokens=240, output_tokens=14, cached_tokens=40, cost=1.0),
    ),
    "a good stream and a lying exit status": (
        s.CODEX,
        s.CODEX_GOOD,
        FAILED,
        "codex done",
        Usage(input_tokens=240, output_tokens=14, cached_tokens=40),
    ),
    "a last record without its newline": (
        s.CODEX,
        s.CODEX_GOOD[:-1],
        OK,
        "codex done",
        Usage(input_tokens=240, output_tokens=14, cached_tokens=40),
    ),
    "CRLF and blank lines": (
        s.CODEX,
        s.CODEX_GOOD.replace(b"\n", b"\r\n\r\n"),
        OK,
        "codex done",
        Usage(input_tokens=240, output_tokens=14, cached_tokens=40),
    ),
}


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("piece", [65536, 7])
def test_a_good_stream_is_ok_with_its_text_and_usage(name: str, piece: int) -> None:
    """RUN-5: the outcome, the answer and what it cost."""
    rules, printed, exit, text, usage = GOOD[name]
    outcome = judged(rules, printed, exit, piece)
    assert (outcome.state, outcome.error) == (RunState.DONE, None)
    assert outcome.text == text
    assert outcome.usage == usage


BAD = {
    "pi, 401 with exit status 0": (s.PI, s.PI_401, OK, "401 scripted 401"),
    "pi, aborted": (s.PI, s.PI_ABORTED, OK, "it ended in the state 'aborted', and gave no reason"),
    "pi, stalled and killed": (s.PI, s.PI_STALLED, KILLED, "ends without the record that ends a run"),
    "pi, only its session line": (s.PI, s.stream(s.PI_START[0]), OK, "ends without the record that ends a run"),
    "pi, an end without an answer": (s.PI, s.stream(*s.PI_START, *s.PI_END), OK, "in the state None"),
    "codex, cut": (s.CODEX, s.CODEX_CUT, FAILED, "stream disconnected before completion: eof"),
    "codex, refused before the thread": (s.CODEX, b"", FAILED, "it printed nothing"),
    "codex, killed": (s.CODEX, s.stream(*s.CODEX_START), KILLED, "ends without the record that ends a run"),
    "claude, 401 with subtype success": (s.CLAUDE, s.CLAUDE_401, FAILED, "API Error: 401 scripted 401"),
    "claude, interrupted": (s.CLAUDE, s.CLAUDE_INTERRUPTED, FAILED, "in the state True, and gave no reason"),
    "claude, blank": (s.CLAUDE, b"", OK, "it printed nothing"),
    "claude, blank lines only": (s.CLAUDE, b"\n \n\r\n", OK, "it printed nothing"),
    "claude, killed": (s.CLAUDE, s.stream(*s.CLAUDE_START), KILLED, "ends without the record that ends a run"),
    "opencode, 401": (s.OPENCODE, s.OPENCODE_401, FAILED, "scripted 401"),
    "opencode, a step of unknown reason": (s.OPENCODE, s.OPENCODE_UNKNOWN, OK, "ends without the record"),
    "an error after the good end": (s.OPENCODE, s.OPENCODE_GOOD + s.OPENCODE_401, OK, "scripted 401"),
    "garbage between good records": (s.CODEX, b"Warning: hot\n" + s.CODEX_GOOD, OK, "line that cannot be read"),
    "no object": (s.CODEX, s.CODEX_GOOD + b"42\n", OK, "not a int"),
    "no UTF-8": (s.CODEX, s.CODEX_GOOD + b"\xff\xfe\n", OK, "line that cannot be read"),
    "cut in the middle of a record": (s.CODEX, s.CODEX_GOOD[:-9], OK, "ends in the middle of a record"),
    "cut in the middle, after a failure": (s.CODEX, s.CODEX_CUT + b'{"typ', OK, "ends in the middle of a record"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("piece", [65536, 7])
def test_a_bad_stream_fails_whatever_the_exit_status(name: str, piece: int) -> None:
    """RUN-5: exit codes lie; the first thing that is wrong, in the order of the contract, is the error."""
    rules, printed, exit, says = BAD[name]
    outcome = judged(rules, printed, exit, piece)
    assert outcome.state is RunState.FAILED
    assert says in (outcome.error or "")


def test_true_is_not_one() -> None:
    """RUN-5: JSON tells them apart, and so do rules."""
    rules = JsonLines(end={"over": True}, state=Rule(when={"over": True}, take="error"), ok=[0])
    assert judged(rules, s.stream({"over": True, "error": 0}), OK).state is RunState.DONE
    assert judged(rules, s.stream({"over": True, "error": False}), OK).state is RunState.FAILED
    assert "without the record" in (judged(rules, s.stream({"over": 1, "error": 0}), OK).error or "")


def test_numbers_that_no_store_can_hold_are_not_counted() -> None:
    """RUN-5: what a program says it used is not to be trusted either."""
    rules = JsonLines(
        end={"end": 1},
        usage=UsageRules(
            input=Rule(when={"end": 1}, take="in"),
            output=Rule(when={"end": 1}, take="out"),
            cost=Rule(when={"end": 1}, take="cost"),
        ),
    )
    printed = b'{"end": 1, "in": 1e999, "out": 7, "cost": NaN}\n'
    assert judged(rules, printed, OK).usage == Usage(output_tokens=7)
    assert judged(rules, b'{"end": 1, "in": true, "out": "7", "cost": null}\n', OK).usage is None


def test_of_a_sum_each_run_gets_its_part() -> None:
    """SES-16: what came before is subtracted; a program that counts anew is believed; only codex tells a sum."""
    for rules, before, wanted in (
        (s.CODEX, Usage(input_tokens=200, output_tokens=10, cached_tokens=30), (40, 4, 10)),
        (s.CODEX, Usage(input_tokens=900, output_tokens=10, cached_tokens=30), (240, 14, 40)),
        (s.CODEX, None, (240, 14, 40)),
        (
            attrs.evolve(s.CODEX, usage=attrs.evolve(s.CODEX.usage, cumulative=False)),
            Usage(input_tokens=1),
            (240, 14, 40),
        ),
    ):
        reading = RulesReading(rules, 1024, before=before)
        reading.feed(s.CODEX_GOOD)
        usage = reading.usage
        assert usage is not None
        assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == wanted


def test_a_line_over_the_limit_is_unreadable_and_not_kept() -> None:
    """RUN-5: programs write lines of MiBs; one over max_line ends nothing but the trust."""
    rules = JsonLines(end={"type": "agent_end"}, max_line=1024)
    outcome = judged(rules, s.stream({"type": "x", "text": "y" * 2000}, {"type": "agent_end"}), OK)
    assert "longer than allowed" in (outcome.error or "")


def test_a_long_answer_keeps_its_beginning_and_end() -> None:
    """RUN-5: what is stored is bounded by max_output."""
    item = {"type": "item.completed", "item": {"type": "agent_message", "text": "a" * 2000 + "z" * 2000}}
    outcome = judged(s.CODEX, s.stream(item, {"type": "turn.completed"}), OK)
    assert outcome.text == "a" * 512 + "\n[... 2,976 bytes left out ...]\n" + "z" * 512


@given(st.sampled_from(sorted(GOOD)), st.integers(1, 10**6))
def test_a_good_stream_cut_in_its_last_record_is_never_ok(name: str, missing: int) -> None:
    """RUN-5: half an answer is no success."""
    rules, printed, exit, _, _ = GOOD[name]
    whole = printed.rstrip()
    last = whole.rpartition(b"\n")[2]
    outcome = judged(rules, whole[: -1 - missing % (len(last) - 1)], exit)
    assert outcome.state is RunState.FAILED
