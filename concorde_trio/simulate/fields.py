"""One object of a scenario file, read field by field: what is wrong is refused with the place where it stands.

The law of this module: nothing is guessed and nothing is skipped. A field is read by exactly one method, and what no
method would ask for is refused before any of them does.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from concorde_trio.errors import InvalidName, InvalidScenario
from concorde_trio.records import JSON, check_name

T = TypeVar("T")

LONGEST = 1e9
"""Seconds. More than thirty years is a slip of the pen."""

_MISSING: Any = object()


class _Object(dict[str, Any]):
    """A JSON object that remembers which of its keys was written twice."""

    twice: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        made.twice = next(key for place, key in enumerate(keys) if key in keys[:place])
    return made


def load_json(text: str) -> JSON:
    """The value that ``text`` holds; InvalidScenario, with line and column, if it is no JSON."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidScenario(f"{place}: expected JSON, but it breaks off here: {error.msg}", place=place) from None
    except RecursionError:
        raise InvalidScenario("line 1: expected a scenario, got JSON nested too deep", place="line 1") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise InvalidScenario(f"line 1: expected a scenario: {error}", place="line 1") from None


def refuse(place: str, expected: str, got: object = _MISSING) -> NoReturn:
    """Raise InvalidScenario: what was expected at ``place``, and what came (nothing, if it is not given)."""
    came = "nothing" if got is _MISSING else show(got)
    where = place or "the scenario"
    raise InvalidScenario(f"{where}: expected {expected}, got {came}", place=where)


def show(value: object) -> str:
    """``value`` as a person would write it in the file, shortened."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        return f"{type(value).__name__} {value!r:.60}"
    return text if len(text) <= 60 else text[:57] + "..."


class Fields:
    """The fields of one object at ``place`` (``""``: the scenario itself)."""

    def __init__(self, value: object, place: str, what: str, known: Iterable[str]) -> None:
        """``known``: all that it may have, so that a slip of the pen is told before what is missing because of it."""
        if not isinstance(value, Mapping):
            refuse(place, f"an object ({what})", value)
        for key in value:
            if not isinstance(key, str):
                refuse(place, "field names that are strings", key)
        twice = getattr(value, "twice", None)
        if twice is not None:
            where = self.join(place, twice)
            raise InvalidScenario(f"{where}: the field is written twice; keep one of them", place=where)
        self._left: dict[str, Any] = dict(value)
        self.place = place
        self.what = what
        self._refuse_unknown(list(known))

    @staticmethod
    def join(place: str, field: str) -> str:
        """How the place of ``field`` is written: ``signals[2].prompts[0].duration``."""
        named = field if field.isidentifier() else json.dumps(field)
        return f"{place}.{named}" if place else named

    def at(self, field: str) -> str:
        """The place of one field of this object."""
        return self.join(self.place, field)

    def _refuse_unknown(self, known: list[str]) -> None:
        field = next((field for field in self._left if field not in known), None)
        if field is None:
            return
        near = difflib.get_close_matches(field, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"{self.what} has {', '.join(known)}"
        where = self.at(field)
        raise InvalidScenario(f"{where}: unknown field {field!r:.60}; {hint}", place=where)

    def text(self, field: str, expected: str) -> str:
        """A string of at least one character; required."""
        value = self._take(field, _MISSING)
        if not isinstance(value, str) or not value:
            refuse(self.at(field), expected, value)
        return value

    def name(self, field: str, what: str) -> str:
        """A name by rule CLM-7; required."""
        return self._name(self._take(field, _MISSING), self.at(field), what)

    def optional_name(self, field: str, what: str) -> str | None:
        """A name by rule CLM-7, or None when it is null or not there."""
        value = self._take(field, None)
        return None if value is None else self._name(value, self.at(field), what)

    def names(self, field: str, what: str) -> tuple[str, ...]:
        """A list of names by rule CLM-7; empty when it is not there."""
        items = self._items(field, f"a list of {what} names")
        return tuple(self._name(item, place, what) for item, place in items)

    def seconds(self, field: str, default: float | None = None) -> float:
        """Seconds of at least 0; required when there is no ``default``."""
        value = self._take(field, _MISSING if default is None else default)
        return self.seconds_of(value, self.at(field))

    @classmethod
    def seconds_of(cls, value: object, place: str, expected: str = "seconds of at least 0") -> float:
        """Seconds of at least 0 that stand at ``place``."""
        return cls._seconds(value, place, expected, above=False)

    def optional_seconds(self, field: str, *, above: bool = False) -> float | None:
        """Seconds of at least 0 (``above``: above 0), or None when it is null or not there."""
        value = self._take(field, None)
        least = "above 0" if above else "of at least 0"
        return None if value is None else self._seconds(value, self.at(field), f"seconds {least}, or null", above=above)

    def count(self, field: str, *, default: int | None, least: int) -> int | None:
        """A whole number of at least ``least``, or None when it is null (no bound)."""
        value = self._take(field, default)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
            refuse(self.at(field), f"a whole number of at least {least}, or null for no bound", value)
        return value

    def flag(self, field: str) -> bool:
        """true or false; false when it is not there."""
        value = self._take(field, False)
        if not isinstance(value, bool):
            refuse(self.at(field), "true or false", value)
        return value

    def choice(self, field: str, allowed: Iterable[str], default: str | None = None) -> str:
        """One of ``allowed``; required when there is no ``default``."""
        value = self._take(field, _MISSING if default is None else default)
        if not isinstance(value, str) or value not in allowed:
            refuse(self.at(field), f"one of {', '.join(allowed)}", value)
        return value

    def string(self, field: str, expected: str) -> str:
        """Any string; required."""
        value = self._take(field, _MISSING)
        if not isinstance(value, str):
            refuse(self.at(field), expected, value)
        return value

    def has(self, field: str) -> bool:
        """Whether it is there, and was not read yet."""
        return field in self._left

    def one_of(self, *names: str) -> str:
        """The one of these fields that is there; there must be exactly one."""
        given = [name for name in names if self.has(name)]
        if len(given) != 1:
            where = self.place or "the scenario"
            came = " and ".join(given) or "none of them"
            raise InvalidScenario(
                f"{where}: expected {self.what}, with one of {', '.join(names)}, got {came}", place=where
            )
        return given[0]

    def true(self, field: str) -> None:
        """true and nothing else; required."""
        value = self._take(field, _MISSING)
        if value is not True:
            refuse(self.at(field), "true", value)

    def need(self, field: str, read: Callable[[object, str], T]) -> T:
        """What ``read(value, place)`` makes of it; required."""
        return read(self._take(field, _MISSING), self.at(field))

    def optional(self, field: str, read: Callable[[object, str], T]) -> T | None:
        """What ``read(value, place)`` makes of it, or None when it is null or not there."""
        value = self._take(field, None)
        return None if value is None else read(value, self.at(field))

    def each(self, field: str, expected: str, read: Callable[[object, str], T], *, required: bool) -> tuple[T, ...]:
        """A list, each item made by ``read(value, place)``."""
        return tuple(read(item, place) for item, place in self._items(field, expected, required=required))

    def _take(self, field: str, default: object) -> Any:
        return self._left.pop(field, default)

    def _items(self, field: str, expected: str, *, required: bool = False) -> Sequence[tuple[object, str]]:
        value = self._take(field, _MISSING if required else [])
        if not isinstance(value, list | tuple):
            refuse(self.at(field), expected, value)
        return [(item, f"{self.at(field)}[{place}]") for place, item in enumerate(value)]

    @staticmethod
    def _name(value: object, place: str, what: str) -> str:
        if value is _MISSING:
            refuse(place, f"a {what} name")
        try:
            return check_name(value, what)
        except InvalidName as error:
            raise InvalidScenario(f"{place}: {error}", place=place) from None

    @staticmethod
    def _seconds(value: object, place: str, expected: str, *, above: bool) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            refuse(place, expected, value)
        if not value >= 0 or (above and value == 0) or value == math.inf:
            refuse(place, expected, value)
        if value > LONGEST:
            refuse(place, f"{expected}, and at most {LONGEST:,.0f}", value)
        return float(value)
