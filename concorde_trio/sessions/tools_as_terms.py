"""Tools as a session's machine sees them.

The law: they are made anew only for tools that are new, since every step asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from concorde_trio._sansio.session_terms import ToolTerms
from concorde_trio.sessions.tool import Tool


class ToolsAsTerms:
    """What there is now, each time it is called."""

    def __init__(self, tools: Callable[[], Mapping[str, Tool]]) -> None:
        self._tools = tools
        self._made: dict[str, tuple[Tool, ToolTerms]] = {}

    def __call__(self) -> Mapping[str, ToolTerms]:
        now = self._tools()
        for name, each in now.items():
            made = self._made.get(name)
            if made is None or made[0] is not each:
                terms = ToolTerms(spec=each.spec, timeout=each.timeout, concurrent=each.concurrent, kind=each.kind)
                self._made[name] = each, terms
        return {name: self._made[name][1] for name in now}
