"""What the household is checked by: what was asked for, and what agents, server and system show of it.

The law: nothing here is what the worker says of itself. The journal is written where a model is asked and by the programs
that it starts, what the server was asked is noted where requests arrive, and processes are counted where the system keeps
them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import attrs
import trio

from concorde_trio.demo.errands import WORKSPACES, Message

ERRAND_HEADER = "demo-errand"
"""With this header an agent says which errand it believes to be on, whatever its tag says."""
BOOKKEEPER = ("post", "posted")
"""The lines of the journal that a post phase writes, not an agent."""
PROGRAM = ("began", "told", "spent", "beat", "ended")
"""The lines that programs write."""
PATIENCE = 2.0
"""Seconds in which a process that was killed must be gone."""


@attrs.frozen(kw_only=True)
class Line:
    """One line of the journal. ``at``: nanoseconds on the system's monotonic clock, the same for all processes.

    ``what``, of a model: start (it got the errand), asked (again), heard (``text``: what was said meanwhile), answered (with
    calls), finish (without), broke (no answer). Of a program: began, told (``told``: the errand that the server has for us),
    spent (``amount``), beat, ended (``how``). Of the bookkeeper: post, posted.
    """

    at: int
    what: str
    errand: int
    pid: int
    session: str | None = None
    text: str | None = None
    told: int | None = None
    amount: int | None = None
    how: str | None = None


@attrs.frozen(kw_only=True)
class Asked:
    """One request as it arrived: the errand it ``claims``, its ``tags``, and the errand it was ``attributed`` to."""

    path: str
    claims: int | None
    tags: tuple[str, ...] = attrs.field(repr=lambda tags: f"<{len(tags)}>")
    attributed: int | None


@attrs.frozen(kw_only=True)
class Spend:
    """An accepted change of the budget, under the errand of the run that it was attributed to."""

    errand: int
    amount: int
    signal_id: str = ""
    thing: str = ""


@attrs.frozen(kw_only=True)
class Evidence:
    """All of it. ``plan``: the messages in the order sent. ``ended``: errand to state. ``running``: processes that are left.

    ``files``: what is in the workspaces, path to text. ``scripted``: whether the model could only do what it was asked.
    """

    plan: Sequence[Message]
    journal: Sequence[Line]
    requests: Sequence[Asked]
    budget: int
    left: int
    ledger: Sequence[Spend]
    books: Sequence[str]
    ended: Mapping[int, str]
    running: Sequence[str]
    files: Mapping[str, str]
    scripted: bool = True


def read_files(rooms: Path) -> dict[str, str]:
    """What is in the workspaces: the path of each file below ``rooms``, and its text."""
    return {
        file.relative_to(rooms).as_posix(): file.read_text(encoding="utf-8", errors="replace")
        for place in WORKSPACES
        for file in sorted((rooms / place).rglob("*"))
        if file.is_file() and not file.is_symlink()
    }


def read_journal(file: Path) -> list[Line]:
    """The lines in the order of their times; ValueError, with its number, for one that is none."""
    known = {field.name for field in attrs.fields(Line)}
    lines = []
    for number, text in enumerate(file.read_bytes().splitlines(), 1):
        try:
            found = json.loads(text)
            lines.append(Line(**{name: value for name, value in found.items() if name in known}))
        except (ValueError, TypeError, AttributeError) as error:
            raise ValueError(f"line {number} of {file} is no line of a journal ({error}): {text!r:.200}") from None
    return sorted(lines, key=lambda line: line.at)


async def processes_left(journal: Path, before: Iterable[int]) -> list[str]:
    """Processes that still have ``journal`` in their environment, and children of ours that are not in ``before``.

    What ends within PATIENCE counts as gone: the system may need a moment for what was killed.
    """
    found: list[str] = []
    for attempt in range(20):
        if attempt:
            await trio.sleep(PATIENCE / 20)
        found = await trio.to_thread.run_sync(_processes, journal, frozenset(before))
        if not found:
            break
    return found


def children() -> set[int]:
    """The processes that are children of this one, but for those that have ended."""
    return {pid for pid, state, parent in _all() if parent == os.getpid() and state not in "ZX"}


def _processes(journal: Path, before: frozenset[int]) -> list[str]:
    marked = f"DEMO_JOURNAL={journal}".encode()
    found = []
    for pid, state, parent in _all():
        if state in "ZX" or pid == os.getpid():
            continue
        if parent == os.getpid() and pid not in before:
            found.append(f"process {pid}, a child of the demo")
        elif marked in _read(f"/proc/{pid}/environ").split(b"\0"):
            found.append(f"process {pid}, started for an errand")
    return found


def _all() -> Iterable[tuple[int, str, int]]:
    """Every process of the system: pid, state, and its parent's pid."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            state, _, rest = _read(f"/proc/{entry}/stat").rpartition(b") ")[2].partition(b" ")
            if state:
                yield int(entry), state.decode(), int(rest.split()[0])


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError:  # it has just ended, or is somebody else's
        return b""
