"""Session names as folder names and arguments (CLM-7).

The law: distinct names never give the same result, not even where capitals do not count; a result is 1 to 200
characters of ``a-z 0-9 _ - . =``, and never begins with a dash or a dot.

Small ASCII letters, digits, ``_``, ``-`` and ``.`` stand for themselves, but a dash or dot at the beginning and a dot
at the end do not. Every other character becomes ``=`` and two hex digits for each of its UTF-8 bytes: ``Ann`` is
``=41nn``, ``../x`` is ``=2e.=2fx``. A result that would be longer than 160 characters is its first 90, ``=.`` and the SHA-256 of
the name: ``=.`` stands in no other result.
"""

from __future__ import annotations

import hashlib

from concorde_trio.records import check_name

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-.")
_LONGEST = 160


def encode_name(name: str) -> str:
    """A session's name as one folder name or argument. InvalidName if it is no name."""
    check_name(name, "session")
    last = len(name) - 1
    encoded = "".join(
        character
        if character in _PLAIN and not (place == 0 and character in "-.") and not (place == last and character == ".")
        else "".join(f"={byte:02x}" for byte in character.encode())
        for place, character in enumerate(name)
    )
    if len(encoded) <= _LONGEST:
        return encoded
    return f"{encoded[:90]}=.{hashlib.sha256(name.encode()).hexdigest()}"
