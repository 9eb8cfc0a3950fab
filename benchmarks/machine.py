"""What a benchmark was run on: without it a figure means nothing."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib import metadata
from pathlib import Path


def describe() -> dict[str, str | int]:
    """The machine and the Python: processor, cores, system, implementation and version."""
    versions = {name: metadata.version(name) for name in ("concorde-trio", "trio", "attrs")}
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "sqlite": sqlite3.sqlite_version,
        **versions,
    }


def sentence() -> str:
    """The same in one line."""
    machine = describe()
    return (
        f"concorde-trio {machine['concorde-trio']}, trio {machine['trio']}, SQLite {machine['sqlite']}, "
        f"{machine['python']} on {machine['processor']}, {machine['cores']} cores, {machine['system']}"
    )


def load() -> float:
    """The load of the last minute: above the number of cores, figures say more of the others."""
    return os.getloadavg()[0]


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown processor"
