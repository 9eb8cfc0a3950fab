"""The pages of the documentation: their code blocks and their links.

A comment on the line before a block says what is special about it; no reader sees it:

``<!-- file: NAME -->`` the block is that file, in the folder in which the page is run;
``<!-- not run: REASON -->`` the block is not run, and why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!-- (?:(file): (\S+)|(not run): (.+?)) -->\n\Z")
LINK = re.compile(r"\]\(([^)\s]+)\)")
RUN = {"python", "sh"}


@attrs.frozen
class Block:
    """One fenced block: the words after the fence, the code, and the line it begins at.

    ``file``: the name of the file that it is. ``not_run``: why it is not run.
    """

    language: str
    words: tuple[str, ...]
    code: str
    line: int
    file: str | None = None
    not_run: str | None = None


def pages() -> list[Path]:
    """README and everything in docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        language, *words = found["info"].split() or [""]
        line = text.count("\n", 0, found.start("code")) + 1
        said = COMMENT.search(text, 0, found.start())
        file, reason = (said[2], said[4]) if said else (None, None)
        yield Block(language, tuple(words), found["code"], line, file, reason)


def runs(page: Path) -> list[Block]:
    """The blocks that running the page is made of, in their order."""
    return [
        block for block in blocks(page) if block.not_run is None and (block.language in RUN or block.file is not None)
    ]


def links(page: Path) -> Iterator[str]:
    """What a page links to, outside its code blocks."""
    yield from LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
