"""From arguments to an exit status: the one place that turns what was raised into a sentence (see the package's law)."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import click

from concorde_trio.cli.show import PipeClosed, visible
from concorde_trio.errors import ConcordeError, InputConflict, InternalError, UnknownId, UsageError, WrongState

FAILED = 1
MISUSE = 2
INTERRUPTED = 128 + signal.SIGINT
PIPE_CLOSED = 128 + signal.SIGPIPE
TRACEBACK = "CONCORDE_TRACEBACK"
PROGRAM = "concorde-trio"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command (``sys.argv`` unless given) and return its exit status."""
    # Python has no stream for a descriptor that was closed before it began (``>&-``); what is said goes nowhere then.
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - as long as the process
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    _never_fail_to_encode(sys.stdout)
    _never_fail_to_encode(sys.stderr)
    try:
        status = _run(arguments)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001 - this is where all of them end
        status = _status(error)
    return status


def _run(arguments: Sequence[str] | None) -> int:
    from concorde_trio.cli.commands import program

    result = program.main(arguments, prog_name=PROGRAM, standalone_mode=False)
    return result if isinstance(result, int) else 0


def _status(error: BaseException) -> int:
    """Say what ``error`` means and give the exit status for it; what is no failure of a command travels on."""
    found = tuple(leaves(error))
    for leaf in found:
        if isinstance(leaf, KeyboardInterrupt | click.Abort):
            return INTERRUPTED
        if isinstance(leaf, BrokenPipeError | PipeClosed):
            _drop_output()
            return PIPE_CLOSED
        if isinstance(leaf, SystemExit):
            raise leaf
    if os.environ.get(TRACEBACK):
        import traceback

        traceback.print_exception(error)
    return _explain(found[0])


def _explain(error: BaseException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        print(error.format_message(), file=sys.stderr)
        return MISUSE
    if isinstance(error, click.UsageError):
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx is not None else ""
        return _complain(error.format_message().rstrip(".") + hint, MISUSE)
    if isinstance(error, click.ClickException):
        return _complain(error.format_message(), error.exit_code)
    if isinstance(error, InternalError):
        return _complain(f"a fault of {PROGRAM} itself, please report it: {error}", FAILED)
    if isinstance(error, ConcordeError):
        # A well-formed command about something that is not there, or not so, is a failure like any other.
        wrong = isinstance(error, UsageError) and not isinstance(error, UnknownId | WrongState | InputConflict)
        return _complain(str(error), MISUSE if wrong else FAILED)
    if isinstance(error, OSError):
        if error.errno == errno.ENOSPC:
            _drop_output()
        place = f"{error.filename}: " if error.filename else ""
        return _complain(f"{place}{error.strerror or error}", FAILED)
    return _complain(
        f"a fault of {PROGRAM} itself, please report it: {type(error).__name__}: {error} ({TRACEBACK}=1 shows where)",
        FAILED,
    )


def _complain(message: str, status: int) -> int:
    sentence = " ".join(message.split()) or "it failed, and gave no reason"
    print(f"{PROGRAM}: {visible(sentence)}", file=sys.stderr)
    return status


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group of groups, or the one that is no group."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def _never_fail_to_encode(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Let what is still buffered go nowhere, so that the interpreter's own last flush does not complain."""
    try:
        descriptor = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
