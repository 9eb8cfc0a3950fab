"""What the tools of an MCP server are called. The law: a name once given stays that tool's, and no two tools share one.

Providers take 64 characters of A-Z, a-z, 0-9, ``_`` and ``-``; an MCP server may use others, and more of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from concorde_trio.errors import UsageError

LONGEST = 64
_SERVER = re.compile(r"[A-Za-z0-9_-]{1,32}")
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


def check_server_name(name: str) -> str:
    """The name, or a UsageError that says what one looks like."""
    if not isinstance(name, str) or not _SERVER.fullmatch(name):
        raise UsageError(
            f"the name of an MCP server is 1 to 32 letters, digits, '_' and '-': its tools are called NAME__TOOL. Not {name!r:.80}"
        )
    return name


class ToolNames:
    """The names of one server's tools, for as long as the object lives."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._given: dict[str, str] = {}  # what the server calls it -> what we call it

    def give(self, tools: Iterable[str]) -> None:
        """Name these. Those that can keep their name do, before any that cannot is named."""
        new = [tool for tool in dict.fromkeys(tools) if tool not in self._given]
        taken = set(self._given.values())
        for kept in (True, False):
            for tool in new:
                plain = f"{self._server}__{tool}"
                fits = len(plain) <= LONGEST and not _FOREIGN.search(plain)
                if fits is kept and tool not in self._given:
                    mapped = _FOREIGN.sub("_", plain)
                    number = 0
                    while len(mapped) > LONGEST or mapped in taken:
                        digest = hashlib.sha256(f"{number}{tool}".encode(errors="surrogatepass")).hexdigest()[:8]
                        mapped = f"{_FOREIGN.sub('_', plain)[: LONGEST - 9]}_{digest}"
                        number += 1
                    self._given[tool] = mapped
                    taken.add(mapped)

    def of(self, tool: str) -> str:
        """Our name of a tool that was named."""
        return self._given[tool]
