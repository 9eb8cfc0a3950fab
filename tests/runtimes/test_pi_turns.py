"""PiRuntime and a scripted pi, on a virtual clock: turns that end well, and every way in which they don't."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from concorde_trio.records import RunOutcome, RunPrompt, RunState, Usage
from concorde_trio.runtimes.pi import PiRuntime
from concorde_trio.testing.runtime import check_runtime
from tests.runtimes.agents import prompt
from tests.runtimes.fake_pi import START, WHOLE, FakePi, delta, end, reply, said, tool, tool_ended, turn

ONE = Usage(input_tokens=120, output_tokens=7, cached_tokens=20, cost=0.25)
TWO = Usage(input_tokens=240, output_tokens=14, cached_tokens=40, cost=0.5)
SETTLED = {"type": "agent_settled", "aborted": False}


async def test_a_turn_switches_checks_prompts_and_settles(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-4, CLM-7: in the file of its session, over a connection of its own that is closed after it."""
    pi = FakePi(nursery)
    assert await pi.runtime().run(prompt(session="Ann/x")) == RunOutcome.ok("all done", usage=ONE)
    await trio.testing.wait_all_tasks_blocked()
    assert pi.closed == 1
    switch, state, asked, *rest = pi.heard[0]
    assert switch["sessionPath"] == "/srv/sessions/=41nn=2fx.jsonl"
    assert (state["type"], asked["type"], asked["message"]) == ("get_state", "prompt", "hello")
    assert {command["type"] for command in rest} == {"get_state"}


async def test_every_run_has_a_connection_of_its_own(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-4: also those at the same time; all are closed."""
    pi = FakePi(nursery, [*START, 5.0, *WHOLE[2:]])
    runtime = pi.runtime()
    async with trio.open_nursery() as runs:
        for number in range(5):
            runs.start_soon(runtime.run, prompt(session=f"s{number}"))
    await trio.testing.wait_all_tasks_blocked()
    assert trio.current_time() < 6
    assert sorted(heard[0]["sessionPath"] for heard in pi.heard) == [f"/srv/sessions/s{n}.jsonl" for n in range(5)]
    assert pi.closed == 5


@pytest.mark.parametrize("settled", [True, False])
async def test_usage_is_counted_once_for_each_reply(nursery: trio.Nursery, autojump_clock: Any, settled: bool) -> None:
    """SES-16: a reply is repeated by turn_end and agent_end, and a doubled end counts once; no agent_settled in pi 0.73."""
    first, last = reply("", "toolUse"), reply("the end")
    steps = [
        *START,
        *said(first),
        *said(first)[1:],
        tool(),
        tool_ended(),
        *said(last),
        *said(last)[1:],
        *end(first, last),
    ]
    pi = FakePi(nursery, [*steps, SETTLED] if settled else steps)
    assert await pi.runtime().run(prompt()) == RunOutcome.ok("the end", usage=TWO)


async def test_however_the_bytes_are_split_the_outcome_is_the_same(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-5: half lines, half characters, separators that are no ends of lines."""
    pi = FakePi(nursery, turn(reply("naïve\u2028日本")))
    pi.piece = 1
    assert await pi.runtime().run(prompt()) == RunOutcome.ok("naïve\u2028日本", usage=ONE)


async def test_a_turn_that_is_cut_anywhere_fails_and_says_so(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-5: after each line and in the middle of each; never ok, never a hang, nothing left open."""
    pi = FakePi(nursery)
    await pi.runtime().run(prompt())
    tried = 0
    for cut in [*range(0, pi.whole, 37), pi.whole - 1]:
        pi.cut = cut
        outcome = await pi.runtime().run(prompt())
        assert outcome.state is RunState.FAILED, cut
        assert "the connection was closed before its turn ended" in (outcome.error or "")
        tried += 1
    await trio.testing.wait_all_tasks_blocked()
    assert pi.closed == tried + 1 > 30
    assert trio.current_time() < 5  # none waited for a bound


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (reply(), None),
        (reply(stop="length"), None),
        (reply("", "error", errorMessage="529"), "the connection was closed before its turn ended"),
        (reply("", "aborted"), "the connection was closed before its turn ended"),
        (reply(usage=None), "the connection was closed before its turn ended"),
    ],
    ids=["stop", "length", "error", "aborted", "without usage"],
)
async def test_a_pi_that_leaves_right_after_a_whole_turn_has_done_it(
    nursery: trio.Nursery, autojump_clock: Any, message: dict[str, Any], error: str | None
) -> None:
    """RUN-5: the outcome is the last reply's, and only that pi is idle was still to be said. One that it may try again is not."""
    pi = FakePi(nursery, turn(message))
    await pi.runtime().run(prompt())
    for more in (0, 20, 40):  # of its answer to whether it is idle
        pi.cut = pi.whole + more
        outcome = await pi.runtime().run(prompt())
        assert (outcome.state is RunState.DONE) == (error is None)
        assert (error or "") in (outcome.error or "")


STALLS: dict[str, tuple[list[Any], dict[str, Any], float, str]] = {
    "switch": ([], {"switch_session": None}, 60, "for 60 s, waiting for its answer to switch_session"),
    "state": ([], {"get_state": None}, 60, "for 60 s, waiting for its answer to get_state"),
    "prompt": ([], {"prompt": None}, 300, "for 300 s (progress_limit), waiting for its answer to prompt"),
    "model": ([*START, *said(reply())[:1], 9.0, delta(), 1e6], {}, 309, "waiting for its model"),
    "same": ([*START, *said(reply())[:1], *([delta(""), 30.0] * 99)], {}, 300, "waiting for its model"),
    "noise": ([*START, *([{"type": "queue_update"}, 30.0] * 99)], {}, 300, "waiting for its model"),
    "tool": ([*START, *said(reply("", "toolUse")), tool(), 1e6], {}, 1800, "(tool_limit), waiting for the tool bash"),
    "ceiling": ([*START, *([delta(), 30.0] * 999)], {}, 3600, "took longer than 3600 s (ceiling)"),
}


@pytest.mark.parametrize("where", STALLS)
async def test_a_pi_that_stalls_is_given_up(nursery: trio.Nursery, autojump_clock: Any, where: str) -> None:
    """LSE-3, LSE-9, RUN-6: what does not grow is no progress; it is told to abort, and left."""
    steps, answers, seconds, says = STALLS[where]
    pi = FakePi(nursery, steps, **answers)
    outcome = await pi.runtime().run(prompt())
    assert outcome.state is RunState.FAILED
    assert says in (outcome.error or "")
    assert seconds <= trio.current_time() <= seconds + 3
    assert pi.kinds()[-1] == ("abort" if where not in ("switch", "state") else pi.kinds()[-1])
    await trio.testing.wait_all_tasks_blocked()
    assert pi.closed == 1


async def test_a_pi_that_says_for_ever_that_it_is_busy_is_given_up(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """LSE-3: an answer that it is not idle yet is no progress, also where there is no ceiling."""
    ended = b'{"type":"agent\\u005fend"}\n'  # written so, the fake goes on saying that it is at work
    pi = FakePi(nursery, [*START, *said(reply()), ended])
    outcome = await pi.runtime(ceiling=None, progress_limit=20).run(prompt())
    assert "no progress for 20 s (progress_limit), waiting for it to be idle" in (outcome.error or "")
    assert pi.kinds()[-1] == "abort"


async def test_a_turn_that_keeps_moving_is_not_given_up(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """LSE-3: the bound is for one silence, and a tool at work has its own."""
    steps = [*START, *said(reply())[:1], *([delta(), 290.0] * 3), *said(reply("", "toolUse"))]
    steps += [tool(), 1700.0, tool_ended(), 290.0, *said(reply()), *end(reply())]
    assert await FakePi(nursery, steps).runtime().run(prompt()) == RunOutcome.ok("all done", usage=TWO)


async def test_a_retry_and_a_compaction_are_parts_of_the_turn(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-5: agent_end alone is no end, and an error that was retried is none."""
    broken = reply("", "error", None, errorMessage="overloaded")
    steps = [*turn(broken), {"type": "auto_retry_start", "attempt": 1, "delayMs": 2000}, 2.0, *turn(reply("better"))]
    assert await FakePi(nursery, steps).runtime().run(prompt()) == RunOutcome.ok("better", usage=ONE)
    steps = [*turn(broken)[:-1], *end(broken, willRetry=True)[1:], 3.0, *turn(reply("better")), SETTLED]
    assert await FakePi(nursery, steps).runtime().run(prompt()) == RunOutcome.ok("better", usage=ONE)
    squeeze: list[Any] = [{"type": "compaction_start"}, 5.0, {"type": "compaction_end", "willRetry": True}, 1.0]
    steps = [*turn(broken), *squeeze, *turn(reply("shorter"))]
    assert await FakePi(nursery, steps).runtime().run(prompt()) == RunOutcome.ok("shorter", usage=ONE)
    squeeze[2:] = [{"type": "compaction_end", "willRetry": False}]
    assert await FakePi(nursery, [*WHOLE, *squeeze]).runtime().run(prompt()) == RunOutcome.ok("all done", usage=ONE)
    given_up = [{"type": "auto_retry_start"}, {"type": "auto_retry_end", "success": False}]
    outcome = await FakePi(nursery, [*turn(broken), *given_up]).runtime().run(prompt())
    assert outcome.error == "pi at its stream: overloaded"
    assert trio.current_time() < 60


OUTCOMES = [
    (turn(reply("cut short", "length")), None),
    (turn(reply("", "error", errorMessage="401 no such key")), "401 no such key"),
    (turn(reply("", "error")), "stop reason 'error'"),
    (turn(reply("half", "aborted")), "aborted, and not by us"),
    (turn(reply("", "toolUse")), "with a tool call and without an answer"),
    (turn(reply("half an ans", usage={"input": 0, "output": 0})), "probably cut off"),
    ([*START, *end(reply("", "error", None, errorMessage="inner"))], "inner"),
    ([*START, *end()], "without a reply of the model"),
]


@pytest.mark.parametrize(("steps", "says"), OUTCOMES, ids=[str(says) for _, says in OUTCOMES])
async def test_the_outcome_is_the_stop_reason_of_the_last_reply(
    nursery: trio.Nursery, autojump_clock: Any, steps: list[Any], says: str | None
) -> None:
    """RUN-5, RUN-7: and nothing else."""
    outcome = await FakePi(nursery, steps).runtime().run(prompt())
    assert outcome.state is (RunState.DONE if says is None else RunState.FAILED)
    assert says is None or says in (outcome.error or "")


async def test_a_server_that_never_tells_usage_can_be_had(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-5: then nothing is known of it, rather than zero."""
    pi = FakePi(nursery, turn(reply("short", usage={"input": 0, "output": 0, "cost": {"total": 0}})))
    assert await pi.runtime(usage_told=False).run(prompt()) == RunOutcome.ok("short", usage=None)


async def test_a_pi_in_another_session_is_not_prompted(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """CLM-7: nor one that is at work already, or refuses to switch."""
    for answers, says in (
        ({"get_state": {"sessionFile": "/srv/sessions/bob.jsonl"}}, "in the session '/srv/sessions/bob.jsonl'"),
        ({"get_state": {"isStreaming": True}}, "at work already"),
        ({"switch_session": {"success": False, "error": "folder is gone"}}, "refused switch_session: folder is gone"),
        ({"switch_session": {"cancelled": True}}, "an extension of it cancelled that"),
    ):
        pi = FakePi(nursery, **answers)  # type: ignore[arg-type]
        outcome = await pi.runtime().run(prompt())
        assert outcome.state is RunState.FAILED
        assert says in (outcome.error or "")
        assert "prompt" not in pi.kinds()


async def test_a_prompt_that_pi_refuses_fails_with_its_reason(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-7: such as: there is no model."""
    pi = FakePi(nursery, prompt={"success": False, "error": "No API key found"})
    outcome = await pi.runtime().run(prompt())
    assert outcome == RunOutcome.failed("pi at its stream: it refused prompt: No API key found")
    assert trio.current_time() < 1


async def test_a_text_that_pi_takes_for_itself_fails(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-5: it answers, and no turn begins."""
    outcome = await FakePi(nursery, prompt={}).runtime().run(prompt("/quit"))
    assert outcome.error == (
        "pi at its stream: its turn ended without a reply of the model: "
        "it took the text, which begins with '/', as a command of its own"
    )


async def test_what_is_no_record_fails_the_turn(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-5: it is aborted, for what comes after cannot be trusted."""
    for rubbish in (b"Warning: disk is full\n", b"[1]\n", b"\xff\xfe\n", b'{"type":\n', b"[" * 100_000 + b"\n"):
        pi = FakePi(nursery, [*START, rubbish, *WHOLE[2:]])
        outcome = await pi.runtime().run(prompt())
        assert "it said what cannot be read" in (outcome.error or "")
        assert pi.kinds()[-1] == "abort"


async def test_a_line_without_end_is_bounded(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-5: one that repeats what is known is let go; one that is needed fails the turn."""
    huge = b'","padding":"' + b"x" * 17_000_000 + b'"}\n'
    pi = FakePi(nursery, [*WHOLE[:-1], b'{"type":"agent_end","messages":[],"a":"' + huge])
    assert await pi.runtime().run(prompt()) == RunOutcome.ok("all done", usage=ONE)
    pi = FakePi(nursery, [*START, b'{"type":"message_end","message":{},"a":"' + huge, *WHOLE[2:]])
    assert "longer than allowed" in ((await pi.runtime().run(prompt())).error or "")


async def test_late_events_of_an_earlier_turn_are_none_of_ours(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-5: before our turn begins; so are answers that nobody asked for, and a second one."""
    stray = {"type": "response", "id": "concorde-3", "command": "prompt", "success": False, "error": "stale"}
    other = {"type": "response", "id": "x", "command": "get_state", "success": False, "error": "not ours"}
    pi = FakePi(nursery, [stray, other, *said(reply("old")), *end(reply("old")), *WHOLE])
    assert await pi.runtime().run(prompt()) == RunOutcome.ok("all done", usage=ONE)


async def test_a_question_of_an_extension_is_dismissed(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-6: nobody is there to answer it, and the turn goes on; what is no question is not answered."""
    ask = {"type": "extension_ui_request", "id": "q1", "method": "confirm", "title": "Sure?"}
    pi = FakePi(nursery, [*START, ask, {**ask, "id": "q2", "method": "notify"}, *WHOLE[2:]])
    assert (await pi.runtime().run(prompt())).state is RunState.DONE
    answers = [one for one in pi.heard[0] if one["type"] == "extension_ui_response"]
    assert answers == [{"type": "extension_ui_response", "id": "q1", "cancelled": True}]


async def test_a_usage_limit_that_is_reached_aborts_the_turn(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-4, SES-16: limited; an answer that needs nothing more is ok even over it."""
    steps = [*START, *said(reply("", "toolUse")), tool(), 1e6]
    pi = FakePi(nursery, steps)
    assert await pi.runtime().run(prompt(usage_limit=127)) == RunOutcome.limited(
        "usage limit reached: 127 of 127 tokens; the turn was aborted", usage=ONE
    )
    assert pi.kinds()[-1] == "abort"
    assert (await FakePi(nursery).runtime().run(prompt(usage_limit=1))).state is RunState.DONE
    below = FakePi(nursery, [*steps[:-1], tool_ended(), *said(reply()), *end(reply())])
    assert (await below.runtime().run(prompt(usage_limit=128))).state is RunState.DONE


@pytest.mark.parametrize(("answers", "seconds"), [({}, 0), ({"abort": None}, 2)])
async def test_a_cancelled_run_aborts_its_turn(
    nursery: trio.Nursery, autojump_clock: Any, answers: dict[str, Any], seconds: float
) -> None:
    """RUN-6: before the connection is closed; a pi that does not answer is left after a moment."""
    pi = FakePi(nursery, [*START, tool(), 1e6], **answers)
    with trio.move_on_after(10) as scope:
        await pi.runtime().run(prompt())
    assert scope.cancelled_caught
    assert pi.kinds()[-1] == "abort"
    assert 10 + seconds <= trio.current_time() < 10.5 + seconds
    await trio.testing.wait_all_tasks_blocked()
    assert pi.closed == 1


async def test_a_run_that_cannot_be_right_makes_no_connection(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """CLM-7: a wrong name, a blank text."""
    pi = FakePi(nursery)
    for session, text, says in (("", "hello", "1 to 200"), ("a\nb", "hello", "control"), ("ann", " \n\t", "blank")):
        outcome = await pi.runtime().run(RunPrompt(session=session, text=text))
        assert outcome.state is RunState.FAILED
        assert says in (outcome.error or "")
    assert pi.heard == []


async def test_a_pi_that_cannot_be_reached_fails_the_run_in_time(autojump_clock: Any) -> None:
    """RUN-6, RUN-7: refused, or never answered."""

    async def refused() -> trio.abc.Stream:
        raise ConnectionRefusedError(111, "Connection refused")

    outcome = await PiRuntime(refused, sessions="/srv").run(prompt())
    assert "no pi was reached at its stream: ConnectionRefusedError: [Errno 111] Connection refused" in (
        outcome.error or ""
    )

    async def refused_by_tls() -> trio.abc.Stream:
        raise trio.BrokenResourceError("no common cipher")

    outcome = await PiRuntime(refused_by_tls, sessions="/srv").run(prompt())
    assert "no pi was reached at its stream: BrokenResourceError: no common cipher" in (outcome.error or "")

    async def broken() -> trio.abc.Stream:
        raise LookupError("no such tunnel")

    outcome = await PiRuntime(broken, sessions="/srv").run(prompt())
    assert "no pi was reached at its stream: LookupError: no such tunnel" in (outcome.error or "")
    outcome = await PiRuntime(trio.sleep_forever, sessions="/srv").run(prompt())  # type: ignore[arg-type]
    assert "nothing answered for 10 s" in (outcome.error or "")
    assert trio.current_time() == 10


async def test_it_is_a_runtime(nursery: trio.Nursery, autojump_clock: Any) -> None:
    """RUN-3 to RUN-6: whatever every Runtime must do."""

    def steps(text: str) -> list[Any]:
        return {"hang": [*START, 1e9], "fail": turn(reply("", "error"))}.get(text, WHOLE)

    await check_runtime(FakePi(nursery, steps).runtime, hangs="hang", fails="fail")
