"""Sessions whose id the program makes up: learnt from its output, kept through crashes, used the next time."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from concorde_trio.errors import UsageError
from concorde_trio.records import RunOutcome, RunState, Usage
from concorde_trio.runtimes.command import CommandRuntime
from concorde_trio.runtimes.command_learnt import LearntSession
from concorde_trio.runtimes.command_rules import JsonLines, Rule, UsageRules
from tests.processes.census import PATH, Census, until
from tests.runtimes.agents import prompt

pytestmark = pytest.mark.slow

CODEX_LIKE = """
id=$2; [ "$1" = new ] && id=thread-$(ls | wc -l)
if [ ! -e "$id" ] && [ "$1" = resume ]; then echo "no rollout found for $id" >&2; exit 1; fi
[ -e changed ] && id=$(cat changed)
echo "{\\"type\\": \\"started\\", \\"thread\\": \\"$id\\"}"
cat >>"$id"
case $(tail -1 "$id") in
hang) echo >>hanging; sleep $LABEL ;;
fail) echo "session not found: $(tail -1 "$id")" >&2; exit 1 ;;
esac
lines=$(wc -l <"$id")
echo "{\\"type\\": \\"done\\", \\"text\\": \\"$(tr '\\n' ' ' <"$id")\\", \\"in\\": ${lines}00, \\"out\\": ${lines}0}"
"""
DONE = {"type": "done"}
RULES = JsonLines(
    end=DONE,
    text=Rule(when=DONE, take="text"),
    usage=UsageRules(input=Rule(when=DONE, take="in"), output=Rule(when=DONE, take="out"), cumulative=True),
)
THREAD = Rule(when={"type": "started"}, take="thread", fold="first")


def codex_like(census: Census, folder: Path, **options: Any) -> CommandRuntime:
    """A program that makes up its ids, and tells the usage of the whole conversation."""
    start = ["sh", "-c", CODEX_LIKE, "codex"]
    return CommandRuntime(
        [*start, "new"],
        argv_resume=[*start, "resume", "{native_id}"],
        cwd=str(folder / "work"),
        env={"PATH": PATH, "LABEL": census.label},
        session=LearntSession(folder / "ids", THREAD, **options),
        output=RULES,
    )


def kept(folder: Path, name: str = "ann") -> Any:
    """What is kept of a session."""
    return json.loads((folder / "ids" / name).read_text())


ONE = Usage(input_tokens=100, output_tokens=10)


async def test_an_id_that_a_program_made_up_is_used_the_next_time(census: Census, tmp_path: Path) -> None:
    """RUN-4, SES-16: by any worker; and of a sum, each run has its part."""
    assert await codex_like(census, tmp_path).run(prompt("one\n")) == RunOutcome.ok("one ", usage=ONE)
    assert await codex_like(census, tmp_path).run(prompt("two\n")) == RunOutcome.ok("one two ", usage=ONE)
    assert await codex_like(census, tmp_path).run(prompt("x\n", session="bob")) == RunOutcome.ok("x ", usage=ONE)
    assert kept(tmp_path)["id"] == "thread-0"
    assert kept(tmp_path)["used"] == {"input_tokens": 200, "output_tokens": 20, "cached_tokens": 0, "cost": None}
    assert sorted(path.name for path in (tmp_path / "ids").iterdir()) == ["ann", "bob"]


WORKER = """
import sys, trio
from pathlib import Path
from tests.processes.census import Census
from tests.runtimes.agents import prompt
from tests.runtimes.test_command_learnt import codex_like
from concorde_trio.signals.runtime import RuntimeContext

census = Census()
census.label = sys.argv[2]
folder = Path(sys.argv[1])

async def main():
    runtime = codex_like(census, folder)
    async with runtime.open(RuntimeContext(queue="killed-learnt", programs_lock=folder / "lock")):
        await runtime.run(prompt("hang\\n"))

trio.run(main)
"""


async def test_an_id_is_there_after_the_worker_was_killed_in_its_first_run(census: Census, tmp_path: Path) -> None:
    """RUN-4, REC-6: it was written down as soon as it was seen."""
    process = await trio.lowlevel.open_process([sys.executable, "-c", WORKER, str(tmp_path), census.label])
    await until((tmp_path / "work" / "hanging").exists)
    await until((tmp_path / "ids" / "ann").exists)
    process.kill()
    await process.wait()
    await until(lambda: census.alive() == [])
    assert (await codex_like(census, tmp_path).run(prompt("two\n"))).text == "hang two "


async def test_an_id_is_kept_of_a_run_that_was_cancelled(census: Census, tmp_path: Path) -> None:
    """RUN-6: the conversation goes on."""
    runtime = codex_like(census, tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(runtime.run, prompt("hang\n"))
        await until((tmp_path / "ids" / "ann").exists)
        await until((tmp_path / "work" / "hanging").exists)
        nursery.cancel_scope.cancel()
    assert (await runtime.run(prompt("two\n"))).text == "hang two "


async def test_a_program_that_goes_on_with_another_conversation_is_stopped(census: Census, tmp_path: Path) -> None:
    """RUN-5: unless that is its way."""
    await codex_like(census, tmp_path).run(prompt("one\n"))
    (tmp_path / "work" / "changed").write_text("thread-7")
    outcome = await codex_like(census, tmp_path).run(prompt("hang\n"))
    assert outcome.error == (
        "the program 'sh' was stopped: it went on with the conversation thread-7, though it was asked for thread-0"
    )
    assert kept(tmp_path)["id"] == "thread-0"
    assert (await codex_like(census, tmp_path, may_change=True).run(prompt("two\n"))).state is RunState.DONE
    assert kept(tmp_path)["id"] == "thread-7"


async def test_a_conversation_that_the_program_lost_is_begun_anew(census: Census, tmp_path: Path) -> None:
    """RUN-4: once, and counted anew; a failure after it has told its id is none of that."""
    await codex_like(census, tmp_path).run(prompt("one\n"))
    (tmp_path / "work" / "thread-0").unlink()
    assert await codex_like(census, tmp_path).run(prompt("two\n")) == RunOutcome.ok("two ", usage=ONE)
    outcome = await codex_like(census, tmp_path).run(prompt("fail\n"))
    assert "without the record that ends a run (exit status 1); stderr: session not found" in (outcome.error or "")
    assert (tmp_path / "work" / "thread-0").read_text() == "two\nfail\n"
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["thread-0"]


@pytest.mark.parametrize("id", ["--dangerously-allow-all", "", 7, "a\nb", "x" * 600])
async def test_an_id_that_cannot_be_an_argument_fails_the_run(census: Census, tmp_path: Path, id: Any) -> None:
    """CLM-7: what the program says becomes an argument, and no option."""
    line = json.dumps({"type": "started", "thread": id})
    runtime = CommandRuntime(
        ["sh", "-c", 'printf "%s\\n" "$1"; sleep $LABEL', "x", line],
        argv_resume=["false", "{native_id}"],
        cwd=str(tmp_path),
        env={"PATH": PATH, "LABEL": census.label},
        session=LearntSession(tmp_path / "ids", THREAD),
        output=RULES,
    )
    outcome = await runtime.run(prompt())
    assert "the id that it told for its session cannot be used" in (outcome.error or "")
    assert not (tmp_path / "ids").exists()


async def test_an_id_that_cannot_be_written_down_fails_the_run(census: Census, tmp_path: Path) -> None:
    """RUN-7: at once; a file that cannot be read says what to do."""
    (tmp_path / "ids").write_text("in the way")
    outcome = await codex_like(census, tmp_path).run(prompt("hang\n"))
    assert "File exists" in (outcome.error or "") or "Not a directory" in (outcome.error or "")
    (tmp_path / "ids").unlink()
    (tmp_path / "ids").mkdir()
    (tmp_path / "ids" / "ann").write_text("{}")
    outcome = await codex_like(census, tmp_path).run(prompt("one\n"))
    assert "If that file is removed, the session begins anew" in (outcome.error or "")


def test_mistakes_with_learnt_sessions_are_refused(census: Census, tmp_path: Path) -> None:
    """RUN-4: where they are written, with the way out."""
    session = LearntSession(tmp_path, THREAD)
    for options, says in (
        ({"output": "text"}, "output must be JsonLines"),
        ({"argv": ["x", "{native_id}"]}, "belongs into argv_resume only"),
        ({"argv_resume": None}, "needs argv_resume"),
        ({"session": None, "argv_resume": None}, "needs LearntSession"),
    ):
        given: dict[str, Any] = {
            "argv": ["x"],
            "argv_resume": ["x", "{native_id}"],
            "session": session,
            "output": RULES,
        }
        with pytest.raises(UsageError, match=says):
            CommandRuntime(cwd=str(tmp_path), **{**given, **options})  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="no regular expression"):
        LearntSession(tmp_path, THREAD, missing="(")
