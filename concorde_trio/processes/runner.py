"""Runs one program under its guard. The law (REC-6, SES-8):

- Leaving ``open_program`` for any reason, cancellation included, ends the whole tree in a shielded, bounded scope.
- The end of the program is the end of the command: nobody waits for the end of its output, which a process left in
  the background may hold open. What it left running is ended with the block, and listed.
- Both streams are drained to the end, whoever reads them, and kept bounded.
- The environment is what the caller names, and the marker; nothing is inherited.
- A program opened under a lease (``programs_lease``) is dead when that is over.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import trio

from concorde_trio.processes.capture import Capture
from concorde_trio.processes.program import Program
from concorde_trio.processes.programs_lease import current_lease
from concorde_trio.processes.start import check_program, refusal, request, start_guard

LADDER: Sequence[tuple[int, float]] = ((signal.SIGTERM, 5.0),)
"""How a program is asked to stop unless said otherwise: (signal, seconds of grace); SIGKILL of the tree follows."""


@contextlib.asynccontextmanager
async def open_program(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str],
    marker: str,
    stdin: bytes | trio.MemoryReceiveChannel[bytes] | None = None,
    ladder: Sequence[tuple[int, float]] = LADDER,
    programs_lock: Path | None = None,
    stdout: Capture | None = None,
    stderr: Capture | None = None,
    on_stdout: Callable[[bytes], Awaitable[None] | None] | None = None,
) -> AsyncIterator[Program]:
    """Start a program, and end it with everything it started when the block is left.

    ``argv``: the program and its arguments; a name without slash is looked for in the PATH of ``env``. ``cwd``: an
    absolute folder. ``marker``: from ``new_marker``. ``stdin``: what it reads there, then the end; of a channel, each piece
    as it comes (the runner closes it when the program reads no more). ``ladder``: the
    signals its process group gets when it has to stop, each with seconds to wait. ``programs_lock``: the file of
    REC-6. ``stdout``, ``stderr``: where to keep what it prints (default: the first and last 32 KiB of each).
    ``on_stdout`` gets every piece of stdout as it comes; if it gives an awaitable, no more is read until that is over, and
    it must be bounded: a cancellation does not reach it. What it raises ends the block and leaves it.

    UsageError for arguments that can never be right, ProgramNotStarted when the program cannot be started (or the lease
    of its process is over), ProgramError when its guard breaks or its tree cannot be ended.
    """
    check_program(argv, env, cwd, ladder)
    lease = current_lease()
    if lease is not None and lease.is_over:
        raise refusal(argv, cwd, "lease", 0, b"")
    env = {**env, "CONCORDE_RUN_ID": marker}
    program = None
    try:
        async with trio.open_nursery() as nursery:
            guarded = await start_guard(programs_lock)
            program = Program(
                argv,
                cwd,
                marker,
                ladder,
                stdout or Capture(32768, 32768),
                stderr or Capture(32768, 32768),
                guarded,
                lease,
            )
            nursery.start_soon(program.serve, stdin, on_stdout, nursery.cancel_scope)
            try:
                with contextlib.nullcontext() if lease is None else lease.told(program.renewed):
                    until = None if lease is None else lease.until
                    await program.start(request(argv, env, cwd, ladder, marker, until))
                    yield program
            finally:
                with trio.CancelScope(shield=True):  # every wait in it is bounded
                    await program.end()
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        raise group.exceptions[0] from group.exceptions[0].__cause__  # the nursery is no business of the caller's
    if program is not None and program.failure is not None:
        raise program.failure
