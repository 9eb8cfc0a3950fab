"""A program that runs under its guard: what the worker's side of it hears, reads, feeds and asks.

Its service tasks are shielded: a cancelled run's program is still listened to, and its output drained, while it is
being stopped. ``end`` is what ends them.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import marshal
import os
import socket
import struct
import termios
from collections.abc import Awaitable, Callable, Sequence

import trio

from concorde_trio.errors import ProgramError
from concorde_trio.processes.capture import Capture
from concorde_trio.processes.ending import Ending, Exit
from concorde_trio.processes.programs_lease import ProgramsLease
from concorde_trio.processes.start import Guarded, refusal
from concorde_trio.processes.sweep import Swept, sweep_marker

PATIENCE = 30.0
"""Seconds, beyond the ladder's, in which a killed tree must be gone; then it is reported as one that will not end."""

DRAIN = 5.0
"""Seconds in which the output must end once the tree is gone: something outside of it may hold a pipe."""

_PIECE = 65536


class Program:
    """Made by ``open_program``; all attributes are to be read only.

    ``pid``: of the program itself, also the number of its group and session. ``stdout``, ``stderr``: what it printed.
    ``last_output``: when it last printed on stdout, on Trio's clock; until then, when it was started. ``ending``: None
    until the block is left.
    """

    def __init__(
        self,
        argv: Sequence[str],
        cwd: str | os.PathLike[str],
        marker: str,
        ladder: Sequence[tuple[int, float]],
        stdout: Capture,
        stderr: Capture,
        guarded: Guarded,
        lease: ProgramsLease | None = None,
    ) -> None:
        self.argv = tuple(argv)
        self.marker = marker
        self.stdout = stdout
        self.stderr = stderr
        self.pid: int | None = None
        self.last_output = trio.current_time()
        self.ending: Ending | None = None
        self.failure: Exception | None = None  # what on_stdout raised
        self._cwd = cwd
        self._bound = sum(grace for _, grace in ladder) + PATIENCE
        self._guarded = guarded
        self._lease = lease
        self._stream = trio.SocketStream(trio.socket.from_stdlib_socket(guarded.control))
        self._service = trio.CancelScope(shield=True)
        self._told = False  # the guard has its whole request
        self._stop_asked = False
        self._open = {guarded.stdout: stdout, guarded.stderr: stderr}  # outputs that are not at their end
        self._started = trio.Event()
        self._exited = trio.Event()
        self._guard_gone = trio.Event()
        self._drained = trio.Event()
        self._exit: Exit | None = None
        self._swept: tuple[int, tuple[Swept, ...]] | None = None  # None until the guard says that the tree is gone
        self._problem: ProgramError | None = None

    @property
    def guard_pid(self) -> int:
        """Of its guard, which adopts whatever the program leaves behind."""
        return self._guarded.process.pid

    async def wait(self) -> Exit:
        """Until the program itself has ended and what it printed is in ``stdout`` and ``stderr``.

        It does not wait for what it left in the background. ProgramError if its guard was killed before.
        """
        await self._exited.wait()
        if self._exit is None:
            raise self._problem or ProgramError(
                f"how the program {self.argv[0]!r} ended is not known: its guard was killed from outside"
            )
        printed = {one: capture.total + _waiting_bytes(one) for one, capture in self._open.items()}
        while any(one in self._open and self._open[one].total < size for one, size in printed.items()):  # noqa: ASYNC110
            await trio.lowlevel.checkpoint()  # the readers are runnable
        return self._exit

    def stop(self) -> None:
        """Ask for the end of the program and its tree by the stop ladder; ``wait`` tells when. May be repeated."""
        self._stop_asked = True
        if self._told:
            with contextlib.suppress(OSError):  # the guard is gone already, or has not read an earlier asking
                self._guarded.control.send(b"s")

    def renewed(self, until: float) -> None:
        """Tell the guard that the lease was renewed, until then on ``time.monotonic()``."""
        if self._told:
            with contextlib.suppress(OSError):  # it is gone, or reads nothing: then it keeps the time it knows
                self._guarded.control.send(struct.pack("<cd", b"l", until))

    async def serve(
        self,
        stdin: bytes | trio.MemoryReceiveChannel[bytes] | None,
        on_stdout: Callable[[bytes], Awaitable[None] | None] | None,
        fail: trio.CancelScope,
    ) -> None:
        """The service tasks, until ``end``; an error of ``on_stdout`` is kept in ``failure`` and cancels ``fail``."""
        with self._service:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._listen)
                nursery.start_soon(self._feed, stdin)
                nursery.start_soon(self._read, self._guarded.stdout, on_stdout, fail)
                nursery.start_soon(self._read, self._guarded.stderr, None, fail)

    async def start(self, frame: bytes) -> None:
        """Hand the request to the guard; returns when the program runs, ProgramNotStarted when it cannot."""
        with contextlib.suppress(trio.BrokenResourceError):  # it died before it read it: heard by _listen
            await self._stream.send_all(frame)
            self._told = True
        if self._stop_asked:
            self.stop()
        if self._lease is not None:
            self.renewed(self._lease.until)  # while the request was under way, nothing else could be said
        await self._started.wait()
        if self.pid is None:
            with trio.move_on_after(DRAIN):
                await self._drained.wait()  # an interpreter that cannot start says why on stderr
            raise self._problem or ProgramError(
                f"the program {self.argv[0]!r} was not started: its guard ended first. {self.stderr.text()[:500]}".strip()
            )

    async def end(self) -> None:
        """End the tree, whatever state it is in; called once, shielded. ProgramError when it cannot be ended."""
        process = self._guarded.process
        count = 0
        swept: tuple[Swept, ...] = ()
        try:
            with trio.move_on_after(self._bound) as patience:
                if self._told:
                    self.stop()
                else:
                    with contextlib.suppress(OSError):
                        self._guarded.control.shutdown(socket.SHUT_WR)  # half a request starts nothing
                await self._guard_gone.wait()
                await process.wait()
            if patience.cancelled_caught:
                await self._give_up()
            elif self._swept is not None:
                count, swept = self._swept
            elif self._told:  # the guard was killed from outside, or broke
                swept = tuple(await sweep_marker(self.marker))
                count = len(swept)
            with trio.move_on_after(DRAIN):
                await self._drained.wait()
        finally:
            self._service.cancel("the program's tree is gone")
            self._guarded.control.close()
            self.ending = Ending(exit=self._exit, swept=swept, swept_count=count)

    async def _give_up(self) -> None:
        """The guard did not end its tree in time: it hangs, or something cannot be killed."""
        process = self._guarded.process
        try:
            await sweep_marker(self.marker, time_limit=min(PATIENCE, 10.0))
            process.kill()  # it was the guard that hung
            with trio.move_on_after(PATIENCE):
                await process.wait()
            await sweep_marker(self.marker, time_limit=min(PATIENCE, 10.0))
        except ProgramError as error:
            # The guard stays: it holds the programs lock until they are dead (REC-6).
            raise ProgramError(
                f"{error} The guard {process.pid} of the program {self.argv[0]!r} waits for them."
            ) from None

    async def _listen(self) -> None:
        """Take what the guard tells, until it is gone."""
        buffer = bytearray()
        while True:
            try:
                data = await self._stream.receive_some(_PIECE)
            except trio.BrokenResourceError:
                data = b""
            if not data:
                break
            buffer += data
            while len(buffer) >= 4 and len(buffer) >= (size := 4 + int.from_bytes(buffer[:4], "big")):
                self._heard(*marshal.loads(bytes(buffer[4:size])))
                del buffer[:size]
        for event in (self._started, self._exited, self._guard_gone):
            event.set()

    def _heard(self, what: str, *said: object) -> None:
        match what, said:
            case "started", (int(pid),):
                self.pid = pid
                self.last_output = trio.current_time()
                self._started.set()
            case "refused", (str(stage), int(number), bytes(path)):
                self._problem = refusal(self.argv, self._cwd, stage, number, path)
                self._swept = (0, ())
            case "exited", (code, killed_by, list(running)):
                self._exit = Exit(code=code, signal=killed_by, running=tuple(Swept(*one) for one in running))  # type: ignore[arg-type]
                self._exited.set()
            case "gone", (int(count), list(swept)):
                self._swept = (count, tuple(Swept(*one) for one in swept))
            case "broken", (str(text),):
                self._problem = ProgramError(f"the guard of the program {self.argv[0]!r} broke: {text}")

    async def _feed(self, stdin: bytes | trio.MemoryReceiveChannel[bytes] | None) -> None:
        async with trio.lowlevel.FdStream(self._guarded.stdin) as stream:
            with contextlib.suppress(trio.BrokenResourceError):  # it does not want to read it
                if isinstance(stdin, trio.MemoryReceiveChannel):
                    async with stdin:  # whoever sends into it hears that nobody reads any more
                        async for piece in stdin:
                            await stream.send_all(piece)
                else:
                    await stream.send_all(stdin or b"")

    async def _read(
        self, descriptor: int, sink: Callable[[bytes], Awaitable[None] | None] | None, fail: trio.CancelScope
    ) -> None:
        capture = self._open[descriptor]
        try:
            while True:
                await trio.lowlevel.checkpoint()
                try:
                    data = os.read(descriptor, _PIECE)
                except BlockingIOError:
                    await trio.lowlevel.wait_readable(descriptor)
                    continue
                if not data:
                    return
                capture.feed(data)
                if descriptor == self._guarded.stdout:
                    self.last_output = trio.current_time()
                if sink is not None and self.failure is None:
                    try:
                        if (room := sink(data)) is not None:
                            await room
                    except Exception as error:  # noqa: BLE001 - raised again where the block is left
                        self.failure = error
                        fail.cancel("on_stdout raised")
        finally:
            del self._open[descriptor]
            os.close(descriptor)
            if not self._open:
                self._drained.set()


def _waiting_bytes(descriptor: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(descriptor, termios.FIONREAD, count)
    return count[0]
