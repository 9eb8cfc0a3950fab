"""Where a running gateway can be reached: a file beside its database, readable by its owner alone.

The law: the file is true exactly while its writer holds a flock on it. The system drops the lock when the writer
dies in any way, so that a file left behind by a killed process is known to be stale, with no guess by process id.
It is locked before it gets its name, so nobody ever sees it unlocked and true.

Imports next to nothing: the command line reads it in every command.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from concorde_trio.processes.fork_safety import close_lock, keep_from_forks


@attrs.frozen(kw_only=True)
class Endpoint:
    """A running gateway: ``url`` without a trailing slash, its operator ``token``, its process, and when it began.

    ``started`` is wall-clock seconds since the epoch.
    """

    url: str
    token: str = attrs.field(repr=False)
    pid: int
    started: float


def endpoint_path(database: str | os.PathLike[str], member: str = "") -> Path:
    """The endpoint file of a database: beside the real file, whatever links led to it; of a fleet, one a ``member``."""
    return Path(os.path.realpath(database) + ".endpoint" + (f".member-{member}" if member else ""))


@contextmanager
def write_endpoint(database: str | os.PathLike[str], *, url: str, token: str, member: str = "") -> Iterator[Endpoint]:
    """While entered, commands find this process by ``database``. Enter it once the server listens.

    The file has mode 0600 from its first byte, appears whole or not at all, and is removed on leaving (unless a
    later worker has put its own there). ``member``: its name where several processes may serve the queue. Raises OSError when the folder cannot be written.
    """
    endpoint = Endpoint(url=url.rstrip("/"), token=token, pid=os.getpid(), started=time.time())
    path = endpoint_path(database, member)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.draft")
    descriptor = keep_from_forks(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _write(descriptor, json.dumps(attrs.asdict(endpoint)).encode())
            os.replace(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        try:
            yield endpoint
        finally:
            _remove_own(path, descriptor)
    finally:
        close_lock(descriptor)


def read_endpoint(database: str | os.PathLike[str]) -> Endpoint | None:
    """The gateway that serves ``database`` now, None when none does or the file is not ours to read.

    Of a fleet's processes on this machine, the one that began last.
    """
    path = endpoint_path(database)
    alone = _read(path)
    if alone is not None:
        return alone
    members = [
        _read(each) for each in path.parent.glob(f"{glob.escape(path.name)}.member-*") if each.suffix != ".draft"
    ]
    return max((each for each in members if each is not None), key=lambda each: each.started, default=None)


def _read(path: Path) -> Endpoint | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if _unlocked(descriptor):
            return None
        return _parse(os.read(descriptor, 10_000))
    finally:
        os.close(descriptor)


def _unlocked(descriptor: int) -> bool:
    try:
        # Nobody takes the lock of a file that has its name already, so that holding it for a moment harms nobody.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _parse(text: bytes) -> Endpoint | None:
    try:
        found = json.loads(text)
        endpoint = Endpoint(
            url=found["url"], token=found["token"], pid=int(found["pid"]), started=float(found["started"])
        )
    except (ValueError, LookupError, TypeError):
        return None
    return endpoint if isinstance(endpoint.url, str) and isinstance(endpoint.token, str) else None


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _remove_own(path: Path, descriptor: int) -> None:
    with suppress(OSError):
        if os.path.samestat(os.stat(path), os.fstat(descriptor)):
            path.unlink()
