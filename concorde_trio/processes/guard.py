"""The guard: a small program between a worker and every program it starts. Its law (REC-6):

- It adopts every descendant of the program (child subreaper) and is gone only when all of them are dead. Until then
  it keeps the file descriptor of the programs lock, on which its worker put a shared flock before it was started.
- It ends the tree when its worker asks, and when its worker is gone: the control socket is closed, or the worker's
  process has exited (a fork of the worker may hold the socket open). It uses no parent-death signal.
- It ends the tree when its lease is over, if it has one: by its own clock, while its worker is stopped, too.
- It starts nothing once its worker is gone, or the lease is over.

It is run as ``python -I -S guard.py CONTROL_FD WORKER_PID [LOCK_FD]`` with the program's stdin, stdout and stderr as
its own, in a session of its own, so that no terminal's Ctrl-C reaches it. It speaks in frames: four bytes of length,
then a marshalled tuple (both ends are the same interpreter; json would double the start-up time).

From the worker: one frame ``(argv, env, cwd, ladder, marker, lease)``, all bytes but the ladder, which is a list of
(signal, seconds), and the lease: until when, on the monotonic clock that all processes of a machine share, or None. Then
the byte ``s`` to end the tree, and at each renewal the byte ``l`` with eight of a double: until when now.
To the worker: ``("started", pid)`` or ``("refused", stage, errno, path)``; ``("exited", code, signal, running)``;
``("gone", count, swept)``; or ``("broken", text)``.
``running`` and ``swept`` are lists of (pid, name): what the program left running when it ended, and what was killed.
"""

from __future__ import annotations

# Not ``signal``: the enums around it cost 10 ms, as much as the rest of this program's start-up.
import _signal as signal  # type: ignore[import-not-found]
import ctypes
import marshal
import os
import select
import struct
import sys
import time
from collections.abc import Callable

MARKER = b"CONCORDE_RUN_ID="
"""How the environment entry starts that every process of a run carries, unless it hides it."""

ORPHAN_GRACE = 0.5
"""Seconds the stop ladder may take once the worker is gone: its successor waits for us (REC-6).

A lease begins its end so long before it is over, or when three quarters of what is left of it have passed.
"""

LISTED = 50
"""How many processes a list names; the rest is only counted."""

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
_RESET = [number for number in range(1, 65) if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33)]


# --- the process table; the worker's own sweep uses it too --------------------------------------------------------


def _stat(pid: int) -> tuple[int, int, bool] | None:
    """The parent of a process, its start time and whether it lives; None when there is no such process.

    A zombie is dead, unless only its first thread has ended.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read(4096).rpartition(b")")[2].split()
        return int(fields[1]), int(fields[19]), fields[0] not in (b"Z", b"X") or int(fields[17]) > 1
    except (OSError, IndexError, ValueError):
        return None


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root: int) -> list[tuple[int, int]]:
    """The living descendants of ``root`` as (pid, start time), parents before their children.

    One that ends while we look may have left children that were not there when the table was listed, so it is listed
    again until nobody ended meanwhile.
    """
    dead: set[int] | None = None
    for _ in range(10):
        table = {pid: stat for pid in _pids() if (stat := _stat(pid)) is not None}
        children: dict[int, list[int]] = {}
        for pid, (parent, _, _) in table.items():
            children.setdefault(parent, []).append(pid)
        family = list(children.get(root, ()))
        for pid in family:  # grows while it is walked
            family.extend(children.get(pid, ()))
        before, dead = dead, {pid for pid in family if not table[pid][2]}
        # An unknown parent has gone altogether, and its children are another's by now.
        if (not dead or dead == before) and all(parent in table or parent == 0 for parent, _, _ in table.values()):
            break
    return [(pid, table[pid][1]) for pid in family if table[pid][2]]


def marked(matches: Callable[[bytes], bool]) -> list[tuple[int, int]]:
    """The living processes whose environment has a marker with a value that ``matches``, as (pid, start time).

    A process we may not look into is not ours. Neither this process nor its ancestors are ever listed.
    """
    found = []
    for pid in _pids():
        stat = _stat(pid)
        if stat is None or not stat[2]:
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                environ = file.readall()
        except OSError:
            continue
        if MARKER in environ and any(
            matches(entry[len(MARKER) :]) for entry in environ.split(b"\0") if entry.startswith(MARKER)
        ):
            found.append((pid, stat[1]))
    if found:
        mine: int | None = os.getpid()
        while mine:
            found = [one for one in found if one[0] != mine]
            mine = (_stat(mine) or (None,))[0]
    return found


def kill(pid: int, started: int) -> None:
    """SIGKILL the process that had this pid at this start time, and no later one that was given the same pid."""
    try:
        handle = os.pidfd_open(pid)
    except OSError as error:
        if isinstance(error, ProcessLookupError):
            return
        handle = -1  # no pidfds here (an old kernel, a sandbox), or no file descriptor left
    try:
        now = _stat(pid)
        if now is not None and now[1] == started:
            if handle >= 0:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            else:
                os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it is gone, or not ours to kill: whoever waits for it sees that it stays
    finally:
        if handle >= 0:
            os.close(handle)


def name_of(pid: int) -> str:
    """The name of a process (never its arguments: they can hold a run's tag)."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            return file.read().decode("utf-8", "replace").strip() or "?"
    except OSError:
        return "?"


# --- the guard ------------------------------------------------------------------------------------------------------


class Guard:
    """One program's guard. ``control`` is its end of the socket, ``worker`` the pid of its worker."""

    def __init__(self, control: int, worker: int) -> None:
        self._control = control
        self._leader = 0
        self._exited = False
        self._asked = False  # to end the tree
        self._kill_at: float | None = None  # set once the worker is gone, or the lease
        self._lease: float | None = None
        self._ending_at = 0.0  # when the end of the lease begins
        self._lapsed = False
        self._said = b""  # by the worker, after its request: less than one whole word
        self._marker = b""
        self._ladder: list[tuple[int, float]] = []
        self._wake, wake_writer = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_writer, False)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(control, select.POLLIN)
        self._worker = -1
        try:
            self._worker = os.pidfd_open(worker)
            self._poll.register(self._worker, select.POLLIN)
        except ProcessLookupError:
            self._orphaned()
        except OSError:
            pass  # no pidfds here: the socket alone tells
        if os.getppid() != worker:
            self._orphaned()

    def run(self) -> None:
        """Start the program, watch it, end its tree, tell the worker of each."""
        request = self._read_request()
        if request is None:
            return
        argv, env, cwd, self._ladder, self._marker, lease = request
        if lease is not None:
            self._renew(lease)
        self._wait(0)
        self._look_at_lease()
        if self._lapsed:
            self._tell("refused", "lease", 0, b"")
            return
        if self._asked:
            self._tell("gone", 0, [])
            return
        try:
            self._start(argv, env, cwd)
        except _Refused as refused:
            self._tell("refused", *refused.args)
            return
        finally:
            self._let_go_of_streams()
        self._tell("started", self._leader)
        self._watch()
        self._tell("gone", *self.sweep())

    def _read_request(
        self,
    ) -> tuple[list[bytes], dict[bytes, bytes], bytes, list[tuple[int, float]], bytes, float | None] | None:
        """The one request, None when the worker was gone before it was whole."""
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            # Not a byte more than the request: what follows is read by _wait.
            wanted = 4 - len(data) if len(data) < 4 else 4 + int.from_bytes(data[:4], "big") - len(data)
            chunk = os.read(self._control, min(wanted, 1 << 20))
            if not chunk:
                return None
            data += chunk
        return marshal.loads(data[4:])  # type: ignore[no-any-return]

    def _tell(self, *message: object) -> None:
        body = marshal.dumps(message)  # type: ignore[arg-type]
        data = len(body).to_bytes(4, "big") + body
        try:
            while data:
                data = data[os.write(self._control, data) :]
        except OSError:
            pass  # the worker is gone; the socket's end is noticed elsewhere

    def _start(self, argv: list[bytes], env: dict[bytes, bytes], cwd: bytes) -> None:
        try:
            os.chdir(cwd)
        except OSError as error:
            raise _Refused("cwd", error.errno, cwd) from None
        problem, culprit = OSError(2, ""), argv[0]
        for path in _candidates(argv[0], env.get(b"PATH")):
            try:
                self._leader = os.posix_spawn(path, argv, env, setsid=True, setsigmask=(), setsigdef=_RESET)
                break
            except OSError as error:
                if error.errno not in (2, 13, 20):  # ENOENT, EACCES, ENOTDIR: it may be further down the PATH
                    raise _Refused("exec", error.errno, path) from None
                if os.path.exists(path):
                    problem, culprit = error, path
        else:
            raise _Refused("exec", problem.errno, culprit)
        os.chdir("/")

    def _let_go_of_streams(self) -> None:
        """The program alone holds its streams, so that their end can be seen."""
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.close(null)

    def _watch(self) -> None:
        """Until the program has ended and the worker has asked for the end of its tree."""
        steps = iter(self._ladder)
        next_at: float | None = None  # of the stop ladder
        while True:
            self._reap()
            self._look_at_lease()
            if self._exited and self._asked:
                return
            if self._asked:
                now = time.monotonic()
                if self._kill_at is not None and now >= self._kill_at:
                    self._signal_leader(signal.SIGKILL)
                    next_at = self._kill_at = None
                    steps = iter(())
                elif next_at is None or now >= next_at:
                    number, grace = next(steps, (signal.SIGKILL, 3600.0))
                    self._signal_leader(number)
                    next_at = now + grace
            ahead = [when for when in (next_at, self._kill_at) if when is not None] if not self._exited else []
            if self._lease is not None:
                ahead.append(self._ending_at)
            self._wait(max(0.0, min(ahead) - time.monotonic()) if ahead else None)

    def _wait(self, seconds: float | None) -> None:
        """Until something happens, at most so long; notes a request to stop and the worker's end."""
        for descriptor, _ in self._poll.poll(None if seconds is None else int(min(seconds, 86_400) * 1000) + 1):
            if descriptor == self._wake:
                if signal.SIGTERM in os.read(self._wake, 65536):
                    self._asked = True
            elif descriptor == self._control:
                try:
                    said = os.read(self._control, 4096)
                except OSError:
                    said = b""
                if said:
                    self._hear(said)
                else:
                    self._poll.unregister(self._control)
                    self._orphaned()
            else:
                self._poll.unregister(self._worker)
                self._orphaned()

    def _hear(self, said: bytes) -> None:
        self._look_at_lease()  # before a renewal that comes late
        self._said += said
        while self._said:
            if self._said[:1] != b"l":
                self._asked = True
                self._said = self._said[1:]
            elif len(self._said) < 9:
                return
            else:
                until = struct.unpack("<d", self._said[1:9])[0]
                self._said = self._said[9:]
                if not self._lapsed and (self._lease is None or until > self._lease):
                    self._renew(until)

    def _renew(self, until: float) -> None:
        self._lease = until
        self._ending_at = until - min(ORPHAN_GRACE, max(0.0, until - time.monotonic()) / 4)

    def _look_at_lease(self) -> None:
        """Begin the end of the tree if the lease is nearly over; that is never taken back."""
        if self._lease is not None and time.monotonic() >= self._ending_at:
            self._kill_at = self._lease if self._kill_at is None else min(self._kill_at, self._lease)
            self._asked = self._lapsed = True
            self._lease = None

    def _orphaned(self) -> None:
        self._asked = True
        if self._kill_at is None:
            self._kill_at = time.monotonic() + ORPHAN_GRACE

    def _reap(self) -> None:
        """Reap what was adopted; tell of the program's end, but keep its zombie: it reserves the group's number."""
        while not self._exited:
            try:
                child = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if child is None:
                return
            if child.si_pid == self._leader:
                self._exited = True
                code, killed_by = (child.si_status, None) if child.si_code == 1 else (None, child.si_status)
                running = [(pid, name_of(pid)) for pid, _ in descendants(os.getpid())[:LISTED]]
                self._tell("exited", code, killed_by, running)
            else:
                os.waitpid(child.si_pid, 0)

    def _signal_leader(self, number: int) -> None:
        """Signal the program's group, and let it run if it was stopped, so that it can act on the signal."""
        try:
            os.killpg(self._leader, number)
            os.killpg(self._leader, signal.SIGCONT)
        except OSError:
            pass  # a program that we may not signal (setuid) is waited for

    def sweep(self) -> tuple[int, list[tuple[int, str]]]:
        """Kill until nothing of the tree is left; how many that were, and (pid, name) of the first."""
        killed: dict[tuple[int, int], str] = {}
        pause = 0.001
        found = descendants(os.getpid())
        while True:
            for one in found:
                killed.setdefault(one, name_of(one[0]) if len(killed) < LISTED else "?")
            if self._leader:
                if found:
                    self._signal_leader(signal.SIGKILL)  # the whole group at once: no fork can slip out of it
                self._leader = 0  # its zombie is reaped below, and the number may then be another's
            for pid, started in found:
                kill(pid, started)
            left = self._children_left()
            if left:
                self._wait(pause)  # an end of a child wakes us
            elif found:
                time.sleep(pause)
            found = descendants(os.getpid()) if left else marked(lambda value: value == self._marker)
            if not found and not left:
                break
            pause = min(pause * 2, 0.25)
        return len(killed), [(pid, name) for (pid, _), name in list(killed.items())[:LISTED]]

    def _children_left(self) -> bool:
        """Reap; False is the kernel's word that no descendant is left, for an orphan is at once our child."""
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    return True
            except ChildProcessError:
                return False


class _Refused(Exception):
    """The program could not be started: stage (``cwd`` or ``exec``), errno, path."""


def _candidates(program: bytes, path: bytes | None) -> list[bytes]:
    if b"/" in program:
        return [program]
    folders = os.defpath.encode() if path is None else path
    return [os.path.join(folder, program) for folder in folders.split(b":")]


def main() -> int:
    """The program's entry point: its exit status is 0, or 70 when the guard itself broke."""
    control, worker, *lock = (int(argument) for argument in sys.argv[1:])
    for descriptor in (control, *lock):
        os.set_inheritable(descriptor, False)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    guard = Guard(control, worker)
    try:
        if ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "cannot adopt orphans (PR_SET_CHILD_SUBREAPER)")
        guard.run()
    except Exception as error:  # noqa: BLE001 - whatever broke, the tree has to end
        guard._tell("broken", f"{type(error).__name__}: {error}")
        guard.sweep()
        return 70
    return 0


if __name__ == "__main__":
    sys.exit(main())
