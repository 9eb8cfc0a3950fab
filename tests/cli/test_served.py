"""A gateway in a process of its own, and the installed program beside it: commands find it, ask it, and agree with it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from concorde_trio.server.endpoint import endpoint_path, read_endpoint
from tests.cli.running import Command, script

pytestmark = pytest.mark.slow

HOUSEHOLD = '''
import trio
from concorde_trio import Gateway, Prompt, RunOutcome


class Agents:
    """Does what its prompt says in its first word."""

    async def run(self, prompt):
        word = prompt.text.split()[0]
        if word == "stuck":
            await trio.sleep_forever()
        if word == "fail":
            return RunOutcome.failed("the money is gone \\x1b[31m[red]")
        return RunOutcome.ok("did: " + prompt.text)


gateway = Gateway(store="sqlite:///concorde.db", runtime=Agents())
something_else = 4


@gateway.handler("message")
async def on_message(signal):
    """payload: a list of [session, text, resources, tag]."""
    return [
        Prompt(session=session, text=text, resources=resources, tag=tag)
        for session, text, resources, tag in signal.payload
    ]
'''
TAG = "tag-of-ann-0123456789"


@attrs.frozen
class Serving:
    """A gateway that was started."""

    process: subprocess.Popen[bytes]
    said: dict[str, Any]


def _serve(here: Path, *arguments: str) -> Serving:
    (here / "household.py").write_text(HOUSEHOLD)
    with (here / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            [script(), "serve", "household:gateway", "--json", *arguments],
            cwd=here,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, (here / "log.txt").read_text()
    return Serving(process, json.loads(line))


def _end(here: Path, serving: Serving, *signals: signal.Signals) -> int:
    for asked, number in enumerate(signals, 1):
        serving.process.send_signal(number)
        # Two signals that are pending at once are one to the system.
        while (here / "log.txt").read_text().count("stopping:") < asked and serving.process.poll() is None:
            time.sleep(0.02)
    try:
        return serving.process.wait(timeout=15)
    finally:
        serving.process.kill()
        assert serving.process.stdout is not None
        serving.process.stdout.close()
        serving.process.wait()


@contextmanager
def _waiting(here: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A command that waits for a signal whose run is stuck, and the signal's id."""
    with subprocess.Popen(
        [script(), "emit", "message", '[["ann", "stuck", [], null]]', "--wait"],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as waiting:
        try:
            assert waiting.stdout is not None
            yield waiting, waiting.stdout.readline().decode().strip()
        finally:
            waiting.kill()


@pytest.fixture
def serving(here: Path) -> Iterator[Serving]:
    """A gateway on ``concorde.db`` in the current folder."""
    serving = _serve(here)
    yield serving
    _end(here, serving, signal.SIGTERM, signal.SIGTERM, signal.SIGTERM)


def _emit(command: Command, *prompts: tuple[str, str, list[str], str | None], wait: bool = False) -> Any:
    done = command("emit", "message", json.dumps(prompts), *(["--wait"] if wait else []), "--json")
    assert done.status == 0, done
    return done.json


def _wait_for(command: Command, run_id: str, state: str) -> None:
    for _ in range(200):
        done = command("runs", run_id, "--json")
        if done.status == 0 and done.json["state"] == state:
            return
        time.sleep(0.05)
    raise AssertionError(f"{run_id} did not become {state}: {done}")


def test_serve_tells_its_link_once_and_commands_find_it(command: Command, here: Path, serving: Serving) -> None:
    """SRV-6: the token is given out as a link, and in a file for its owner."""
    endpoint = read_endpoint(here / "concorde.db")
    assert endpoint is not None
    assert endpoint.url == serving.said["url"]
    assert endpoint.pid == serving.process.pid == serving.said["pid"]
    assert serving.said["link"].endswith(endpoint.token)
    assert command("signals", "--json").json == {"signals": [], "next": None}
    assert endpoint.token not in (here / "log.txt").read_text()


def test_an_emit_that_waits_prints_the_outcome_and_its_status_tells_it(command: Command, serving: Serving) -> None:
    """SIG-4."""
    done = command("emit", "message", '[["ann", "hello", [], null]]', "--wait")
    assert done.status == 0
    assert done.out.splitlines()[1:] == ["did: hello", "done"]
    done = command("emit", "message", '[["ann", "fail", [], null]]', "--wait")
    assert done.status == 1
    assert done.out.splitlines()[-1].startswith("failed: the money is gone \\x1b[31m[red]")
    done = command("emit", "unheard of", "--wait", "--json")
    assert done.status == 1 and done.json["state"] == "failed" and "unheard of" in done.json["error"]


def _without_times(out: str) -> list[list[str]]:
    """The words of each line, without how long something has been going on."""
    lines = re.sub(r"\d\S*s\+|\([0-9.dhms]+\)", "", out).splitlines()
    return [line.split() for line in lines]


def test_a_worker_and_its_database_give_the_same_documents(command: Command, serving: Serving) -> None:
    """SRV-2, LCK-7, TAG-4: two sources, one answer, live tags masked in both."""
    first = _emit(command, ("ann", f"stuck as {TAG}", ["budget"], TAG), ("cleo", "hello", ["budget"], None))["id"]
    second = _emit(command, ("ann", "hello", ["budget"], None))["id"]
    _emit(command, ("bob", "hello", [], None), wait=True)
    _wait_for(command, f"{first}-1", "running")
    _wait_for(command, f"{second}-1", "pending")
    for arguments in (
        ("signals",),
        ("signals", "--state", "processing", "--kind", "message", "--limit", "1"),
        ("signals", first),
        ("signals", second),
        ("runs",),
        ("runs", "--session", "ann", "--state", "pending"),
        ("runs", "--resource", "budget", "--limit", "2"),
        ("runs", f"{first}-1"),
        ("runs", f"{second}-1"),
        ("why", f"{second}-1"),
        ("why", f"{first}-1"),
        ("why", second),
        ("runs", first),
        ("runs", "--signal", first, "--state", "running"),
        ("locks",),
    ):
        live, stored = command(*arguments, "--json"), command(*arguments, "--direct", "--json")
        assert live.json == stored.json
        assert TAG not in live.out
        live, stored = command(*arguments), command(*arguments, "--direct")
        assert _without_times(live.out) == _without_times(stored.out)
        assert live.out and live.err == stored.err
        assert TAG not in live.out + stored.out
    assert command("why", f"{second}-1", "--json").json["waits_for"]["root"]["run_id"] == f"{first}-1"


def test_a_run_and_a_signal_are_cancelled_while_they_run(command: Command, serving: Serving) -> None:
    """RUN-6."""
    first = _emit(command, ("ann", "stuck", [], None))["id"]
    second = _emit(command, ("ann", "stuck", [], None))["id"]
    _wait_for(command, f"{first}-1", "running")
    done = command("cancel", f"{first}-1")
    assert (done.status, done.err) == (0, "")
    _wait_for(command, f"{first}-1", "cancelled")
    _wait_for(command, f"{second}-1", "running")
    assert command("cancel", second, "--json").json["worker"] is True
    _wait_for(command, f"{second}-1", "cancelled")
    done = command("cancel", second)
    assert done.status == 1 and "already" in done.sentence()
    assert command("retry", first).status == 0


@pytest.mark.parametrize(
    "what", [("signals", "nobody"), ("runs", "n/../o"), ("why", "ü"), ("cancel", "?"), ("retry", "#")]
)
def test_an_unknown_id_is_the_same_failure_as_without_a_worker(
    command: Command, serving: Serving, what: tuple[str, ...]
) -> None:
    """RUN-6, SRV-5."""
    live, stored = command(*what), command(*what, "--direct")
    assert live.sentence() and stored.sentence()
    assert live.status == stored.status == 1
    assert what[1] in live.err


def test_what_cannot_be_stored_is_misuse_with_a_worker_too(command: Command, serving: Serving) -> None:
    """SIG-5, CLM-7."""
    for arguments in (("emit", "a\x1bb"), ("emit", "k", '"\\u0000"'), ("emit", "k", "1", "--key", "")):
        done = command(*arguments)
        assert done.sentence() and done.status == 2


def test_a_key_in_any_script_is_stored_once_by_worker_and_database_alike(command: Command, serving: Serving) -> None:
    """SIG-7."""
    key = "zoë 家 100% a,b"
    first = command("emit", "k", "--key", key).out
    assert first == command("emit", "k", "--key", key).out == command("emit", "k", "--key", key, "--direct").out
    assert command("signals", first.strip(), "--json").json["key"] == key


def test_a_killed_worker_is_not_asked_any_more(command: Command, here: Path, serving: Serving) -> None:
    """REC-1: what its file says is stale at once."""
    first = _emit(command, ("ann", "stuck", [], None))["id"]
    _wait_for(command, f"{first}-1", "running")
    serving.process.kill()
    serving.process.wait()
    assert endpoint_path(here / "concorde.db").exists()
    done = command("locks")
    assert f"{first}-1 (running)" in done.out and "no worker serves this queue now" in done.err
    assert command("emit", "message", "[]").status == 0


def test_an_emit_waits_over_the_end_of_one_worker_and_the_start_of_the_next(
    command: Command, here: Path, serving: Serving
) -> None:
    """SIG-1, REC-2: a durable signal settles, whoever works on it."""
    with _waiting(here) as (waiting, signal_id):
        _wait_for(command, f"{signal_id}-1", "running")
        serving.process.kill()
        serving.process.wait()
        assert waiting.stderr is not None
        while b"no worker serves this queue now" not in waiting.stderr.readline():
            assert waiting.poll() is None
        again = _serve(here)
        try:
            out, _ = waiting.communicate(timeout=20)
        finally:
            assert _end(here, again, signal.SIGTERM) == 0
        assert waiting.returncode == 1
        assert out.decode().startswith("failed: ")


def test_ctrl_c_drains_serve_to_status_0_and_takes_its_file_away(here: Path, command: Command) -> None:
    """STP-1, STP-4: the first Ctrl-C drains."""
    serving = _serve(here)
    _emit(command, ("ann", "hello", [], None), wait=True)
    assert _end(here, serving, signal.SIGINT) == 0
    assert not endpoint_path(here / "concorde.db").exists()
    log = (here / "log.txt").read_text()
    assert "Traceback" not in log
    assert " is done after " in log and "(0 running, 0 waiting)" in log
    assert log.endswith("INFO concorde_trio.serve: stopped\n")


def test_a_third_ctrl_c_ends_what_hangs(here: Path, command: Command) -> None:
    """STP-4: a third cancels."""
    serving = _serve(here)
    first = _emit(command, ("ann", "stuck", [], None))["id"]
    _wait_for(command, f"{first}-1", "running")
    assert _end(here, serving, signal.SIGINT, signal.SIGINT, signal.SIGINT) == 0
    assert command("runs", f"{first}-1", "--json").json["state"] == "cancelled"


def test_drain_for_and_park_for_escalate_by_themselves(here: Path, command: Command) -> None:
    """STP-4: a service manager signals once."""
    serving = _serve(here, "--drain-for", "0.1s", "--park-for", "0.1s")
    first = _emit(command, ("ann", "stuck", [], None))["id"]
    _wait_for(command, f"{first}-1", "running")
    assert _end(here, serving, signal.SIGTERM) == 0


def test_a_second_worker_of_a_queue_is_refused_in_one_sentence(program: Command, serving: Serving) -> None:
    """REC-1: with a message that says who holds it."""
    done = program("serve", "household:gateway", "--log-level", "error")
    assert done.status == 1
    assert str(serving.process.pid) in done.sentence() and "serve --wait" in done.sentence()


def test_a_second_worker_that_waits_serves_when_the_first_has_stopped(here: Path, serving: Serving) -> None:
    """REC-1: a second one waits if asked to, and is told for whom."""
    with (here / "second.txt").open("wb") as log:
        second = subprocess.Popen(
            [script(), "serve", "household:gateway", "--wait", "--json"],
            cwd=here,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    try:
        while "waiting for it to stop" not in (here / "second.txt").read_text():
            assert second.poll() is None
            time.sleep(0.02)
        assert f"process {serving.process.pid} on " in (here / "second.txt").read_text()
        assert _end(here, serving, signal.SIGTERM) == 0
        assert second.stdout is not None
        assert json.loads(second.stdout.readline())["pid"] == second.pid
        second.send_signal(signal.SIGTERM)
        assert second.wait(timeout=15) == 0
    finally:
        second.kill()
        second.wait()
        assert second.stdout is not None
        second.stdout.close()


def test_a_port_that_is_taken_is_one_sentence(program: Command, here: Path, serving: Serving) -> None:
    """SRV-1."""
    port = serving.said["url"].rpartition(":")[2]
    (here / "other.py").write_text(HOUSEHOLD.replace("concorde.db", "other.db"))
    done = program("serve", "other:gateway", "--port", port, "--log-level", "error")
    assert done.status in (1, 2)
    assert port in done.sentence()


def test_a_runtime_that_cannot_be_opened_shows_its_own_traceback(program: Command, here: Path) -> None:
    """RUN-4: theirs, so they need to see where."""
    opening = "    def open(self, context):\n        raise ZeroDivisionError('no agents today')\n\n    async def run"
    (here / "broken.py").write_text(HOUSEHOLD.replace("    async def run", opening, 1))
    done = program("serve", "broken:gateway")
    assert done.status == 1 and done.out == ""
    assert "broken.py" in done.err
    assert done.err.splitlines()[-1] == "concorde-trio: broken:gateway stopped: ZeroDivisionError: no agents today"


def test_serve_refuses_what_is_no_gateway_and_names_the_ones_there_are(program: Command, here: Path) -> None:
    """MODULE:GATEWAY."""
    (here / "household.py").write_text(HOUSEHOLD)
    done = program("serve", "household:something_else")
    assert done.status == 2 and "is of type int, not a Gateway" in done.sentence()
    done = program("serve", "household:gatewya")
    assert done.status == 2 and "It has gateway" in done.sentence()
    done = program("serve", "household:Gateway")
    assert done.status == 2 and "is the class" in done.sentence()
    done = program("serve", "household:gateway", "--host", "0.0.0.0")
    assert done.status == 2 and "operator_token" in done.sentence()


def test_ctrl_c_ends_a_waiting_command_with_130_and_no_traceback(here: Path, serving: Serving) -> None:
    """130 is what a shell gives for Ctrl-C."""
    with _waiting(here) as (waiting, _):
        assert waiting.stderr is not None
        # It says so after a second: then it waits.
        assert b"runs ended" in waiting.stderr.readline()
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=10)
        assert waiting.returncode == 130
        assert b"Traceback" not in err


def test_a_log_for_machines_says_on_each_line_which_run_and_session_it_is_about(here: Path, command: Command) -> None:
    """Logs, SRV-6, TAG-4: one object a line from the first to the last, with no token, prompt or live tag in any."""
    serving = _serve(here, "--log-json", "--log-level", "debug")
    signal_id = _emit(command, ("ann", f"do it with {TAG}", [], TAG), wait=True)["id"]
    assert _end(here, serving, signal.SIGTERM) == 0
    log = (here / "log.txt").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    (started,) = [line for line in lines if line["message"].startswith("run ") and "starts" in line["message"]]
    assert (started["run_id"], started["signal_id"], started["session"]) == (f"{signal_id}-1", signal_id, "ann")
    assert started["logger"] == "concorde_trio.serve"
    assert all({"time", "level", "logger", "message", "run_id", "signal_id", "session"} <= set(line) for line in lines)
    token = serving.said["link"].partition("#token=")[2]
    for secret in (TAG, "do it", token):
        assert secret not in log


def test_a_module_runs_as_the_program_does(here: Path) -> None:
    """``python -m concorde_trio``."""
    done = subprocess.run(
        [sys.executable, "-m", "concorde_trio", "signals", "--store", "missing.db"],
        cwd=here,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
    )
    assert done.returncode == 2 and done.stderr.startswith("concorde-trio: there is no database at missing.db")
