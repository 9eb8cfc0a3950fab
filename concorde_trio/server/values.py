"""What one field of a request may hold: how it is read, and how a JSON schema says the same (SRV-2, SRV-5).

The law: a value that the schema allows is read, and one that it does not is refused with a sentence that says what is allowed;
nothing is guessed or clamped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeAlias

import attrs

from concorde_trio.records import check_name

Schema: TypeAlias = Mapping[str, Any]

LARGEST_LIMIT = 200
DEFAULT_LIMIT = 50
LARGEST_PLACE = 2**63 - 1
"""The highest seq or position that any row can have."""

IN_NAMES = r"[^\u0000-\u001f\u007f-\u009f]"
"""A character of a name, in a regular expression."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}\Z")
_SECONDS = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?\Z")


class Unfit(ValueError):
    """A value that a field cannot have; the message is a sentence for who sent it."""


class Kind(Protocol):
    """What a field may hold. ``schema``: the same as a JSON schema."""

    @property
    def schema(self) -> Schema:
        """A JSON schema (2020-12)."""
        ...

    def read(self, field: str, given: Any) -> Any:
        """The value that ``given`` (a text, or JSON in a body) stands for. Unfit, or another ValueError, if it is none."""
        ...


@attrs.frozen
class Name:
    """A name of CLM-7. ``what``: how messages call it."""

    what: str

    @property
    def schema(self) -> Schema:
        """1 to 200 characters without control characters."""
        return {"type": "string", "minLength": 1, "maxLength": 200, "pattern": f"^{IN_NAMES}{{1,200}}$"}

    def read(self, field: str, given: Any) -> str:
        """InvalidName if it is none."""
        return check_name(given, self.what)


@attrs.frozen
class Text:
    """Any string. ``storable``: without NUL, which no store can hold."""

    storable: bool = False

    @property
    def schema(self) -> Schema:
        """A string."""
        return {"type": "string", **({"pattern": r"^[^\u0000]*$"} if self.storable else {})}

    def read(self, field: str, given: Any) -> str:
        """The string."""
        if not isinstance(given, str):
            raise Unfit(f'"{field}" must be a string')
        if self.storable and "\0" in given:
            raise Unfit(f"the {field} has a NUL character, which no store can hold")
        return given


def _words(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(word) for word in words)


@attrs.frozen
class OneOf:
    """One of a few words."""

    words: tuple[str, ...] = attrs.field(converter=_words)

    @property
    def schema(self) -> Schema:
        """An enumeration."""
        return {"type": "string", "enum": list(self.words)}

    def read(self, field: str, given: Any) -> str:
        """The word."""
        if given not in self.words:
            raise Unfit(f"there is no {field} {given!r:.80}; there are: {', '.join(self.words)}")
        return str(given)


@attrs.frozen
class Words:
    """Some of the words that ``known`` gives, with commas between them. Read as a set."""

    known: Callable[[], Iterable[str]]

    @property
    def schema(self) -> Schema:
        """A string of that pattern."""
        word = f"(?:{'|'.join(map(re.escape, self.known()))})"
        return {"type": "string", "pattern": f"^{word}(?:,{word})*$"}

    def read(self, field: str, given: Any) -> frozenset[str]:
        """The words."""
        found, known = str(given).split(","), tuple(self.known())
        for each in found:
            if each not in known:
                raise Unfit(f"{field}: there is no {each!r:.80}; there are: {', '.join(known)}")
        return frozenset(found)


@attrs.frozen
class Whole:
    """A whole number of a query. ``words``: what its range is called."""

    least: int
    most: int
    words: str

    @property
    def schema(self) -> Schema:
        """An integer."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}

    def read(self, field: str, given: Any) -> int:
        """Decimal digits alone."""
        digits = isinstance(given, str) and given.isascii() and given.isdigit() and len(given) <= 19
        if not digits or not self.least <= int(given) <= self.most:
            raise Unfit(f"{field} must be a whole number, {self.words}, not {given!r:.80}")
        return int(given)


@attrs.frozen
class Moment:
    """A wall-clock time: ISO 8601 with its zone, or seconds since the epoch. Read as the latter."""

    @property
    def schema(self) -> Schema:
        """RFC 3339, or a number."""
        return {
            "anyOf": [
                {"type": "string", "format": "date-time"},
                {"type": "string", "pattern": r"^[0-9]{1,15}(\.[0-9]{1,15})?$"},
            ]
        }

    def read(self, field: str, given: Any) -> float:
        """Seconds since the epoch."""
        text = str(given)
        if _SECONDS.match(text) and text.isascii():
            return float(text)
        try:
            found = datetime.fromisoformat(text.upper())
        except ValueError:
            found = None
        if found is None or found.tzinfo is None:
            hint = " (in an address, + is written %2B)" if " " in text.strip() else ""
            raise Unfit(
                f"{field} must be a time with its zone, such as 2026-11-30T17:00:00Z, or seconds since 1970, "
                f"not {text!r:.80}{hint}"
            )
        # Whole microseconds stand for all that rounds to them: who writes down when something happened finds it by that.
        return found.timestamp() - 5e-7


@attrs.frozen
class Truth:
    """true or false, in a body."""

    @property
    def schema(self) -> Schema:
        """A boolean."""
        return {"type": "boolean"}

    def read(self, field: str, given: Any) -> bool:
        """The boolean."""
        if not isinstance(given, bool):
            raise Unfit(f'"{field}" must be true or false')
        return given


@attrs.frozen
class Json:
    """Any JSON value."""

    @property
    def schema(self) -> Schema:
        """Anything."""
        return {}

    def read(self, field: str, given: Any) -> Any:
        """The value."""
        return given


@attrs.frozen
class ListOf:
    """A list, in a body; what its items must be is checked by who takes them. ``items``: their schema."""

    items: Schema

    @property
    def schema(self) -> Schema:
        """An array."""
        return {"type": "array", "items": dict(self.items)}

    def read(self, field: str, given: Any) -> list[Any]:
        """The list."""
        if not isinstance(given, list):
            raise Unfit(f'"{field}" must be a list')
        return given


@attrs.frozen
class Matching:
    """A text that matches a regular expression as a whole. ``parse``: what it stands for; ``words``: what it must be."""

    pattern: str
    words: str
    parse: Callable[[str], Any] = str

    @property
    def schema(self) -> Schema:
        """A string of that pattern."""
        return {"type": "string", "pattern": f"^(?:{self.pattern})$"}

    def read(self, field: str, given: Any) -> Any:
        """What it stands for."""
        if not isinstance(given, str) or re.fullmatch(self.pattern, given) is None:
            raise Unfit(f"{field} must be {self.words}, not {given!r:.80}")
        return self.parse(given)


BEFORE = Whole(1, LARGEST_PLACE, "at least 1, the next of an earlier page")
SEQ = Whole(0, LARGEST_PLACE, "the seq of a message, or 0 for the place before the first")


@attrs.frozen
class Id:
    """What could be the id of a signal or run; whether anything has it is not known yet."""

    @property
    def schema(self) -> Schema:
        """Letters, digits, - and _."""
        return {"type": "string", "pattern": r"^[A-Za-z0-9_-]{1,100}$"}

    def read(self, field: str, given: Any) -> str:
        """Any text: nothing has an id that cannot be one."""
        return str(given)


def is_id(text: str) -> bool:
    """Whether a signal or run could have this id; a store need not be asked for any other."""
    return _ID.match(text) is not None
