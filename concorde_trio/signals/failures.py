"""One sentence out of an exception: what a person is told of it (RUN-3, RUN-7: never empty)."""

from __future__ import annotations

from concorde_trio.records import storable_text

LIMIT = 2_000


def describe(error: BaseException) -> str:
    """The cause in words. Exception groups are unwrapped to the exceptions in them; the first is told in full."""
    leaves = list(_leaves(error))
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
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]


def alone(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """The only exception in a group of groups, None if there are several."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        if len(error.exceptions) != 1:
            return None
        error = error.exceptions[0]
    return error
