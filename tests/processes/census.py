"""A census of processes: who carries this test's label, in arguments or environment, and which guards are ours."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import trio

PATH = "/usr/local/bin:/usr/bin:/bin"


class Census:
    """``label`` is a number of seconds that no other test sleeps; programs get it as $LABEL."""

    def __init__(self) -> None:
        self.label = f"600.{secrets.randbelow(10**12):012d}"
        self.env = {"PATH": PATH, "LABEL": self.label}

    def alive(self) -> list[str]:
        """Everything that carries the label and lives, but for ourselves and the guards."""
        found = []
        for pid, arguments, environ in _processes():
            if pid != os.getpid() and self.label.encode() in arguments + environ:
                found.append(f"{pid} {arguments.replace(bytes(1), b' ').decode()}")
        return found

    def guards(self) -> list[str]:
        """The guards that this process started and has not yet seen the end of."""
        return [
            str(pid) for pid, arguments, _ in _processes() if b"guard.py" in arguments and _parent(pid) == os.getpid()
        ]

    def clear(self) -> None:
        """Kill what a failed test left."""
        for line in self.alive() + self.guards():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), signal.SIGKILL)


class Seen:
    """An ``on_stdout`` that tells when a text was printed."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._printed = b""
        self._event = trio.Event()

    def __call__(self, data: bytes) -> None:
        self._printed += data
        if self._text in self._printed:
            self._event.set()

    async def wait(self) -> None:
        await self._event.wait()


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Poll until it is true; the bound only turns a hang into a failure."""
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.005)


def until_sync(condition: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def parent_of(pid: int) -> int:
    return _parent(pid)


def python(code: str) -> list[str]:
    """The argv of a Python program."""
    return [sys.executable, "-c", code]


def _processes() -> list[tuple[int, bytes, bytes]]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and is_alive(int(name)):
            try:
                found.append(
                    (int(name), Path(f"/proc/{name}/cmdline").read_bytes(), Path(f"/proc/{name}/environ").read_bytes())
                )
            except OSError:
                pass
    return found


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0
