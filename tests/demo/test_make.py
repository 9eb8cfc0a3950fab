"""``make demo`` ends as the demo does: after Ctrl-C without a word of make's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("status", "made"), [(0, 0), (130, 0), (1, 2)])
def test_ctrl_c_is_a_tidy_end_for_make_and_a_wrong_book_is_none(tmp_path: Path, status: int, made: int) -> None:
    """Demo: 130 is Ctrl-C, and "Error 130" after a good last line would be no news."""
    program = tmp_path / "bin" / "concorde-trio"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@"\nexit {status}\n')
    program.chmod(0o755)
    # -o: the environment is as it is, and nothing is installed for this.
    done = subprocess.run(
        ["make", "--no-print-directory", "demo", f"VENV={tmp_path}", "ARGS=--keep", "-o", f"{tmp_path}/.for-use"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (made, "demo --keep\n")
    assert ("Error" in done.stderr) == (made != 0)
