"""The layers of docs/design.md hold, and a violation is seen: import-linter on copies with one bad import each."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.structure.tree import PACKAGE, ROOT


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as lint; lint()"]
    return subprocess.run(
        [*command, "--no-cache", "--no-logo"],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(PACKAGE, tmp_path / "concorde_trio", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_copy_without_a_violation_passes(copy: Path) -> None:
    """Layers: what the other tests plant is what is refused there."""
    result = lint(copy)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        # Upwards, from every layer.
        ("errors.py", "import concorde_trio.records", "A line may import any line below"),
        ("records.py", "import concorde_trio.events", "A line may import any line below"),
        ("events.py", "import concorde_trio._sansio.lock_table", "A line may import any line below"),
        ("_sansio/planted.py", "import concorde_trio.processes", "A line may import any line below"),
        ("processes/planted.py", "import concorde_trio.signals.worker", "A line may import any line below"),
        ("signals/planted.py", "import concorde_trio.stores.memory", "A line may import any line below"),
        ("server/planted.py", "import concorde_trio.gateway", "A line may import any line below"),
        ("gateway.py", "import concorde_trio.cli", "A line may import any line below"),
        ("cli/planted.py", "import concorde_trio.__main__", "A line may import any line below"),
        # Sideways.
        ("stores/planted.py", "import concorde_trio.runtimes", "A line may import any line below"),
        ("runtimes/planted.py", "import concorde_trio.server", "A line may import any line below"),
        # Hidden in a function, behind the package's front door, in a module that no layer names.
        ("signals/planted.py", "def f():\n    from concorde_trio.stores import sqlite", "A line may import any line"),
        ("unlisted.py", "x = 1", "A line may import any line below"),
        ("__init__.py", "import concorde_trio.testing", "Nothing shipped imports concorde_trio.testing"),
        ("gateway.py", "import concorde_trio.testing", "Nothing shipped imports concorde_trio.testing"),
        # What is not allowed to be pure any more.
        ("_sansio/planted.py", "import trio", "The pure cores"),
        ("_sansio/planted.py", "from time import monotonic", "The pure cores"),
        ("records.py", "import random", "The pure cores"),
        ("events.py", "import logging", "The pure cores"),
        # A library outside its owner.
        ("signals/planted.py", "import quart", "Quart belongs"),
        ("runtimes/planted.py", "from hypercorn.config import Config", "Hypercorn belongs"),
        ("signals/planted.py", "import jinja2", "Jinja belongs"),
        ("stores/planted.py", "import rich.table", "Click and Rich belong"),
        ("cli/planted.py", "import sqlite3", "sqlite3 belongs"),
        ("stores/planted.py", "import psycopg", "psycopg belongs"),
        ("runtimes/planted.py", "import subprocess", "Programs are started in one place"),
        ("sessions/planted.py", "def f():\n    import openai", "openai belongs"),
        ("models/planted.py", "from anthropic import AsyncAnthropic", "anthropic belongs"),
        ("models/planted.py", "import httpx2", "httpx2 belongs"),
        ("models/planted.py", "import concorde_trio.tools", "A line may import any line below"),
    ],
)
def test_a_planted_violation_is_refused(copy: Path, module: str, line: str, contract: str) -> None:
    """Layers: one bad import each, refused under the contract that it breaks."""
    path = copy / "concorde_trio" / module
    path.write_text((path.read_text(encoding="utf-8") if path.exists() else "") + f"\n{line}\n", encoding="utf-8")
    result = lint(copy)
    assert result.returncode == 1, result.stdout + result.stderr
    broken = [text for text in result.stdout.splitlines() if "BROKEN" in text]
    assert any(text.startswith(contract) for text in broken), result.stdout
