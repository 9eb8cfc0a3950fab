"""Sessions of programs: a file each, a derived id each, and what happens when we are wrong about them."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
import trio

from concorde_trio.records import RunState
from concorde_trio.runtimes.command import CommandRuntime
from concorde_trio.runtimes.command_session import DerivedSession, SessionFile
from tests.processes.census import PATH, Census, until
from tests.runtimes.agents import prompt

pytestmark = pytest.mark.slow

NAMESPACE = uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")

CLAUDE_LIKE = """
file="store/$2"
case $1 in
--session-id) if [ -e $file ]; then echo "Session ID $2 is already in use." >&2; exit 1; fi ;;
--resume) if [ ! -e $file ]; then echo '{"type": "result"}'; echo "No conversation found with $2" >&2; exit 1; fi ;;
esac
echo "$1" >>calls
mkdir -p store; cat >>$file
echo "so far:"; cat $file
case $(tail -1 $file) in hang) echo >>hanging; sleep $LABEL;; esac
"""


def claude_like(census: Census, folder: Path) -> CommandRuntime:
    """A program that keeps its conversations by an id that it is given."""
    start = ["sh", "-c", CLAUDE_LIKE, "claude"]
    return CommandRuntime(
        [*start, "--session-id", "{native_id}"],
        argv_resume=[*start, "--resume", "{native_id}"],
        cwd=str(folder),
        env={"PATH": PATH, "LABEL": census.label},
        session=DerivedSession(NAMESPACE, folder / "known"),
    )


async def say(runtime: CommandRuntime, text: str, session: str = "Ann/x") -> str:
    """One run, and what it answers."""
    outcome = await runtime.run(prompt(f"{text}\n", session=session))
    assert outcome.state is RunState.DONE, outcome
    return outcome.text or ""


def calls(folder: Path) -> list[str]:
    """How the program was called, when it took the call."""
    return (folder / "calls").read_text().split()


async def test_a_derived_session_is_begun_once_and_then_resumed(census: Census, tmp_path: Path) -> None:
    """RUN-4, CLM-7: by the uuid of its name, by any worker."""
    assert await say(claude_like(census, tmp_path), "one") == "so far:\none"
    assert await say(claude_like(census, tmp_path), "two") == "so far:\none\ntwo"
    assert await say(claude_like(census, tmp_path), "other", session="ann/x") == "so far:\nother"
    assert calls(tmp_path) == ["--session-id", "--resume", "--session-id"]
    assert (tmp_path / "store" / str(uuid.uuid5(NAMESPACE, "Ann/x"))).exists()


async def test_a_session_that_the_program_lost_is_begun_again(census: Census, tmp_path: Path) -> None:
    """RUN-4: it says that it has no such conversation; one more try, with the other arguments."""
    await say(claude_like(census, tmp_path), "one")
    (tmp_path / "store" / str(uuid.uuid5(NAMESPACE, "Ann/x"))).unlink()
    assert await say(claude_like(census, tmp_path), "two") == "so far:\ntwo"
    assert calls(tmp_path) == ["--session-id", "--session-id"]


async def test_a_session_that_we_forgot_is_resumed(census: Census, tmp_path: Path) -> None:
    """RUN-4: it says that the id is in use; one more try, and then it is known."""
    await say(claude_like(census, tmp_path), "one")
    for file in (tmp_path / "known").iterdir():
        file.unlink()
    assert await say(claude_like(census, tmp_path), "two") == "so far:\none\ntwo"
    assert calls(tmp_path) == ["--session-id", "--resume"]
    assert await say(claude_like(census, tmp_path), "three") == "so far:\none\ntwo\nthree"


async def test_a_program_that_contradicts_itself_is_tried_twice_and_no_more(census: Census, tmp_path: Path) -> None:
    """RUN-4: a retry is not a loop."""
    complain = ["sh", "-c", "echo try >>tries; echo 'No conversation found, already in use' >&2; exit 1", "x"]
    runtime = CommandRuntime(
        [*complain, "{native_id}"],
        argv_resume=complain,
        cwd=str(tmp_path),
        env={"PATH": PATH},
        session=DerivedSession("a namespace", tmp_path / "known"),
    )
    outcome = await runtime.run(prompt())
    assert outcome.state is RunState.FAILED
    assert "already in use" in (outcome.error or "")
    assert (tmp_path / "tries").read_text() == "try\ntry\n"
    assert not (tmp_path / "known").exists()


async def test_a_session_is_known_even_if_its_first_run_was_cancelled(census: Census, tmp_path: Path) -> None:
    """RUN-6: what the program has seen, it has."""
    runtime = claude_like(census, tmp_path)
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.run, prompt("hang\n", session="Ann/x"))
            await until((tmp_path / "hanging").exists)
            scope.cancel()
    assert await say(runtime, "two") == "so far:\nhang\ntwo"
    assert calls(tmp_path) == ["--session-id", "--resume"]


async def test_a_session_file_is_one_for_each_name(census: Census, tmp_path: Path) -> None:
    """CLM-7: in its folder, which is made; with argv_resume once the file is there."""
    runtime = CommandRuntime(
        ["sh", "-c", 'cat >>"$1"; echo "new $1"', "x", "{session_file}"],
        argv_resume=["sh", "-c", 'cat >>"$1"; cat "$1"', "x", "{session_file}"],
        cwd=str(tmp_path),
        env={"PATH": PATH},
        session=SessionFile(tmp_path / "sessions"),
    )
    assert await say(runtime, "one", session="../A") == f"new {tmp_path}/sessions/=2e.=2f=41.jsonl"
    assert await say(runtime, "two", session="../A") == "one\ntwo"
    assert await say(runtime, "one", session="../a") == f"new {tmp_path}/sessions/=2e.=2fa.jsonl"
    assert len(list((tmp_path / "sessions").iterdir())) == 2


async def test_a_session_file_without_resume_arguments_always_uses_the_same(census: Census, tmp_path: Path) -> None:
    """RUN-4: for programs that make the file or go on with it by themselves."""
    runtime = CommandRuntime(
        ["sh", "-c", 'cat >>"$1"; cat "$1"', "x", "{session_file}"],
        cwd=str(tmp_path),
        env={"PATH": PATH},
        session=SessionFile(tmp_path / "sessions"),
    )
    assert await say(runtime, "one") == "one"
    assert await say(runtime, "two") == "one\ntwo"
