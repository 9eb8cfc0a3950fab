"""PiProgram: a process of each run, under the guard, with a program that speaks as pi does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio import Gateway, Prompt, Signal, new_tag
from concorde_trio.errors import UsageError
from concorde_trio.processes.sweep import new_marker
from concorde_trio.records import RunOutcome, RunState
from concorde_trio.runtimes.pi import PiRuntime
from concorde_trio.runtimes.pi_where import PiProgram
from concorde_trio.signals.runtime import RuntimeContext
from tests.processes.census import PATH, Census, is_alive, until
from tests.runtimes.agents import prompt

pytestmark = pytest.mark.slow

PI_LIKE = [sys.executable, "-S", str(Path(__file__).with_name("pi_like.py"))]


def runtime(census: Census, folder: Path, **options: Any) -> PiRuntime:
    """Its runtime; the program gets the census's label."""
    given: dict[str, Any] = {
        "cwd": folder / "work" / "{session}",
        "env": {"PATH": PATH, "LABEL": census.label},
        **options,
    }
    return PiRuntime(PiProgram(PI_LIKE, **given), sessions=folder / "sessions")


async def test_a_program_gets_its_folder_and_what_was_named(census: Census, tmp_path: Path) -> None:
    """RUN-4, CLM-7: the agent server's URL, and nothing of the worker's."""
    pi = runtime(census, tmp_path, env={"PATH": PATH, "WHO": "{session}"})
    async with pi.open(RuntimeContext(queue="pi-program", agent_server_url="http://127.0.0.1:1")):
        outcome = await pi.run(prompt("where", session="Ann/x"))
    folder, env = json.loads(outcome.text or "[]")
    assert (Path(folder) / "left").exists()  # at the end of its stdin, and no signal was needed
    assert folder == str(tmp_path / "work" / "=41nn=2fx")
    assert {name: env[name] for name in ("PATH", "WHO", "AGENT_SERVER_URL")} == {
        "PATH": PATH,
        "WHO": "=41nn=2fx",
        "AGENT_SERVER_URL": "http://127.0.0.1:1",
    }
    assert set(env) - {"PATH", "WHO", "AGENT_SERVER_URL", "CONCORDE_RUN_ID", "LC_CTYPE"} == set()


async def test_what_a_turn_left_running_is_ended_with_it(census: Census, tmp_path: Path) -> None:
    """REC-6: also what has left its group."""
    outcome = await runtime(census, tmp_path).run(prompt("tool (setsid sleep $LABEL &); sleep $LABEL & true"))
    assert (outcome.state, outcome.text) == (RunState.DONE, "done")
    assert census.alive() == []


async def test_a_cancelled_turn_is_aborted_and_nothing_is_left(census: Census, tmp_path: Path) -> None:
    """RUN-6, REC-6: pi ends its tool itself, before it is left; one that obeys nothing is killed."""
    for text, sign in (("tool touch begun; sleep $LABEL; touch ended", "begun"), ("deaf", "deaf")):
        pi = runtime(census, tmp_path, stop=[(15, 0.3)])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pi.run, prompt(text))
            await until((tmp_path / "work" / "ann" / sign).exists)
            nursery.cancel_scope.cancel()
        assert census.alive() == []
        assert not (tmp_path / "work" / "ann" / "ended").exists()


async def test_a_program_that_ends_in_its_turn_says_how(census: Census, tmp_path: Path) -> None:
    """RUN-7: with what it said on stderr, without the keys that it was given."""
    env = {"PATH": PATH, "API_KEY": "sk-very-secret"}
    outcome = await runtime(census, tmp_path, env=env).run(prompt("exit bad key sk-very-secret"))
    assert outcome == RunOutcome.failed(
        f"pi at the program {sys.executable!r}: it ended before its turn did (exit status 3); stderr: bad key <API_KEY>"
    )


async def test_a_program_that_cannot_be_started_fails_the_run(tmp_path: Path) -> None:
    """RUN-7: it is not there, or its folder cannot be made."""
    missing = PiRuntime(PiProgram(["/nowhere/pi"], cwd=tmp_path), sessions=tmp_path)
    assert "there is no such file" in ((await missing.run(prompt())).error or "")
    (tmp_path / "file").write_text("in the way")
    blocked = PiRuntime(PiProgram(PI_LIKE, cwd=tmp_path / "file" / "x"), sessions=tmp_path)
    assert "cannot be made: Not a directory" in ((await blocked.run(prompt())).error or "")


def sleeper(census: Census, queue: str) -> subprocess.Popen[bytes]:
    """A process that a run of the queue left."""
    return subprocess.Popen(["sleep", census.label], env={"CONCORDE_RUN_ID": new_marker(queue)})


async def test_opening_ends_what_an_earlier_worker_left(census: Census, tmp_path: Path) -> None:
    """REC-6: known dead before anything runs."""
    left = sleeper(census, "pi-opens")
    try:
        async with runtime(census, tmp_path).open(RuntimeContext(queue="pi-opens")):
            assert not is_alive(left.pid)
    finally:
        left.kill()
        left.wait()


WORKER = """
import sys, trio
from pathlib import Path
from tests.processes.census import Census
from tests.runtimes.agents import prompt
from tests.runtimes.test_pi_program import runtime
from concorde_trio.signals.runtime import RuntimeContext

census = Census()
census.label = sys.argv[2]
folder = Path(sys.argv[1])

async def main():
    pi = runtime(census, folder, stop=[(15, 3600.0)])
    async with pi.open(RuntimeContext(queue="killed-pi", programs_lock=folder / "lock")):
        await pi.run(prompt("tool touch begun; (setsid sleep $LABEL &); sleep $LABEL"))

trio.run(main)
"""


async def test_a_killed_worker_leaves_no_pi(census: Census, tmp_path: Path) -> None:
    """REC-6: SIGKILL, and the guard does the rest."""
    process = await trio.lowlevel.open_process([sys.executable, "-c", WORKER, str(tmp_path), census.label])
    await until((tmp_path / "work" / "ann" / "begun").exists)
    process.kill()
    await process.wait()
    await until(lambda: census.alive() == [])


ASK = (
    "import os, sys, urllib.request as web; url = os.environ['AGENT_SERVER_URL'] + '/runs/current'; "
    "print(web.urlopen(web.Request(url, headers={'concorde-run-tag': sys.argv[1]})).read().decode())"
)


async def test_a_turn_is_known_to_the_agent_server_by_its_tag(census: Census, tmp_path: Path) -> None:
    """TAG-3, RUN-4: of a gateway's run; the tag is in its text and nowhere else."""
    gateway = Gateway(store=f"sqlite:///{tmp_path}/queue.db", runtime=runtime(census, tmp_path))

    @gateway.handler("errand")
    def on_errand(signal: Signal) -> list[Prompt]:
        tag = new_tag()
        code = f'{sys.executable} -c "{ASK}" {tag} >answer'
        return [Prompt(session="ann", text=f"tool {code}", tag=tag, context="for ann")]

    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        record = await gateway.wait_settled(await gateway.emit("errand"))
        gateway.stop()
    assert (record.state, record.error) == ("done", None)
    known = json.loads((tmp_path / "work" / "ann" / "answer").read_text())
    assert (known["signal_id"], known["session"], known["context"]) == (record.id, "ann", "for ann")


async def test_mistakes_are_refused_where_they_are_written(census: Census, tmp_path: Path) -> None:
    """RUN-4: with the way out."""
    program = PiProgram(PI_LIKE, cwd=tmp_path)
    for make, says in (
        (lambda: PiRuntime("localhost:17016", sessions=tmp_path), "'tcp://HOST:PORT' or 'unix:///PATH'"),
        (lambda: PiRuntime("tcp://localhost", sessions=tmp_path), "'tcp://HOST:PORT'"),
        (lambda: PiRuntime("tcp://localhost:99999", sessions=tmp_path), "'tcp://HOST:PORT'"),
        (lambda: PiRuntime(17016, sessions=tmp_path), "takes an address"),  # type: ignore[arg-type]
        (lambda: PiRuntime(program, sessions="sessions"), "must be an absolute folder"),
        (lambda: PiRuntime(program, sessions=tmp_path, ceiling=0), "ceiling must be seconds above 0"),
        (lambda: PiProgram(["pi", "{native_id}"], cwd=tmp_path), "is none of PiProgram's placeholders"),
        (lambda: PiProgram("pi --mode rpc", cwd=tmp_path), "No shell splits it"),
    ):
        with pytest.raises(UsageError, match=says):
            make()
    pi = PiRuntime(PiProgram(PI_LIKE, cwd=tmp_path, env={"URL": "{agent_server_url}"}), sessions=tmp_path)
    with pytest.raises(UsageError, match="has no agent server"):
        async with pi.open(RuntimeContext(queue="x")):
            pass
    async with PiRuntime(program, sessions=tmp_path).open(RuntimeContext(queue="x")) as opened:
        with pytest.raises(UsageError, match="open already"):
            async with opened.open(RuntimeContext(queue="x")):
                pass
