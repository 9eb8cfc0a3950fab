"""What JSON and every store can hold, checked once, and given back equal (SIG-5).

The law: ``decode(encode(value))`` equals ``value`` and is made of the same types, or ``encode`` refuses it with an
InvalidValue whose ``place`` says where in the value the fault stands.

Python's encoder alone would not do: it writes tuples as lists and keys that are no strings as strings, lets lone
surrogates and NUL through, and runs out of stack when a value is deep. Almost all values are good, so they are first
asked quickly whether they are, and looked through for the place of a fault only when they are not.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from concorde_trio.errors import InvalidValue, StoreError
from concorde_trio.records import JSON

MAX_BYTES = 1_000_000
MAX_DEPTH = 100
MAX_DIGITS = 4300
"""Python reads no longer integer unless told to."""

_INTEGERS_END = 10**MAX_DIGITS
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_SCALARS = frozenset({str, bool, type(None), float})
_write = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")).encode


def encode(value: JSON, *, what: str = "payload", max_bytes: int = MAX_BYTES) -> str:
    """``value`` as compact JSON text; InvalidValue if JSON or a store cannot hold it (SIG-5).

    ``value``: None, bool, int (at most 4300 digits), finite float, str, list or dict with str keys, nested at most 100
    deep; exactly these types, since a subclass or a tuple would not come back as what it was. Strings must not have
    NUL or lone surrogates. ``what``: how messages and places call the value (``payload.items[3].name``).
    ``max_bytes``: the most that the text may have, in UTF-8.
    """
    if not _is_plain(value, max_bytes):
        _look_through(value, what)
        _refuse_size(what, f"more than {max_bytes:,} bytes", max_bytes)
    try:
        text = _write(value)
    except ValueError:  # NaN, infinity, or an integer longer than this interpreter was told to write
        _look_through(value, what)
        raise InvalidValue(f"{what} cannot be written as JSON", place=what) from None
    if "\\u0000" in text:  # either NUL, or a backslash that somebody wrote before u0000
        _look_through(value, what)
    if text.isascii():
        size = len(text)
    else:
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            _look_through(value, what)
            raise
    if size > max_bytes:
        _refuse_size(what, f"{size:,} bytes", max_bytes)
    return text


def decode(text: str) -> JSON:
    """The value that ``encode`` gave ``text`` for; StoreError if it is no JSON text any more."""
    try:
        return _read(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"stored JSON text cannot be read: {error}; it was changed by something else") from error


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_read = json.JSONDecoder(parse_constant=_not_json).decode


def _is_plain(value: JSON, most: int) -> bool:
    """Whether all types in ``value`` are right, it is not too deep, and no level of it has more than ``most`` items.

    Strings and floats are not looked into. Level by level, so that what contains itself, or one part very many
    times, ends at a bound.
    """
    level = [value]
    for depth in range(MAX_DEPTH + 1):
        below: list[JSON] = []
        for item in level:
            kind = type(item)
            if kind in _SCALARS:
                continue
            if kind is dict and depth < MAX_DEPTH:
                for key in item:
                    if type(key) is not str:
                        return False
                below += item.values()
            elif kind is list and depth < MAX_DEPTH:
                below += item
            elif kind is not int or not -_INTEGERS_END < item < _INTEGERS_END:
                return False
        if not below:
            return True
        if len(below) > most:
            return False
        level = below
    return False


def _look_through(value: JSON, what: str) -> None:
    """Raise InvalidValue for the first fault of ``value`` in the order it is written; return if there is none."""
    _Search(what).visit(value, what, ())


class _Search:
    __slots__ = ("good", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self.good: dict[int, int] = {}  # containers without fault, and how deep they stood then

    def visit(self, value: JSON, place: str, around: tuple[int, ...]) -> None:
        """``around``: the identities of the containers that ``value`` stands in."""
        kind = type(value)
        if kind is str:
            _check_text(value, place, f"{place} has")
        elif kind is dict or kind is list:
            if id(value) in around:
                raise InvalidValue(f"{place} contains itself, which JSON cannot hold", place=place)
            if len(around) == MAX_DEPTH:
                raise InvalidValue(f"{self.what} is nested more than {MAX_DEPTH} deep; make it flatter", place=place)
            if self.good.get(id(value), -1) >= len(around):
                return
            inside = (*around, id(value))
            if kind is list:
                for index, item in enumerate(value):
                    self.visit(item, f"{place}[{index}]", inside)
            else:
                for key, item in value.items():
                    _check_key(key, place)
                    self.visit(item, _inside(place, key), inside)
            self.good[id(value)] = len(around)
        elif kind is int:
            if not -_INTEGERS_END < value < _INTEGERS_END:
                raise InvalidValue(
                    f"{place} is an integer of more than {MAX_DIGITS} digits; write it as a string", place=place
                )
        elif kind is float:
            if not -float("inf") < value < float("inf"):
                raise InvalidValue(f"{place} is {value!r}, which JSON cannot hold; write None or a string", place=place)
        elif kind is not bool and value is not None:
            raise InvalidValue(f"{place} {_wrong_type(value)}", place=place)


def _inside(place: str, key: str) -> str:
    return f"{place}.{key}" if len(key) <= 80 and key.isidentifier() else f"{place}[{key!r:.80}]"


def _check_key(key: object, place: str) -> None:
    if type(key) is str:
        _check_text(key, place, f"{place} has a key, {key!r:.80}, with")
    elif isinstance(key, str):
        raise InvalidValue(f"{place} has a key that {_wrong_type(key)}", place=place)
    else:
        plain = type(key) in (type(None), bool, float) or (type(key) is int and -(2**63) <= key < 2**63)
        raise InvalidValue(
            f"{place} has {f'the key {key!r}' if plain else 'a key'} of type {type(key).__name__}; a key must be a string, and would come back as one",
            place=place,
        )


def _check_text(text: str, place: str, subject: str) -> None:
    if found := _UNSTORABLE.search(text):
        character = found[0]
        name = "NUL" if character == "\0" else f"the lone surrogate U+{ord(character):04X}"
        raise InvalidValue(
            f"{subject} {name} at character {found.start()}, which no store can hold; replace or encode it",
            place=place,
        )


def _wrong_type(value: object) -> str:
    name = type(value).__name__
    if isinstance(value, tuple):
        return f"is a {name}, which would come back as a list; write a list"
    for plain in (str, int, float, dict, list):
        if isinstance(value, plain):
            return f"is a {name}, which would come back as a plain {plain.__name__}; write {_plain_form(value, plain)}"
    return f"is of type {name}; JSON holds None, bool, int, float, str, list and dict"


def _plain_form(value: object, plain: type) -> str:
    return "its .value" if hasattr(value, "value") else f"{plain.__name__}(...) of it"


def _refuse_size(what: str, size: str, max_bytes: int) -> NoReturn:
    raise InvalidValue(
        f"{what} is {size} of JSON, at most {max_bytes:,} are allowed; keep the large part in a file or table and "
        f"write its name here",
        place=what,
    )
