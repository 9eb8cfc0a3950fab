"""Programs that are stopped: by a cancel, by silence, by time, by their usage limit."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from concorde_trio.processes.sweep import new_marker
from concorde_trio.records import RunOutcome, RunState, Usage
from concorde_trio.runtimes.command import CommandRuntime
from concorde_trio.signals.runtime import RuntimeContext
from tests.processes.census import PATH, Census, is_alive, until
from tests.runtimes.agents import END, RULES, prompt, records, shell

pytestmark = pytest.mark.slow

TREE = "setsid sleep $LABEL & (sleep $LABEL &); env -i setsid sleep $LABEL & "


async def test_a_cancelled_run_ends_its_program_and_stays_cancelled(census: Census, tmp_path: Path) -> None:
    """RUN-6, REC-6: the ladder in a shielded scope, and then the cancellation goes on."""
    code = f"{TREE} trap 'echo term >>log; exit 0' TERM; touch ready; cat >/dev/null; sleep $LABEL & wait"
    runtime = shell(census, tmp_path, code, stop=[(signal.SIGTERM, 3600.0)])
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(runtime.run, prompt("x" * 1_500_000))
            await until((tmp_path / "ready").exists)
            scope.cancel()
    assert scope.cancelled_caught
    assert (tmp_path / "log").read_text() == "term\n"
    assert census.alive() == []


async def test_a_time_limit_of_the_run_ends_its_program(census: Census, tmp_path: Path) -> None:
    """RUN-6: one that ignores the ladder is killed after it."""
    runtime = shell(census, tmp_path, f"{TREE} trap '' TERM INT; sleep $LABEL; sleep $LABEL", stop=[(15, 0.2)])
    with trio.move_on_after(0.5) as scope:
        await runtime.run(prompt())
    assert scope.cancelled_caught
    assert census.alive() == []


async def test_a_silent_program_is_stopped_by_its_idle_limit(census: Census, tmp_path: Path) -> None:
    """RUN-6: no byte on stdout for so long; what it says on stderr does not count."""
    code = records({"type": "x"}) + "while true; do echo noise >&2; sleep 0.05; done"
    outcome = await shell(census, tmp_path, code, output=RULES, idle_limit=0.4, stop=[(15, 0.2)]).run(prompt())
    assert outcome.state is RunState.FAILED
    assert outcome.error == "the program 'sh' was stopped: it printed nothing on its stdout for 0.4 s (idle_limit)"


async def test_a_program_that_keeps_talking_is_not_idle(census: Census, tmp_path: Path) -> None:
    """RUN-6: the limit is for one silence, not for the sum."""
    code = "for i in 1 2 3 4 5 6 7 8; do printf .; sleep 0.5; done"
    outcome = await shell(census, tmp_path, code, idle_limit=3).run(prompt())
    assert outcome == RunOutcome.ok("." * 8)


async def test_a_program_is_stopped_by_its_time_limit(census: Census, tmp_path: Path) -> None:
    """RUN-6: and is stopped even if its stream then ends well."""
    (tmp_path / "end").write_text('{"type": "end", "text": "late"}\n')
    code = "trap 'cat end; exit 0' TERM; while true; do echo '{\"type\": \"x\"}'; sleep 0.05; done"
    outcome = await shell(census, tmp_path, code, output=RULES, time_limit=0.4).run(prompt())
    assert outcome.state is RunState.FAILED
    assert outcome.error == "the program 'sh' was stopped: it was still at work after 0.4 s (time_limit)"
    assert outcome.text == "late"


USE = {"type": "usage", "in": 60, "out": 10}


async def test_a_usage_limit_that_is_reached_stops_the_program(census: Census, tmp_path: Path) -> None:
    """RUN-4, SES-16: input and output count; the run is limited, and says what was used."""
    code = f"{TREE} {records(USE, USE)} sleep $LABEL"
    outcome = await shell(census, tmp_path, code, output=RULES).run(prompt(usage_limit=140))
    assert outcome == RunOutcome.limited(
        "usage limit reached: 140 of 140 tokens; the program was stopped",
        usage=Usage(input_tokens=120, output_tokens=20),
    )
    assert census.alive() == []


async def test_an_answer_that_needs_nothing_more_is_ok_even_over_the_limit(census: Census, tmp_path: Path) -> None:
    """SES-16: what is there needs no further request."""
    (tmp_path / "out").write_text('{"type": "end", "text": "done"}\n{"type": "usage", "in": 60, "out": 10}\n')
    outcome = await shell(census, tmp_path, "cat out", output=RULES).run(prompt(usage_limit=5))
    assert outcome == RunOutcome.ok("done", usage=Usage(input_tokens=60, output_tokens=10))


async def test_a_usage_below_the_limit_changes_nothing(census: Census, tmp_path: Path) -> None:
    """RUN-4: one token less."""
    outcome = await shell(census, tmp_path, records(USE, END), output=RULES).run(prompt(usage_limit=71))
    assert outcome.state is RunState.DONE


def sleeper(census: Census, queue: str) -> subprocess.Popen[bytes]:
    """A process that a run of the queue left."""
    return subprocess.Popen(["sleep", census.label], env={"CONCORDE_RUN_ID": new_marker(queue)})


async def test_opening_ends_what_an_earlier_worker_of_the_queue_left(census: Census, tmp_path: Path) -> None:
    """REC-6: known dead before anything runs; another queue's stay."""
    mine, other = sleeper(census, "q.1"), sleeper(census, "q")
    try:
        async with shell(census, tmp_path, "echo hi").open(RuntimeContext(queue="q.1")):
            assert (is_alive(mine.pid), is_alive(other.pid)) == (False, True)
    finally:
        for process in (mine, other):
            process.kill()
            process.wait()


WORKER = """
import sys, trio
from pathlib import Path
from concorde_trio.records import RunPrompt
from concorde_trio.runtimes.command import CommandRuntime
from concorde_trio.signals.runtime import RuntimeContext

folder, path, label, code = sys.argv[1:]

async def main():
    runtime = CommandRuntime(["sh", "-c", code], cwd=folder, env={"PATH": path, "LABEL": label, "WHO": "{session}"},
                             stop=[(15, 3600.0)])
    async with runtime.open(RuntimeContext(queue="killed-runtime", programs_lock=Path(folder) / "lock")):
        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(runtime.run, RunPrompt(session=f"s{number}", text="hello"))

trio.run(main)
"""


async def test_a_killed_worker_leaves_no_program_and_the_next_one_runs(census: Census, tmp_path: Path) -> None:
    """REC-6: SIGKILL, then a new worker of the same queue."""
    code = f"{TREE} trap '' TERM; touch ready.$WHO; sleep $LABEL; sleep $LABEL"
    arguments = [sys.executable, "-c", WORKER, str(tmp_path), PATH, census.label, code]
    process = await trio.lowlevel.open_process(arguments)
    await until(lambda: len(list(tmp_path.glob("ready.*"))) == 3)
    process.kill()
    await process.wait()
    runtime = CommandRuntime(["sh", "-c", "echo fresh"], cwd=str(tmp_path), env={"PATH": PATH})
    context = RuntimeContext(queue="killed-runtime", programs_lock=tmp_path / "lock")
    async with runtime.open(context):
        assert await runtime.run(prompt()) == RunOutcome.ok("fresh")
    await until(lambda: census.alive() == [])
