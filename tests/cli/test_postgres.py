"""The commands on a queue in PostgreSQL: the same words, the same documents, with a URL in the place of a path."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores.postgres_server import PostgresServer, postgres

pytestmark = pytest.mark.slow

__all__ = ["postgres"]

HOUSE = """
import os
from concorde_trio import Gateway, InProcessRuntime, Prompt, ReplyEnd, ScriptedModel, TextDelta

def reply(request):
    return [(0, TextDelta("done: " + request.messages[-1].text)), (0, ReplyEnd())]

gateway = Gateway(store=os.environ["CONCORDE_STORE"], runtime=InProcessRuntime(model=ScriptedModel(reply)))

@gateway.handler("errand")
def on_errand(signal):
    return [Prompt(session="ann", text=signal.payload)]
"""


def command(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CONCORDE_STORE": url}
    return subprocess.run(
        [sys.executable, "-m", "concorde_trio", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_queue_is_made_filled_served_and_pruned_by_commands(postgres: PostgresServer, tmp_path: Path) -> None:
    """SIG-8, STP-5: with no worker, beside one that is found by its endpoint, and after it."""
    url = postgres.place()
    missing = command(url, "signals")
    assert missing.returncode == 2
    assert "no queue" in missing.stderr
    made = command(url, "emit", "--create", "errand", '"tidy up"')
    assert made.returncode == 0, made.stderr
    signal_id = made.stdout.strip()
    assert json.loads(command(url, "signals", "--json").stdout)["signals"][0]["id"] == signal_id
    assert command(url, "sessions").returncode == 0

    (tmp_path / "house.py").write_text(HOUSE)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "CONCORDE_STORE": url}
    serve = subprocess.Popen(
        [sys.executable, "-m", "concorde_trio", "serve", "house:gateway", "--json", "--log-level", "error"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert serve.stdout is not None
        told = json.loads(serve.stdout.readline())
        waited = command(url, "emit", "--wait", "errand", '"go"')
        assert (waited.returncode, waited.stdout.splitlines()[1:]) == (0, ["done: go", "done"]), waited.stderr
        sent = command(url, "send", "bob", "hello", "--wait")
        assert "done: hello" in sent.stdout, sent.stderr
        # Only the worker knows its own address: the answer came from it.
        locks = command(url, "locks", "--json")
        assert json.loads(locks.stdout)["locks"] == []
        assert told["url"].startswith("http://127.0.0.1:")
    finally:
        serve.send_signal(signal.SIGTERM)
        assert serve.wait(60) == 0
        serve.stdout.close()

    listed = json.loads(command(url, "sessions", "--json").stdout)["sessions"]
    assert {each["name"] for each in listed} == {"ann", "bob"}
    states = {each["state"] for each in json.loads(command(url, "signals", "--json").stdout)["signals"]}
    assert states == {"done"}
    dry = json.loads(command(url, "prune", "--older-than", "0s", "--dry-run", "--json").stdout)
    assert (dry["signals"], dry["runs"], dry["sessions"]) == (3, 3, 2)
    removed = json.loads(command(url, "prune", "--older-than", "0s", "--yes", "--json").stdout)
    assert (removed["signals"], removed["runs"], removed["sessions"]) == (3, 3, 2)


def test_a_server_that_cannot_be_asked_is_a_sentence(tmp_path: Path) -> None:
    """REC-5: no traceback, no password."""
    done = command(f"postgresql://u:secret@/d?host={tmp_path}", "signals")
    assert done.returncode == 1
    assert "refused" in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr
