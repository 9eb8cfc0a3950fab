"""The project that ``init`` writes passes its own tests, and serves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import Command, script

pytestmark = pytest.mark.slow


def test_it_passes_its_own_tests_and_serves(command: Command, here: Path) -> None:
    """With this interpreter, where all that it needs is installed."""
    assert command("init", "workshop").status == 0
    folder = here / "workshop"
    tests = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "4 passed" in tests.stdout
    with (folder / "log.txt").open("wb") as log:
        serving = subprocess.Popen(
            [script(), "serve", "gateway:gateway", "--json"], cwd=folder, stdout=subprocess.PIPE, stderr=log
        )
    try:
        assert serving.stdout is not None
        assert b"http://" in serving.stdout.readline(), (folder / "log.txt").read_text()
        os.chdir(folder)
        done = command("emit", "order.placed", '{"customer": "ann", "item": "a lamp"}', "--wait")
        assert done.status == 0, done
        assert command("runs", "--json").json["runs"][0]["text"] == "made as asked: a lamp"
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(timeout=20) == 0
        assert "ann: made as asked: a lamp" in (folder / "log.txt").read_text()
    finally:
        serving.kill()
        assert serving.stdout is not None
        serving.stdout.close()
        serving.wait()
