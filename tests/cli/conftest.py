"""Commands as people give them: through ``main``, in this process or as the installed program."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from concorde_trio.cli import main
from tests.cli.queues import write_household
from tests.cli.running import Command, Done, script


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and no queue named in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CONCORDE_STORE", raising=False)
    monkeypatch.delenv("CONCORDE_TRACEBACK", raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def written_household(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A queue with something in every state, to be copied."""
    path = tmp_path_factory.mktemp("household") / "concorde.db"
    write_household(path)
    assert not path.with_name("concorde.db-wal").exists()
    return path


@pytest.fixture
def household(here: Path, written_household: Path) -> Path:
    """``concorde.db`` in the current folder, with something in every state."""
    return Path(shutil.copy(written_household, here))


@pytest.fixture
def command(here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process: ``command("emit", "kind", stdin="null")``."""

    def run(*arguments: str, stdin: str | bytes = b"") -> Done:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capsys.readouterr()
        status = main(arguments)
        captured = capsys.readouterr()
        return Done(status, captured.out, captured.err)

    return run


@pytest.fixture
def program(here: Path) -> Command:
    """Run the installed program in a process of its own."""

    def run(*arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, **options: Any) -> Done:
        done = subprocess.run(
            [script(), *arguments],
            input=stdin,
            capture_output=True,
            cwd=here,
            env={**os.environ, **(env or {})},
            timeout=30,
            check=False,
            **options,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
