"""The pages of the documentation: their code blocks and their links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@attrs.frozen
class Block:
    """One fenced block: the words after the fence, the code, and the line it begins at."""

    language: str
    words: tuple[str, ...]
    code: str
    line: int


def pages() -> list[Path]:
    """README and everything in docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        language, *words = found["info"].split() or [""]
        yield Block(language, tuple(words), found["code"], text.count("\n", 0, found.start("code")) + 1)


def links(page: Path) -> Iterator[str]:
    """What a page links to, outside its code blocks."""
    yield from LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
