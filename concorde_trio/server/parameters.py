"""What a request may ask for, checked by name before anything is done (SRV-2).

The law: an unknown parameter, one that came twice, and a value outside its range are refused with a sentence that says
which are allowed; nothing is ignored, guessed or clamped.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import TypeVar

from werkzeug.datastructures import MultiDict

from concorde_trio.errors import InvalidName
from concorde_trio.records import check_name
from concorde_trio.server.problems import Problem

StateT = TypeVar("StateT", bound=enum.StrEnum)

DEFAULT_LIMIT = 50
LARGEST_LIMIT = 200
_LARGEST_CURSOR = 2**63 - 1
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}\Z")


class Parameters:
    """The query parameters of one request. ``allowed``: their names. Problem 400 says what is wrong."""

    def __init__(self, given: MultiDict[str, str], *allowed: str) -> None:
        for name in given:
            if name not in allowed:
                known = f"there are: {', '.join(allowed)}" if allowed else "there are none here"
                raise Problem(400, f"unknown parameter {name!r:.80}; {known}", place=name[:80])
            if len(given.getlist(name)) > 1:
                raise Problem(400, f"the parameter {name} came more than once; give it once", place=name)
        self._given: Mapping[str, str] = dict(given.items())

    def name(self, name: str, what: str) -> str | None:
        """A kind, session or resource name (CLM-7), None when it was not given."""
        value = self._given.get(name)
        if value is None:
            return None
        try:
            return check_name(value, what)
        except InvalidName as error:
            raise Problem(400, str(error), place=name) from None

    def state(self, states: type[StateT]) -> StateT | None:
        """``state``, one of ``states``."""
        value = self._given.get("state")
        if value is None:
            return None
        if value not in set(states):
            raise Problem(400, f"there is no state {value!r:.80}; there are: {', '.join(states)}", place="state")
        return states(value)

    def choice(self, name: str, *choices: str) -> str | None:
        """One of ``choices``."""
        value = self._given.get(name)
        if value is not None and value not in choices:
            raise Problem(400, f"{name} must be one of {', '.join(choices)}, not {value!r:.80}", place=name)
        return value

    def id(self, name: str) -> str | None:
        """An id; whether anything has it is not known yet."""
        return self._given.get(name)

    def limit(self) -> int:
        """``limit``: 1 to 200, 50 unless given."""
        return self._integer("limit", DEFAULT_LIMIT, LARGEST_LIMIT) or DEFAULT_LIMIT

    def before(self) -> int | None:
        """``before``: the ``next`` of an earlier page."""
        return self._integer("before", None, _LARGEST_CURSOR)

    def seq(self, name: str) -> int | None:
        """``name``: the seq of a message, 0 for the place before the first."""
        return 0 if self._given.get(name) == "0" else self._integer(name, None, _LARGEST_CURSOR)

    def _integer(self, name: str, default: int | None, largest: int) -> int | None:
        value = self._given.get(name)
        if value is None:
            return default
        if not value.isascii() or not value.isdigit() or len(value) > 19 or not 1 <= int(value) <= largest:
            range_ = f"1 to {largest}" if largest == LARGEST_LIMIT else "at least 1, the next of an earlier page"
            raise Problem(400, f"{name} must be a whole number, {range_}, not {value!r:.80}", place=name)
        return int(value)


def is_id(text: str) -> bool:
    """Whether a signal or run could have this id; a store need not be asked for any other."""
    return _ID.match(text) is not None
