"""Masking a text that comes in pieces: a live tag that is split over two of them must not get through (TAG-4).

The law: what is given out was masked together with all that could be the beginning of a tag before it. A tag is visible
ASCII without comma, so nothing that a space, a comma or any other character follows can go on to be one; what stands
after the last of these is held back until it ends, or is longer than a tag.
"""

from __future__ import annotations

from collections.abc import Callable

from concorde_trio._sansio.run_tags import LONGEST

_LONGEST = 2 * LONGEST  # as JSON writes it, each character may be escaped
_KEPT = _LONGEST - 1


class MaskedStream:
    """One text in pieces. ``mask`` replaces every whole tag in a text, as ``RunTags.mask`` does."""

    __slots__ = ("_held", "_mask")

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask
        self._held = ""

    def feed(self, piece: str) -> str:
        """What of the text up to now can be shown, and was not shown before."""
        text = self._held + piece
        end = _could_begin(text)
        if len(text) - end <= 2 * _LONGEST:
            self._held = text[end:]
            return self._mask(text[:end])
        # So long without a break, it is given out but for what the longest tag may still need; unless one lies across.
        cut = len(text) - _KEPT
        whole, shown, rest = self._mask(text), self._mask(text[:cut]), text[cut:]
        if shown + self._mask(rest) != whole:
            self._held = text
            return ""
        self._held = rest
        return shown

    def end(self) -> str:
        """The rest: the text is over."""
        text, self._held = self._held, ""
        return self._mask(text)


def _could_begin(text: str) -> int:
    """Where the last characters of ``text`` begin that a tag could be made of."""
    at = len(text)
    while at and "!" <= text[at - 1] <= "~" and text[at - 1] != ",":
        at -= 1
    return at
