"""Which tools a harness has: those it was given, and those that its sources have at the moment.

The law: a name means one tool. Where two have it, the harness's own hides a source's, and a source's those of the sources
after it; that is told once for each. A source that fails has no tools until it answers again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import cast

import trio

from concorde_trio.errors import UsageError
from concorde_trio.sessions.tool import Tool, ToolSource, check_tools

logger = logging.getLogger("concorde_trio.sessions")


class OfferedTools:
    """``given``: Tools and ToolSources. UsageError for what is neither, and for two of one name."""

    def __init__(self, given: Iterable[Tool | ToolSource]) -> None:
        self._tools: dict[str, Tool] = {}
        self._sources: list[ToolSource] = []
        self._hidden: set[tuple[int, str]] = set()  # tools of sources that others hide, once they were told of
        for each in given:
            if hasattr(each, "spec"):
                (one,) = check_tools([cast("Tool", each)])
                if one.spec.name in self._tools:
                    raise UsageError(f"two tools are called {one.spec.name!r}; a name means one tool")
                self._tools[one.spec.name] = one
            elif hasattr(each, "tools") and hasattr(each, "run"):
                name = getattr(each, "name", None)
                same = next((other for other in self._sources if getattr(other, "name", None) == name), None)
                if name is not None and same is not None:
                    raise UsageError(
                        f"two sources of tools are called {name!r}: {same!r:.200} and {each!r:.200}; give one another name, "
                        "or their tools would hide each other"
                    )
                self._sources.append(each)
            else:
                raise UsageError(
                    f"a tool must have a spec and a call, which {each!r:.80} has not; decorate it with @tool"
                )

    def now(self) -> Mapping[str, Tool]:
        """What there is now, by name."""
        if not self._sources:
            return self._tools
        found: dict[str, tuple[Tool, object]] = {name: (each, "this session") for name, each in self._tools.items()}
        for source in self._sources:
            try:
                given = check_tools(source.tools())
            except (Exception, SystemExit) as error:
                logger.error("a source of tools cannot say what it has, so it has none now: %r", source, exc_info=error)
                continue
            for each in given:
                first = found.setdefault(each.spec.name, (each, source))[1]
                if first is not source and (id(source), each.spec.name) not in self._hidden:
                    self._hidden.add((id(source), each.spec.name))
                    who = first if isinstance(first, str) else repr(first)
                    logger.warning(
                        "the tool %r of %r is left out: %s has one of that name", each.spec.name, source, who
                    )
        return {name: each for name, (each, _) in found.items()}

    async def start(self, nursery: trio.Nursery, *, queue: str, programs_lock: Path | None) -> None:
        """Run the sources in ``nursery``, all at once: one that does not answer holds up the others no longer than itself."""

        async def start(source: ToolSource) -> None:
            await nursery.start(partial(source.run, queue=queue, programs_lock=programs_lock))

        async with trio.open_nursery() as starting:
            for source in self._sources:
                starting.start_soon(start, source)
