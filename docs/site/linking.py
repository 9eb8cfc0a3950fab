"""What becomes of the links of a page on its way into the site.

Code is left alone, fenced and inline; but inline code that is nothing but a public name becomes a link to its place in
the reference, the first time that a page names it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

FENCE = re.compile(r"^( *)(```+).*?^\1\2$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^)\s]+)\)")
NAME = re.compile(r"(?<![`\[\w])`(@?)(?:concorde_trio\.)?(\w+)(\(\))?`(?!\]|`)")
CHANGELOG = "CHANGELOG.md"


def outside_code(text: str) -> list[tuple[bool, str]]:
    """The text in pieces: whether it is fenced code, and the piece."""
    pieces, end = [], 0
    for found in FENCE.finditer(text):
        pieces += [(False, text[end : found.start()]), (True, found[0])]
        end = found.end()
    return [*pieces, (False, text[end:])]


def unlink_outside(text: str, place: Path) -> str:
    """The page without the links that lead out of docs: their words stay. The changelog is a page of the site."""

    def instead(found: re.Match[str]) -> str:
        words, target = found[1], found[2]
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        path = os.path.normpath(place.parent / target.partition("#")[0])
        if Path(path).name == CHANGELOG:
            return f"[{words}]({os.path.relpath('changelog.md', place.parent)})"
        return words if path.startswith("..") or path.endswith(".toml") else found[0]

    return "".join(piece if code else LINK.sub(instead, piece) for code, piece in outside_code(text))


def link_names(text: str, place: Path, names: Mapping[str, str]) -> str:
    """The page with its first mention of each public name linked; ``names`` has their places in the site."""
    seen: set[str] = set()

    def instead(found: re.Match[str]) -> str:
        name = found[2]
        if name not in names or name in seen:
            return found[0]
        seen.add(name)
        path, _, anchor = names[name].partition("#")
        return f"[{found[0]}]({os.path.relpath(path, place.parent)}#{anchor})"

    pieces = []
    for code, piece in outside_code(text):
        # Neither in headings, whose anchors would be others, nor inside of other links.
        lines = piece.split("\n")
        if not code:
            lines = [line if line.startswith("#") or "](" in line else NAME.sub(instead, line) for line in lines]
        pieces.append("\n".join(lines))
    return "".join(pieces)
