"""Sessions on the command line: of a running worker, and of a database that nobody serves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Command
from tests.cli.session_household import serving_sessions

pytestmark = pytest.mark.slow


@pytest.fixture
def served(here: Path) -> Iterator[Path]:
    """A gateway with sessions on ``concorde.db`` in the current folder."""
    with serving_sessions(here):
        yield here


def until(command: Command, name: str, on: str) -> Any:
    """The session's document once it waits for this."""
    for _ in range(300):
        done = command("sessions", name, "--json")
        if done.status == 0 and done.json["waiting_on"]["on"] == on and (on != "input" or done.json["run"] is None):
            return done.json
        time.sleep(0.05)
    raise AssertionError(f"{name} does not wait for {on}: {done}")


def told(err: str) -> list[str]:
    """What was told on stderr, but that a busy machine let it wait for its run."""
    return [line for line in err.splitlines() if not line.startswith("lock: ")]


def test_what_is_said_is_answered_and_shown(command: Command, served: Path) -> None:
    """SES-20, SES-12a: send, its answer, the table, the session, the JSON form of each."""
    done = command("send", "ann", "hello", "--sender", "Ann", "--wait", "--id", "one")
    assert (done.status, done.out) == (0, "one\nYou said: hello\n")
    done = command("send", "a/b", "work hard", "--wait", "--json")
    assert (done.status, done.json["outcome"], done.json["text"]) == (0, "ok", "It ok: worked on work hard")
    found = command("sessions", "--json").json
    assert [(each["name"], each["messages"]) for each in found["sessions"]] == [("a/b", 4), ("ann", 2)]
    rows = [line.split() for line in command("sessions").out.splitlines()]
    assert rows[2][:4] == ["ann", "waiting_for_input", "2", "0"]
    shown = command("sessions", "a/b").out
    for part in (
        "session",
        "a/b",
        "waits for",
        "input",
        "work hard",
        '> work {"what": "work hard"}',
        "< work ok",
        "It ok",
    ):
        assert part in shown
    assert "user (Ann)" in command("sessions", "ann").out
    assert command("sessions", "--prefix", "a/", "--json").json["sessions"][0]["name"] == "a/b"
    assert command("sessions", "ann", "--messages", "1", "--json").json["last_messages"][0]["role"] == "assistant"


def test_a_turn_that_fails_is_a_failure_that_says_why(command: Command, served: Path) -> None:
    """SES-11: exit status 1; what was begun is not the answer."""
    done = command("send", "ann", "fail now", "--wait")
    assert done.status == 1 and "half" not in done.out and "failed: the key is wrong" in done.err
    done = command("send", "ann", "fail now", "--wait", "--json")
    assert (done.status, done.json["outcome"], done.json["text"]) == (1, "failed", None)


def test_a_repeat_is_the_first_receipt_and_a_conflict_says_so(command: Command, served: Path) -> None:
    """SES-10a: by the worker and by the database alike."""
    first = command("send", "ann", "stall", "--id", "one", "--json").json
    until(command, "ann", "model")
    for direct in ((), ("--direct",)):
        again = command("send", "ann", "stall", "--id", "one", "--json", *direct).json
        assert (again["id"], again["again"], again["signal_id"]) == ("one", True, first["signal_id"])
        done = command("send", "ann", "other", "--id", "one", *direct)
        assert done.status == 1 and "submitted before, with other text" in done.sentence()


def test_an_interrupt_ends_the_turn_and_an_answer_one_call(command: Command, served: Path) -> None:
    """SES-12, SES-18: interrupt, approve, deny; each says what it did, or that there was nothing to do."""
    command("send", "ann", "stall")
    until(command, "ann", "model")
    assert "model: scripted" in command("sessions", "ann").out
    assert command("interrupt", "ann").out == "interrupted ann\n"
    until(command, "ann", "input")
    done = command("interrupt", "ann")
    assert done.status == 1 and "no turn in flight" in done.sentence()
    assert command("interrupt", "ann", "--json").json["interrupted"] is False
    done = command("approve", "ann")
    assert done.status == 1 and done.sentence() == "session ann asks about nothing now; there is nothing to allow"
    for asked in (("runs", ""), ("signals", "")):
        assert "must have at least 1 character" in command(*asked).sentence(), "and not that it is an address elsewhere"
    for answer, outcome in (("approve", "ok"), ("deny", "denied")):
        command("send", "ann", f"ask for {answer}")
        asked = until(command, "ann", "approval")["approvals"][0]
        assert "allow work (execute" in command("sessions", "ann").out
        done = command(answer, "ann", asked["call_id"], "--json") if answer == "deny" else command(answer, "ann")
        assert done.status == 0
        until(command, "ann", "input")
        results = [
            each for each in command("sessions", "ann", "--json").json["last_messages"] if each["role"] == "tool"
        ]
        assert results[-1]["outcome"] == outcome
    done = command("deny", "ann", "nobody")
    assert done.status == 1 and "asks about no call" in done.sentence()


def test_a_worker_and_its_database_tell_the_same_of_what_is_stored(command: Command, served: Path) -> None:
    """SRV-2: two sources, one document."""
    command("send", "ann", "hello", "--wait")
    until(command, "ann", "input")
    live, stored = (command("sessions", "ann", "--json", *direct).json for direct in ((), ("--direct",)))
    assert (live.pop("loaded"), stored.pop("loaded")) == (True, False)
    assert live == stored


def test_without_a_worker_an_input_waits_for_the_next_one(command: Command, here: Path) -> None:
    """SES-20, SES-10a: stored before its id is printed; taken once by whoever serves next."""
    with serving_sessions(here):
        command("send", "ann", "hello", "--wait")
    done = command("send", "ann", "and this", "--id", "two")
    assert (done.status, done.out) == (0, "two\n") and "no worker serves this queue" in done.err
    assert command("send", "ann", "and this", "--id", "two", "--json").json["again"] is True
    found = command("sessions", "ann", "--json").json
    assert [each["id"] for each in found["queue"]] == ["two"] and found["waiting_on"]["on"] == "lock"
    shown = command("sessions", "ann")
    assert "and this" in shown.out and "no worker serves this queue" in shown.err
    assert "no worker" not in command("sessions").err
    with serving_sessions(here):
        done = command("send", "ann", "and last", "--wait")
        assert done.out.splitlines()[-1] == "You said: and last"
        said = command("sessions", "ann", "--json").json["last_messages"]
        assert [each["text"] for each in said if each["role"] == "user"] == ["hello", "and this", "and last"]
        assert said[2]["inputs"][0]["id"] == "two"


def test_what_needs_a_worker_says_that_there_is_none(command: Command, here: Path, household: Path) -> None:
    """SES-12: an interrupt cannot wait for the next worker."""
    for arguments in (("interrupt", "ann"), ("chat", "ann"), ("approve", "ann"), ("deny", "ann", "x")):
        done = command(*arguments, stdin="hello")
        assert done.status == 1 and "no worker serves this queue now" in done.sentence()
    done = command("sessions", "nobody")
    assert done.status == 1 and "no session 'nobody'" in done.sentence()
    assert command("sessions").err == "no sessions\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("send", "ann", ""),
        ("send", "ann", " \n"),
        ("send", "", "hello"),
        ("send", "a\x1bb", "hello"),
        ("send", "ann", "hello", "--id", ""),
        ("send", "ann", "hello", "--sender", "x" * 201),
        ("send", "ann", "a\x00b"),
        ("send", "ann"),
        ("sessions", "ann", "--prefix", "a"),
        ("sessions", "--limit", "0"),
        ("chat", "ann"),
        ("chat", ""),
    ],
)
def test_a_wrong_command_is_misuse_with_a_worker_or_without(
    command: Command, household: Path, arguments: tuple[str, ...]
) -> None:
    """CLM-7, SES-10: said before anything is stored."""
    done = command(*arguments)
    assert done.status == 2 and done.sentence()


def test_a_pipe_asks_one_thing_and_gets_the_answer(command: Command, served: Path) -> None:
    """SES-20: all of stdin is one input; stdout is the answer, stderr the rest; --json is one document."""
    done = command("chat", "ann", stdin="hello\nthere\n")
    assert (done.status, done.out, told(done.err)) == (0, "You said: hello\nthere\n", [])
    done = command("chat", "ann", stdin="work hard")
    assert done.out == "Let me see.\nIt ok: worked on work hard\n"
    assert told(done.err) == ['> work {"what": "work hard"}', "< work ok: worked on work hard"]
    done = command("chat", "ann", "--json", stdin="hi")
    assert (done.status, done.json["text"], done.json["state"]) == (0, "You said: hi", "accepted")
    done = command("chat", "ann", stdin="fail")
    assert (done.status, done.out) == (1, "") and "the key is wrong" in done.err
    done = command("chat", "ann", stdin="  ")
    assert done.status == 2 and "nothing to say" in done.sentence()
