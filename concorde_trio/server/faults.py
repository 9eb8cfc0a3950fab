"""Exceptions in the log: which, and where they came from, without what they say.

An exception's text can hold whatever a client sent, a payload or a tag included; the place where it was raised can't.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import PurePath

_FRAMES = 4


def describe(error: BaseException) -> str:
    """One line: each exception's type and the innermost places it passed, for a group of each of its members."""
    return "; ".join(_one(leaf) for leaf in leaves(error))


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions that are no groups."""
    if isinstance(error, BaseExceptionGroup):
        for member in error.exceptions:
            yield from leaves(member)
    else:
        yield error


def _one(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = " < ".join(f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{type(error).__name__} at {places or 'no known place'}"
