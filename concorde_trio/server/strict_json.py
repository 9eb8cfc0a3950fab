"""Request bodies as JSON, strictly: what two readers could take for two things is refused with its place (SRV-5).

Refused beside what is no JSON: a key that stands twice in one object, NaN and infinities, numbers that overflow to
one, lone surrogates, nesting that runs out of stack, a byte order mark, any encoding but UTF-8.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any, NoReturn

from concorde_trio.records import JSON
from concorde_trio.server.problems import Problem


def read_json(body: bytes) -> JSON:
    """The value in ``body``; Problem 400 that says what is wrong, and where."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse(f"the body is not UTF-8: byte {error.start} is 0x{body[error.start]:02x}", f"byte {error.start}")
    if not text.strip(" \t\r\n"):
        _refuse("the body is empty; expected a JSON document", "body")
    try:
        value = _read(text)
    except json.JSONDecodeError as error:
        _refuse(
            f"the body is not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}",
            f"line {error.lineno}, column {error.colno}",
        )
    except RecursionError:
        _refuse("the body is nested too deep; make it flatter", "body")
    except ValueError:  # an integer of more digits than Python reads
        _refuse(
            f"the body has a whole number of more than {sys.get_int_max_str_digits():,} digits; write it as a string",
            "body",
        )
    if _has_surrogate(text):
        _check_surrogates(value)
    return value


def _has_surrogate(text: str) -> bool:
    # UTF-8 holds none, so that one can only have come as an escape.
    return "\\ud" in text or "\\uD" in text


def _check_surrogates(value: JSON) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        code = ord(error.object[error.start])
        _refuse(f"a string of the body has the lone surrogate U+{code:04X}, which is no character", "body")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                _refuse(f"the key {name!r:.80} stands twice in one object", f"the key {name!r:.80}")
            seen.add(name)
    return found


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refuse(f"the number {text:.40} is too large for JSON to be read alike everywhere", f"the number {text:.40}")
    return number


def _constant(name: str) -> NoReturn:
    _refuse(f"{name} is no JSON; write null or a string", name)


def _refuse(detail: str, place: str) -> NoReturn:
    raise Problem(400, detail, place=place)


_read = json.JSONDecoder(object_pairs_hook=_object, parse_float=_number, parse_constant=_constant).decode
