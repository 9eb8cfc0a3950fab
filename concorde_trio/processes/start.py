"""Starts a guard with its pipes, and says in one sentence why a program could not be started."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import trio

from concorde_trio.errors import ProgramError, ProgramNotStarted, UsageError
from concorde_trio.processes import guard
from concorde_trio.processes.fork_safety import close_lock, keep_from_forks

GUARD = Path(guard.__file__)


@attrs.frozen(kw_only=True)
class Guarded:
    """A guard that was just started: its process, our end of its socket, and our ends of the program's streams."""

    process: trio.Process
    control: socket.socket
    stdin: int
    stdout: int
    stderr: int


def check_program(
    argv: Sequence[str], env: Mapping[str, str], cwd: str | os.PathLike[str], ladder: Sequence[tuple[int, float]]
) -> None:
    """UsageError for what can never be started. Values of ``env`` are never shown."""
    if isinstance(argv, str | bytes) or not argv:
        raise UsageError(f"argv is a list of at least one string, the program first, not {argv!r:.80}")
    for part in argv:
        if not isinstance(part, str) or "\0" in part:
            raise UsageError(f"each part of argv is a string without NUL, not {part!r:.80}")
    if not argv[0]:
        raise UsageError("the first part of argv is the program; it is empty")
    for name, value in env.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise UsageError(f"an environment variable's name is a string without '=' and NUL, not {name!r:.80}")
        if not isinstance(value, str) or "\0" in value:
            raise UsageError(f"the value of the environment variable {name} must be a string without NUL")
    if not os.path.isabs(cwd):
        raise UsageError(f"cwd must be an absolute folder, not {os.fspath(cwd)!r}; write str(Path(...).resolve())")
    check_ladder(ladder)


def check_ladder(ladder: Sequence[tuple[int, float]]) -> None:
    """UsageError unless it is a list of (signal, seconds of grace)."""
    for step in ladder:
        if not (isinstance(step, tuple) and len(step) == 2 and 1 <= int(step[0]) <= 64 and 0 <= step[1] < 86_400):
            raise UsageError(
                "a stop ladder is a list of (signal, seconds to wait before the next step), such as "
                f"[(signal.SIGTERM, 5.0)]; SIGKILL follows by itself. Not {step!r:.80}"
            )


async def hold_programs_lock(path: Path) -> int:
    """A file descriptor with a shared flock on ``path`` (made if need be), to be handed to a guard (REC-6).

    The guard inherits the very lock, so there is no instant between its birth and its holding it. Waits while
    another process has it exclusively; that one looks whether all programs are dead.
    """
    descriptor = keep_from_forks(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    try:
        pause = 0.001
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return descriptor
            except BlockingIOError:
                await trio.sleep(pause)
                pause = min(pause * 2, 0.1)
    except BaseException:
        close_lock(descriptor)
        raise


async def start_guard(programs_lock: Path | None) -> Guarded:
    """Start a guard that waits for its request. ProgramNotStarted when the system cannot."""
    if sys.platform != "linux":
        raise ProgramNotStarted(f"programs can be run on Linux only (the guard adopts orphans), not on {sys.platform}")
    with contextlib.ExitStack() as after, contextlib.ExitStack() as on_failure:
        try:
            lock = () if programs_lock is None else (await hold_programs_lock(programs_lock),)
            for descriptor in lock:
                after.callback(close_lock, descriptor)
            ours, theirs = socket.socketpair()
            after.callback(theirs.close)
            on_failure.callback(ours.close)
            ours.setblocking(False)
            streams = []  # (our end, the child's end) of each
            for ours_is_written in (True, False, False):
                reader, writer = os.pipe()
                mine, its = (writer, reader) if ours_is_written else (reader, writer)
                on_failure.callback(os.close, mine)
                after.callback(os.close, its)
                os.set_blocking(mine, False)
                streams.append((mine, its))
            inherited = (theirs.fileno(), *lock)
            with trio.CancelScope(shield=True):  # a spawn cannot be cut in half; it takes no longer than a fork
                process = await trio.lowlevel.open_process(
                    [sys.executable, "-I", "-S", str(GUARD), *map(str, (inherited[0], os.getpid(), *lock))],
                    stdin=streams[0][1],
                    stdout=streams[1][1],
                    stderr=streams[2][1],
                    pass_fds=inherited,
                    start_new_session=True,
                    cwd="/",
                    # Nothing of ours but what a relocated interpreter needs to find its libraries.
                    env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
                )
        except (OSError, subprocess.SubprocessError) as error:
            full = isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.EAGAIN)
            hint = ". Each program takes five file descriptors and two processes: raise ulimit, or set max_running"
            raise ProgramNotStarted(
                f"no guard for the program could be started: {error}{hint if full else ''}"
            ) from error
        on_failure.pop_all()
    return Guarded(process=process, control=ours, stdin=streams[0][0], stdout=streams[1][0], stderr=streams[2][0])


def request(
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | os.PathLike[str],
    ladder: Sequence[tuple[int, float]],
    marker: str,
    lease_until: float | None = None,
) -> bytes:
    """The frame that tells a guard what to start; ``lease_until`` on ``time.monotonic()``."""
    body = marshal.dumps(
        (
            [os.fsencode(part) for part in argv],
            {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
            os.fsencode(cwd),
            [(int(number), float(grace)) for number, grace in ladder],
            os.fsencode(marker),
            lease_until,
        )
    )
    return len(body).to_bytes(4, "big") + body


def refusal(argv: Sequence[str], cwd: str | os.PathLike[str], stage: str, number: int, path: bytes) -> ProgramError:
    """Why the guard could not start the program, and what to do."""
    program, where = argv[0], os.fsdecode(path)
    reason = os.strerror(number)
    if stage == "lease":
        return ProgramNotStarted(
            f"the program {program!r} was not started: the lease of this process on its queue is over, and another may "
            "have taken over its runs. What keeps it from renewing (a lost database, a blocked loop) is in its log."
        )
    if stage == "cwd":
        return ProgramNotStarted(f"the program {program!r} was not started: its folder {os.fspath(cwd)!r}: {reason}")
    if number == errno.ENOENT and os.path.exists(where) and os.path.isabs(where):
        why = f"{where} is there, but the interpreter that its first line names is not"
    elif number == errno.ENOENT and "/" in program:
        why = "there is no such file; give its absolute path"
    elif number == errno.ENOENT:
        why = "it is in no folder of the PATH in its environment; give its absolute path, or let it inherit PATH"
    elif number == errno.EACCES:
        why = f"{where} may not be executed (chmod +x), or a folder on the way to it may not be entered"
    elif number == errno.ENOEXEC:
        why = f"{where} is neither a program for this machine nor a script that begins with #!"
    elif number == errno.E2BIG:
        why = "its arguments and environment are too long; hand large texts over on stdin"
    else:
        why = f"{where}: {reason}"
    return ProgramNotStarted(f"the program {program!r} was not started: {why}")
