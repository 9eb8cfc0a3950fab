"""Which live run a tag names, and masking tags in whatever is shown.

The law: a request names a run by exactly one header value that equals a live tag, and by nothing else (TAG-3); a
tag is live on one run at a time (TAG-2); and no text that leaves the system holds a tag that is live or belongs to a
run that may still start (TAG-4).

Masking costs time in the text, hardly in how many tags are known: a tag has at least 16 characters, so wherever it
stands, one of the grams of 8 characters that begin at the multiples of 9 lies within its first 16. Looking those few
grams up is all that a text without tags costs.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

from concorde_trio.errors import InternalError, InvalidTag
from concorde_trio.records import JSON

RunT = TypeVar("RunT", bound=Hashable)

MASK = "[run tag]"
SHORTEST = 16
LONGEST = 128

_GRAM = 8
_STRIDE = SHORTEST - _GRAM + 1


def check_tag(tag: object) -> str:
    """``tag`` if it is 16 to 128 visible ASCII characters without comma, otherwise InvalidTag (TAG-6).

    The message gives the length or the place of a wrong character, never the tag.
    """
    if not isinstance(tag, str):
        raise InvalidTag(f"a run tag must be a string, not {type(tag).__name__}; new_tag() makes one")
    if not SHORTEST <= len(tag) <= LONGEST:
        raise InvalidTag(
            f"a run tag must have {SHORTEST} to {LONGEST} characters, this has {len(tag)}; new_tag() makes one"
        )
    for place, character in enumerate(tag):
        if not "!" <= character <= "~" or character == ",":
            raise InvalidTag(
                f"a run tag must be visible ASCII characters without comma, character {place} of this is "
                f"U+{ord(character):04X}; new_tag() makes one"
            )
    return tag


def erase(text: str, tag: str) -> str:
    """``text`` with every occurrence of ``tag`` replaced by the mask: what is kept of a prompt once its run ended."""
    return _only(tag).mask(text)


def erase_json(value: JSON, tag: str) -> JSON:
    """``value`` with ``tag`` erased in each of its strings, keys included."""
    return _only(tag).mask_json(value)


class RunTags(Generic[RunT]):
    """The tags of the runs that have not ended: expected (the run may still start) or live (it has started)."""

    __slots__ = ("_expected", "_live", "_masks")

    def __init__(self) -> None:
        self._expected: dict[str, int] = {}  # by how many runs; two may carry one tag until both want to start
        self._live: dict[str, RunT] = {}
        self._masks = _Masks()

    @property
    def known(self) -> int:
        """How many tags are expected or live: with none, masking changes nothing."""
        return len(self._expected) + len(self._live)

    def expect(self, tag: str) -> None:
        """A queued run carries ``tag``: it is masked from now on, once for each ``expect``. InvalidTag: TAG-6."""
        check_tag(tag)
        self._expected[tag] = self._expected.get(tag, 0) + 1
        self._masks.add(tag)

    def forget(self, tag: str) -> None:
        """Takes one ``expect`` back: a run that carried ``tag`` has ended."""
        count = self._expected.get(tag, 0)
        if not count:
            raise InternalError("a run tag was forgotten more often than it was expected")
        if count == 1:
            del self._expected[tag]
        else:
            self._expected[tag] = count - 1
        self._masks.remove(tag)

    def claim(self, tag: str, run: RunT) -> bool:
        """``tag`` is live on ``run`` from now on; False, and nothing changes, if it is live on another run (TAG-2)."""
        if tag in self._live:
            return self._live[tag] == run
        check_tag(tag)
        self._live[tag] = run
        self._masks.add(tag)
        return True

    def release(self, tag: str, run: RunT) -> None:
        """``tag`` is not live any more, if it was live on ``run``; another run's claim stays as it is."""
        if tag in self._live and self._live[tag] == run:
            del self._live[tag]
            self._masks.remove(tag)

    def lookup(self, values: Sequence[str]) -> RunT | None:
        """The run that a request with these ``concorde-run-tag`` header values comes from, None for nothing (TAG-3).

        ``values``: one string for each such header of the request, as it came. Only a single one that equals a live
        tag, character by character, names a run.
        """
        return self._live.get(values[0]) if len(values) == 1 else None

    def mask(self, text: str) -> str:
        """``text`` with every expected or live tag, wherever it stands, replaced by ``[run tag]`` (TAG-4).

        Tags that overlap become one mask. A tag that JSON would write with escapes is found in that form too.
        """
        return self._masks.mask(text)

    def mask_json(self, value: JSON) -> JSON:
        """``value`` with every string in it masked, keys included; it may share parts with ``value``.

        Keys that masking makes equal are told apart by a number. Tuples come back as lists.
        """
        return self._masks.mask_json(value)


class _Masks:
    """Strings to be masked, counted, with what is needed to find them fast."""

    __slots__ = ("_grams", "_heads", "_lengths", "_patterns")

    def __init__(self) -> None:
        self._patterns: dict[str, int] = {}
        self._grams: dict[str, int] = {}  # each place in a pattern where a gram of a text can fall on it
        self._heads: dict[str, int] = {}  # the first 16 characters
        self._lengths: dict[int, int] = {}

    def add(self, tag: str) -> None:
        for pattern in _forms(tag):
            if _count(self._patterns, pattern, 1) == 1:
                self._index(pattern, 1)

    def remove(self, tag: str) -> None:
        for pattern in _forms(tag):
            if _count(self._patterns, pattern, -1) == 0:
                self._index(pattern, -1)

    def _index(self, pattern: str, change: int) -> None:
        for start in range(_STRIDE):
            _count(self._grams, pattern[start : start + _GRAM], change)
        _count(self._heads, pattern[:SHORTEST], change)
        _count(self._lengths, len(pattern), change)

    def mask(self, text: str) -> str:
        # Again, until nothing is found: an end of the mask can make a tag with what follows it.
        while spans := self._find(text):
            pieces: list[str] = []
            done = 0
            for start, end in spans:
                pieces += (text[done:start], MASK)
                done = end
            text = "".join(pieces) + text[done:]
        return text

    def mask_json(self, value: JSON) -> JSON:
        if not self._patterns:
            return value
        top: list[JSON] = [value]
        # Containers whose items are still the original ones; by hand, for a value may be deeper than the stack.
        unmasked: list[list[JSON] | dict[str, JSON]] = [top]
        while unmasked:
            container = unmasked.pop()
            places = enumerate(container) if isinstance(container, list) else list(container.items())
            for place, item in places:
                if isinstance(item, str):
                    item = self.mask(item)
                elif isinstance(item, dict):
                    item = self._mask_keys(item)
                    unmasked.append(item)
                elif isinstance(item, list | tuple):
                    item = list(item)
                    unmasked.append(item)
                container[place] = item  # type: ignore[index]
        return top[0]

    def _mask_keys(self, value: dict[str, JSON]) -> dict[str, JSON]:
        masked: dict[str, JSON] = {}
        for key, item in value.items():
            name = shown = self.mask(key)
            number = 1
            while name in masked:
                number += 1
                name = f"{shown} {number}"
            masked[name] = item
        return masked

    def _find(self, text: str) -> list[tuple[int, int]]:
        """Where in ``text`` patterns stand, in order, overlapping ones as one."""
        if not self._grams or len(text) < SHORTEST:
            return []
        looked_at = range(0, len(text) - _GRAM + 1, _STRIDE)
        grams = [text[at : at + _GRAM] for at in looked_at]
        if self._grams.keys().isdisjoint(grams):
            return []
        spans: list[tuple[int, int]] = []
        lengths = sorted(self._lengths, reverse=True)
        for at, gram in zip(looked_at, grams, strict=True):
            if gram not in self._grams:
                continue
            for start in range(max(0, at - _STRIDE + 1), at + 1):
                if text[start : start + SHORTEST] not in self._heads:
                    continue
                for length in lengths:
                    if text[start : start + length] in self._patterns:
                        if spans and start < spans[-1][1]:
                            spans[-1] = (spans[-1][0], max(spans[-1][1], start + length))
                        else:
                            spans.append((start, start + length))
                        break
        return spans


def _only(tag: str) -> _Masks:
    masks = _Masks()
    masks.add(check_tag(tag))
    return masks


def _forms(tag: str) -> tuple[str, ...]:
    """How ``tag`` can stand in a text: as it is, and as JSON writes it inside a string."""
    written = json.dumps(tag)[1:-1]
    return (tag,) if written == tag else (tag, written)


def _count(counts: dict[RunT, int], key: RunT, change: int) -> int:
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        del counts[key]
    return count
