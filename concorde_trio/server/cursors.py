"""Cursors that are names: where a page ended, in a list that is ordered by name.

The law: a cursor is a place and not a row, so it stays right while rows come and go. A name with a live tag in it is
sealed (TAG-4): nobody can read it, and this process, which sealed it, finds its place again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Any

from concorde_trio.server.problems import Problem
from concorde_trio.server.values import Matching

SEALED = "~[A-Za-z0-9_-]{22,2000}"
_KEY = secrets.token_bytes(32)
_SIZE = 16


def cursor(text: str, mask: Callable[[str], str]) -> str:
    """``text``, sealed if it would show a live tag. It must not begin with a tilde."""
    return text if mask(text) == text else f"~{_seal(text)}"


def cursor_kind(pattern: str, parse: Callable[[str], Any]) -> Matching:
    """What a cursor of this pattern, sealed or not, stands for by ``parse``. Problem 409 if another process sealed it."""

    def read(given: str) -> Any:
        return parse(_open(given[1:]) if given.startswith("~") else given)

    return Matching(f"{pattern}|{SEALED}", "the next of an earlier page", read)


def _seal(text: str) -> str:
    data = text.encode()
    proof = _proof(data)
    return base64.urlsafe_b64encode(proof + _mixed(data, proof)).decode().rstrip("=")


def _open(sealed: str) -> str:
    whole = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4)) if len(sealed) % 4 != 1 else b""
    proof, mixed = whole[:_SIZE], whole[_SIZE:]
    data = _mixed(mixed, proof)
    if not hmac.compare_digest(_proof(data), proof):
        raise Problem(409, "this cursor was given by an earlier start of the server; begin at the first page again")
    return data.decode()


def _proof(data: bytes) -> bytes:
    """A keyed digest: it proves that we sealed the data, and is as good as random to who does not know the key."""
    return hmac.digest(_KEY, b"proof" + data, "sha256")[:_SIZE]


def _mixed(data: bytes, proof: bytes) -> bytes:
    stream = hashlib.shake_256(_KEY + b"stream" + proof).digest(len(data))
    return bytes(one ^ other for one, other in zip(data, stream, strict=True))
