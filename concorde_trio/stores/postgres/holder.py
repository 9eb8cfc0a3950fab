"""Who a worker is, as it stands in the database, and whether one that stands there can still be alive.

The law: dead is said of nobody who may live. A process of this machine is known by its number, its start and the boot; of
another machine's nothing is known here.
"""

from __future__ import annotations

import json
import os
import socket
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

_here: set[str] = set()


@attrs.frozen(kw_only=True)
class Holder:
    """A worker. ``machine`` and ``started`` tell two processes of one number apart; ``lease`` is in seconds."""

    writer: str
    pid: int
    host: str
    machine: str
    started: str
    since: str
    lease: float

    def as_text(self) -> str:
        """The JSON text that ``read_holder`` reads."""
        return json.dumps(attrs.asdict(self))

    def known_dead(self) -> bool:
        """True if it certainly runs nothing any more."""
        if self.machine != _machine():
            return False
        if self.pid == os.getpid() and self.started == _started(self.pid):
            return self.writer not in _here
        return self.started != _started(self.pid)

    def __str__(self) -> str:
        since = datetime.fromisoformat(self.since).astimezone()
        return f"process {self.pid} on {self.host} since {since:%Y-%m-%d %H:%M:%S}"


def this_holder(writer: str, lease: float) -> Holder:
    """This process, as the worker whose writes carry ``writer``."""
    return Holder(
        writer=writer,
        pid=os.getpid(),
        host=socket.gethostname(),
        machine=_machine(),
        started=_started(os.getpid()) or "",
        since=datetime.now().astimezone().isoformat(timespec="seconds"),
        lease=lease,
    )


def read_holder(text: str | None) -> Holder | None:
    """The holder that a row names; None if none, or it cannot be read."""
    if text is None:
        return None
    try:
        known: dict[str, Any] = json.loads(text)
        holder = Holder(**{field.name: known[field.name] for field in attrs.fields(Holder)})
        str(holder)
    except (ValueError, KeyError, TypeError):
        return None
    return holder


def alive_here(writer: str, alive: bool) -> None:
    """Note that a worker of this process begins, or has ended."""
    (_here.add if alive else _here.discard)(writer)


def _machine() -> str:
    """This boot of this kernel, and the numbers that its processes have here (a container has its own)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{socket.gethostname()} unknown {os.getpid()}"


def _started(pid: int) -> str | None:
    """When a process began, in the kernel's ticks; None if there is none. A zombie runs nothing."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] in ("Z", "X") else after_name[19]
