"""Environments of the peers: one virtual environment each, in ``.venv-peers``, made when it is first needed.

The law: nothing is installed beside what is measured here. What cannot be installed is skipped, and said so.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from benchmarks.bench import Skipped
from benchmarks.machine import ROOT

FOLDER = ROOT / ".venv-peers"
SECONDS = 300.0
"""That an installation may take."""


def python(name: str, needs: tuple[str, ...], folder: Path = FOLDER) -> str:
    """The Python of an environment that has what is needed; Skipped if it cannot be had."""
    home = folder / name
    program = home / "bin" / "python"
    stamp = home / "installed.txt"
    wanted = "\n".join([sys.version, *needs])
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted and program.exists():
        return str(program)
    try:
        venv.create(home, clear=True, with_pip=True, symlinks=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Skipped(f"{name}: {home} cannot be made: {error}") from None
    command = [str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", *needs]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Skipped(f"{name}: pip has not ended in {SECONDS:.0f} s; is there a network?") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no word"])[-1]
        raise Skipped(f"{name}: pip install {' '.join(needs)} failed: {last}")
    stamp.write_text(wanted, encoding="utf-8")
    return str(program)
