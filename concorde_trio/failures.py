"""One sentence out of an exception: what a person is told of it (RUN-3, RUN-7: never empty)."""

from __future__ import annotations

import math
import traceback

import trio

from concorde_trio.records import storable_text

LIMIT = 2_000


def describe(error: BaseException) -> str:
    """The cause in words. Exception groups are unwrapped to the exceptions in them; the first is told in full."""
    leaves = _leaves(error)
    first, more = leaves[0], len(leaves) - 1
    try:
        message = str(first)
    except Exception as broken:  # noqa: BLE001 - a user's __str__ may raise; its error must not hide the first one.
        message = f"(and its message could not be made: {type(broken).__name__})"
    name = type(first).__name__
    text = f"{name}: {message.strip()}" if message.strip() else name
    if more:
        text += f" (and {more} more)"
    return storable_text(text[:LIMIT])


def _leaves(error: BaseException) -> list[BaseException]:
    """The exceptions in a group of groups, in order. By hand: groups may be nested deeper than the stack."""
    leaves, left = [], [error]
    while left:
        one = left.pop()
        if isinstance(one, BaseExceptionGroup):
            left.extend(reversed(one.exceptions))
        else:
            leaves.append(one)
    return leaves


def alone(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """The only exception in a group of groups, None if there are several."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        if len(error.exceptions) != 1:
            return None
        error = error.exceptions[0]
    return error


def not_cancelled(error: BaseException) -> BaseException | None:
    """``error`` without what Trio's cancellation put into it: itself if there is none of it, None if it is nothing else."""
    if isinstance(error, trio.Cancelled):
        return None
    if not isinstance(error, BaseExceptionGroup):
        return error
    cancelled, rest = error.split(trio.Cancelled)
    return error if cancelled is None else rest


def travels(error: BaseException, *, exits: bool = True) -> bool:
    """Whether ``error`` is about more than the call it came from: Ctrl-C, an exit, a cancellation, anywhere in it (RUN-3).

    ``exits`` False: an exit is about the call alone, as in what a model may call (SES-7): argparse asks for one.

    Everything else fails that call alone, also what is no ``Exception``: the cancellation of another library, or one of
    Trio's that somebody kept and raised again where nothing is cancelled, which nobody above would take for its own.
    """
    leaves = _leaves(error)
    # GeneratorExit closes a coroutine of ours that the interpreter is done with; it must not be answered.
    if any(isinstance(leaf, KeyboardInterrupt | GeneratorExit) for leaf in leaves):
        return True
    if exits and any(isinstance(leaf, SystemExit) for leaf in leaves):
        return True
    cancelled = trio.current_effective_deadline() == -math.inf
    return cancelled and any(isinstance(leaf, trio.Cancelled) for leaf in leaves)


def traceback_of(error: BaseException) -> str:
    """The traceback as text that a log can hold. An exception that cannot even be written out is described."""
    try:
        return storable_text("".join(traceback.format_exception(error)))
    except Exception as broken:  # noqa: BLE001 - what a user's exception does while it is written must harm nobody
        return f"{describe(error)} (and its traceback could not be made: {type(broken).__name__})"
