"""PiTurn by itself: whatever pi says, in whatever order, it neither breaks nor forgets to abort."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.lines import LineReader
from concorde_trio._sansio.pi_turn import PiPhase, PiTurn
from concorde_trio.records import RunOutcome, RunState, usage_fault

FILE = "/srv/sessions/ann.jsonl"
KINDS = [
    "agent_start",
    "turn_start",
    "message_start",
    "message_update",
    "message_end",
    "turn_end",
    "agent_end",
    "agent_settled",
    "auto_retry_start",
    "auto_retry_end",
    "compaction_start",
    "compaction_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "queue_update",
    "extension_ui_request",
    "response",
    "session",
]
scalars = st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats(allow_nan=False) | st.text(max_size=5)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
usages = json_values | st.fixed_dictionaries(
    {name: scalars for name in ("input", "output", "cacheRead", "cacheWrite")}
    | {"cost": st.fixed_dictionaries({"total": scalars})}
)
messages = json_values | st.fixed_dictionaries(
    {
        "role": st.sampled_from(["assistant", "user", "toolResult"]) | json_values,
        "content": json_values
        | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": scalars}), max_size=2),
        "stopReason": st.sampled_from(["stop", "length", "toolUse", "error", "aborted"]) | scalars,
        "errorMessage": scalars,
        "usage": usages,
    }
)
records = st.fixed_dictionaries(
    {"type": st.sampled_from(KINDS) | scalars},
    optional={
        "id": st.sampled_from([f"concorde-{number}" for number in range(1, 6)]) | scalars,
        "success": scalars,
        "command": st.sampled_from(["prompt", "parse"]) | scalars,
        "data": json_values,
        "message": messages,
        "messages": st.lists(messages, max_size=2) | json_values,
        "assistantMessageEvent": json_values,
        "toolCallId": scalars,
        "toolName": scalars,
        "partialResult": json_values,
        "willRetry": scalars,
        "method": st.sampled_from(["confirm", "notify"]) | json_values,
    },
)


def prompted(**options: Any) -> PiTurn:
    """A turn that is prompted, and whose pi has taken the prompt."""
    turn = PiTurn(FILE, "hello", **options)
    turn.begin()
    turn.take({"type": "response", "id": "concorde-1", "command": "switch_session", "success": True, "data": {}})
    turn.take({"type": "response", "id": "concorde-2", "success": True, "data": {"sessionFile": FILE}})
    assert turn.phase is PiPhase.PROMPTING
    turn.take({"type": "response", "id": "concorde-3", "success": True})
    return turn


@given(st.lists(records, max_size=12), st.booleans(), st.sampled_from([None, 1, 1000]))
def test_whatever_pi_says_there_is_an_outcome(said: list[dict[str, Any]], begun: bool, limit: int | None) -> None:
    """RUN-5, RUN-7: one that a store can hold, and a reason for each that is not ok; a given-up turn was told to abort."""
    turn = prompted(usage_limit=limit)
    sent = [command for record in ([{"type": "agent_start"}] if begun else []) + said for command in turn.take(record)]
    moved = turn.phase not in (PiPhase.OVER, PiPhase.ABORTING)
    sent += turn.fail("we give it up")
    assert not moved or sent[-1]["type"] == "abort"
    assert sum(command["type"] == "abort" for command in sent) <= 1
    assert turn.phase in (PiPhase.OVER, PiPhase.ABORTING)
    outcome = turn.outcome()
    assert outcome.state is RunState.DONE or (outcome.error or "").strip()
    assert outcome.usage is None or usage_fault(outcome.usage) is None
    assert turn.waiting_for


@given(st.binary(max_size=200))
def test_whatever_bytes_come_there_is_an_outcome(data: bytes) -> None:
    """RUN-5: a line that is none fails the turn, and that is all."""
    turn = prompted()
    for line in LineReader(100).feed(data + b"\n"):
        turn.take_line(line)
    assert turn.outcome().state is RunState.FAILED


def test_the_first_reason_counts() -> None:
    """RUN-7: what comes after is a consequence."""
    turn = prompted()
    turn.take({"type": "agent_start"})
    assert [command["type"] for command in turn.fail("it stalled")] == ["abort"]
    assert turn.fail("the connection broke") == []
    assert turn.outcome() == RunOutcome.failed("it stalled")


def test_a_turn_that_is_over_has_nothing_to_abort() -> None:
    """RUN-6: nor has one that was never prompted."""
    turn = PiTurn(FILE, "hello")
    turn.begin()
    assert turn.abort() == turn.fail("no connection") == []
    assert turn.phase is PiPhase.OVER


IDLE = {"isStreaming": False, "isCompacting": False, "pendingMessageCount": 0}
REPLY = {"role": "assistant", "content": [], "usage": {"input": 1}, "stopReason": "stop"}


def idle(number: int) -> dict[str, Any]:
    """The answer to a get_state: nothing is going on."""
    return {"type": "response", "id": f"concorde-{number}", "command": "get_state", "success": True, "data": IDLE}


def test_the_end_of_an_earlier_turn_does_not_end_ours() -> None:
    """RUN-5: it comes before our turn begins, and pi is idle for a moment."""
    turn = prompted()
    assert turn.take({"type": "agent_end", "messages": [REPLY]}) == []
    turn.take(idle(4))
    assert turn.phase is PiPhase.SETTLING
    assert [command["type"] for command in turn.ask_again()] == ["get_state"]
    turn.take({"type": "agent_start"})
    turn.take(idle(5))
    assert turn.phase is PiPhase.WORKING


def test_a_turn_is_over_with_agent_settled_or_with_an_idle_pi() -> None:
    """RUN-5: whichever comes first; tools that were not heard to end are at work no more."""
    for last in ({"type": "agent_settled"}, idle(5)):
        turn = prompted()
        turn.take({"type": "agent_start"})
        turn.take({"type": "tool_execution_start", "toolCallId": "c1", "toolName": "bash"})
        assert turn.waiting_for == "the tool bash"
        assert [command["id"] for command in turn.take({"type": "agent_end", "messages": [REPLY]})] == ["concorde-5"]
        assert turn.tools == {}
        turn.take(last)
        assert turn.phase is PiPhase.OVER
        assert turn.outcome().state is RunState.DONE


def test_that_pi_is_busy_still_is_no_progress() -> None:
    """LSE-3, RUN-5: or one that says so for ever would never be given up; any other answer is progress."""
    turn = prompted()
    turn.take({"type": "agent_start"})
    turn.take({"type": "agent_end", "messages": [REPLY]})
    before = turn.progress
    busy = {"type": "response", "command": "get_state", "success": True, "data": IDLE | {"isCompacting": True}}
    for number in range(5, 10):
        turn.take(busy | {"id": f"concorde-{number}"})
        assert turn.waiting_for == "it to be idle"
        assert [command["id"] for command in turn.ask_again()] == [f"concorde-{number + 1}"]
    assert turn.progress == before
    turn.abort()
    turn.take({"type": "response", "id": "concorde-11", "command": "abort", "success": True})
    assert (turn.phase, turn.progress) == (PiPhase.OVER, before + 1)
