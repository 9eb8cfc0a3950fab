"""Runs by a real program: what it is given, what comes of what it prints, and what a person is told."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio._sansio.encoded_names import encode_name
from concorde_trio.errors import UsageError
from concorde_trio.processes.ending import Exit
from concorde_trio.records import RunOutcome, RunState, Usage
from concorde_trio.runtimes.command import CommandRuntime
from concorde_trio.signals.runtime import RuntimeContext
from concorde_trio.testing.runtime import NAMES, check_runtime
from tests.processes.census import PATH, Census
from tests.runtimes.agents import END, RULES, prompt, python, records, shell

pytestmark = pytest.mark.slow

TELL = "import json,os,sys; print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), sys.stdin.read()]))"


async def test_a_program_gets_prompt_arguments_environment_and_folder(
    census: Census, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-4, REC-6: the prompt on stdin and nowhere else; nothing inherited but what is named."""
    monkeypatch.setenv("A_SECRET", "s3cret")
    monkeypatch.setenv("NAMED", "yes")
    runtime = CommandRuntime(
        [sys.executable, "-c", TELL, "{session}", "{agent_server_url}", "{cwd}", "{model}", "--", "${x}"],
        cwd=f"{tmp_path}/work/{{session}}",
        env={"SESSION": "{session}", "URL": "{agent_server_url}", "PLAIN": "a b"},
        inherit=["NAMED", "NOT_THERE"],
        model="-m",
    )
    text = "--help @file\n$(reboot) \u2028 tag:0123456789abcdef\n"
    context = RuntimeContext(queue="q-1", agent_server_url="http://127.0.0.1:1", programs_lock=tmp_path / "lock")
    async with runtime.open(context):
        outcome = await runtime.run(prompt(text, session="Ann/../b"))
    arguments, environment, cwd, stdin = json.loads(outcome.text or "")
    session = encode_name("Ann/../b")
    assert stdin == text
    assert cwd == f"{tmp_path}/work/{session}"
    assert arguments == [session, "http://127.0.0.1:1", cwd, "-m", "--", "${x}"]
    assert environment.pop("CONCORDE_RUN_ID").startswith("q-1.")
    environment.pop("LC_CTYPE", None)  # Python's own doing
    assert environment == {
        "SESSION": session,
        "URL": "http://127.0.0.1:1",
        "AGENT_SERVER_URL": "http://127.0.0.1:1",
        "PLAIN": "a b",
        "NAMED": "yes",
    }


async def test_each_session_has_a_folder_of_its_own_whatever_its_name(census: Census, tmp_path: Path) -> None:
    """CLM-7: names from hell do not leave the folder, and do not meet."""
    runtime = shell(census, tmp_path, "pwd -P; ls", cwd=f"{tmp_path}/{{session}}")
    folders = set()
    for name in NAMES:
        outcome = await runtime.run(prompt(session=name))
        assert outcome.state is RunState.DONE, outcome
        folders.add(outcome.text)
    assert len(folders) == len(NAMES)
    assert {Path(folder or "").parent for folder in folders} == {tmp_path}


async def test_a_function_says_the_folder_of_a_session(census: Census, tmp_path: Path) -> None:
    """CLM-7: it gets the name as written; a folder that is not absolute fails the run."""
    runtime = shell(census, tmp_path, "pwd", cwd=lambda name: tmp_path / str(len(name)))
    assert (await runtime.run(prompt(session="a/b"))).text == f"{tmp_path}/3"
    with pytest.raises(UsageError, match="must give an absolute folder for the session 'ann', not 'ann'"):
        await shell(census, tmp_path, "pwd", cwd=lambda name: name).run(prompt())


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n", "\u2003"])
async def test_a_blank_prompt_is_refused_before_the_start(census: Census, tmp_path: Path, text: str) -> None:
    """RUN-4: programs take it for anything."""
    outcome = await shell(census, tmp_path, f"touch {tmp_path}/started; echo hi").run(prompt(text))
    assert (outcome.state, "is blank" in (outcome.error or "")) == (RunState.FAILED, True)
    assert not (tmp_path / "started").exists()


async def failure(runtime: CommandRuntime) -> str:
    """The error of a run that fails."""
    outcome = await runtime.run(prompt())
    assert outcome.state is RunState.FAILED
    return outcome.error or ""


async def test_a_program_that_fails_is_told_in_one_sentence(census: Census, tmp_path: Path) -> None:
    """RUN-7: with the program, how it ended, and the beginning of stderr."""

    def running(code: str, **more: Any) -> CommandRuntime:
        return shell(census, tmp_path, code, **more)

    assert await failure(running("echo some; echo why >&2; exit 1")) == (
        "the program 'sh' failed: it reported failure (exit status 1); stderr: why"
    )
    assert await failure(running("true")) == "the program 'sh' failed: it printed nothing (exit status 0)"
    assert await failure(running("echo; echo ' '")) == "the program 'sh' failed: it printed nothing (exit status 0)"
    assert await failure(running("exit 127", output=RULES)) == (
        "the program 'sh' failed: it printed nothing (exit status 127 (a shell's word for: command not found))"
    )
    assert "killed by SIGSEGV" in await failure(running("kill -SEGV $$"))
    assert "not-a-program: not found" in await failure(running("not-a-program"))
    long = await failure(running("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1"))
    assert len(long) < 700


async def test_a_program_that_cannot_be_started_is_told_in_one_sentence(census: Census, tmp_path: Path) -> None:
    """RUN-7: missing, not executable, no folder."""
    (tmp_path / "file").write_text("x")
    missing = CommandRuntime(["no-such-agent"], cwd=str(tmp_path))
    assert await failure(missing) == (
        "the program 'no-such-agent' was not started: it is in no folder of the PATH in its environment; "
        "give its absolute path, or let it inherit PATH"
    )
    plain = CommandRuntime([f"{tmp_path}/file"], cwd=str(tmp_path))
    assert "may not be executed (chmod +x)" in await failure(plain)
    no_folder = CommandRuntime(["true"], cwd=f"{tmp_path}/file")
    assert await failure(no_folder) == (
        f"the program 'true' was not started: its folder '{tmp_path}/file' cannot be made: File exists"
    )


async def test_a_secret_of_the_environment_is_in_no_error(
    census: Census, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RUN-7: programs quote their keys when they complain."""
    monkeypatch.setenv("AUTH_HEADER", "bearer-xyz")
    runtime = shell(
        census,
        tmp_path,
        'echo "{\\"type\\": \\"failed\\", \\"why\\": \\"401 for $THE_KEY\\"}"; echo "$AUTH_HEADER" >&2',
        env={"PATH": PATH, "THE_KEY": "sk-0123456"},
        inherit=["AUTH_HEADER"],
        output=RULES,
    )
    assert await failure(runtime) == (
        "the program 'sh' failed: 401 for <THE_KEY> (exit status 0); stderr: <AUTH_HEADER>"
    )


async def test_records_are_judged_by_rules(census: Census, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """RUN-5: a good stream is ok whatever the exit status, which is logged."""
    code = records({"type": "usage", "in": 5, "out": 2}, {"type": "usage", "in": 1, "out": 1}, END) + "exit 3"
    with caplog.at_level(logging.WARNING, "concorde_trio"):
        outcome = await shell(census, tmp_path, code, output=RULES).run(prompt())
    assert outcome == RunOutcome.ok("done", usage=Usage(input_tokens=6, output_tokens=3))
    assert [record.getMessage() for record in caplog.records] == [
        "sh did what it was asked, but ended with exit status 3"
    ]


async def test_a_function_judges_records_and_exit(census: Census, tmp_path: Path) -> None:
    """RUN-5: for streams that rules cannot judge; it gets all records, in bounds."""

    def judge(those: Any, exit: Exit) -> RunOutcome:
        return RunOutcome.ok(f"{len(those)} {those[-1]['type']} {exit.code}", usage=Usage(output_tokens=1))

    code = records({"type": "x"}, END) + "exit 3"
    outcome = await shell(census, tmp_path, code, output=judge).run(prompt())
    assert outcome == RunOutcome.ok("2 end 3", usage=Usage(output_tokens=1))
    assert "ends in the middle of a record" in await failure(shell(census, tmp_path, "printf '{\"a\"'", output=judge))
    assert "printed nothing" in await failure(shell(census, tmp_path, "true", output=judge))
    many = 'i=0; while [ $i -lt 1000 ]; do echo \'{"type": "x"}\'; i=$((i+1)); done'
    assert "max_output lets a function have 2,048" in await failure(
        shell(census, tmp_path, many, output=judge, max_output=2048)
    )
    with pytest.raises(UsageError, match="must return a RunOutcome, not int"):
        await shell(census, tmp_path, code, output=lambda those, exit: 7).run(prompt())  # type: ignore[arg-type, return-value]


async def test_a_long_text_answer_keeps_beginning_and_end(census: Census, tmp_path: Path) -> None:
    """RUN-5: max_output bounds what is stored."""
    outcome = await shell(census, tmp_path, "echo first; yes middle | head -100000; echo last", max_output=1024).run(
        prompt()
    )
    assert outcome.state is RunState.DONE
    assert outcome.text is not None
    assert len(outcome.text) < 1100
    assert outcome.text.startswith("first\n")
    assert outcome.text.endswith("last\n") or outcome.text.endswith("last")
    assert "bytes left out" in outcome.text


async def test_what_a_program_left_running_is_ended_and_logged(
    census: Census, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """REC-6: whatever its outcome; by name, never by its arguments, which can hold a tag (TAG-4)."""
    code = "setsid sleep $LABEL & (sleep $LABEL &); echo done"
    with caplog.at_level(logging.INFO, "concorde_trio"):
        outcome = await shell(census, tmp_path, code).run(prompt())
    assert outcome == RunOutcome.ok("done")
    assert census.alive() == []
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith("ended 2 processes that sh left running: ")
    assert census.label not in message


async def test_runs_are_concurrent(census: Census, tmp_path: Path) -> None:
    """RUN-4: each call has its own program; two that wait for each other both end."""
    runtime = python(
        census,
        tmp_path,
        "import os,sys,time\n"
        "open(f'{sys.argv[1]}/m.{sys.argv[2]}', 'w').close()\n"
        "while sum(name.startswith('m.') for name in os.listdir(sys.argv[1])) < 2: time.sleep(0.01)\n"
        "print('met')",
        str(tmp_path),
        "{session}",
    )
    outcomes = []

    async def one(session: str) -> None:
        outcomes.append(await runtime.run(prompt(session=session)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, "ann")
        nursery.start_soon(one, "bob")
    assert outcomes == [RunOutcome.ok("met")] * 2


async def test_a_command_runtime_passes_the_check(census: Census, tmp_path: Path) -> None:
    """RUN-3 to RUN-6: by the conformance suite."""
    code = 'read line; case "$line" in hang) sleep $LABEL;; fail) exit 1;; esac; echo "$line"'
    context = RuntimeContext(queue="q", programs_lock=tmp_path / "lock")
    await check_runtime(
        lambda: shell(census, tmp_path, code, cwd=f"{tmp_path}/{{session}}"),
        hangs="hang",
        fails="fail",
        context=context,
    )
