"""What a tool is: a name, a JSON Schema, its bounds, and one async method.

The law: a tool may do what it likes but outlive its hold. It is cancelled by Trio; what it cannot stop it leaves behind in
the open, by ``ToolContext.left`` (SES-8).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import attrs
import trio

from concorde_trio._sansio.model_events import ToolSpec
from concorde_trio.errors import UsageError

TIMEOUT = 120.0
"""Seconds that a call may take unless its tool says otherwise."""

ExecKind = Literal["read", "write", "execute", "network"]


def _string(given: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise UsageError(f"the {attribute.name} of a {type(given).__name__} must be a string, not {value!r:.80}")


def _number(given: object, attribute: attrs.Attribute[int], value: object) -> None:
    if not isinstance(value, int):
        raise UsageError(f"the {attribute.name} of a {type(given).__name__} must be a whole number, not {value!r:.80}")


@attrs.frozen
class ToolResult:
    """What a call gave. ``is_error``: the tool says that it failed. ``path``: the file with all of a cut output."""

    text: str = attrs.field(validator=_string)
    is_error: bool = False
    path: str | None = attrs.field(default=None, validator=attrs.validators.optional(_string))


@attrs.frozen
class Leftover:
    """Work that outlives its call: a process or a thread, its number, and words for a person."""

    what: Literal["process", "thread"] = attrs.field()
    number: int = attrs.field(validator=_number)
    about: str = attrs.field(validator=_string)

    @what.validator
    def _process_or_thread(self, attribute: attrs.Attribute[str], value: object) -> None:
        if value not in ("process", "thread"):
            raise UsageError(f"what a Leftover is must be 'process' or 'thread', not {value!r:.80}")


class LeftWork(Protocol):
    """The record of a leftover, for whoever sees it end."""

    def ended(self, result: str | None = None, /) -> None:
        """It is over; ``result`` is what it gave, which nobody waits for any more (SES-7). A second call does nothing."""
        ...


@attrs.frozen(kw_only=True)
class ToolContext:
    """What a call is made with.

    ``env``: variables for programs it starts (AGENT_SERVER_URL, if there is one). ``outputs``: an absolute folder for
    outputs that are cut; it may not exist yet. ``queue``, ``programs_lock``: for ``processes.open_program`` (REC-6).
    ``left(leftover)``: list work that outlives the call; call ``ended`` on what it gives. ``keep(function)``: run an
    async function beside the session until it returns or the run ends, when it is cancelled; what it raises is logged.
    """

    session: str
    call_id: str
    env: Mapping[str, str]
    outputs: Path
    queue: str
    programs_lock: Path | None
    left: Callable[[Leftover], LeftWork]
    keep: Callable[[Callable[[], Awaitable[None]]], None]


class Tool(Protocol):
    """Something a model may call. Safe to call concurrently, in different sessions at least.

    ``timeout``: seconds a call may take. ``concurrent``: whether neighbours in a reply may run at the same time as it.
    ``kind``: what the default classification says of its calls (SES-18).
    """

    @property
    def spec(self) -> ToolSpec:
        """What a model is told of it."""
        ...

    @property
    def timeout(self) -> float:
        """Seconds."""
        ...

    @property
    def concurrent(self) -> bool:
        """Whether it may overlap with its neighbours."""
        ...

    @property
    def kind(self) -> ExecKind:
        """read, write, execute or network."""
        ...

    async def call(self, arguments: Mapping[str, Any], context: ToolContext, /) -> ToolResult:
        """Do it. Arguments that do not fit the schema give a result with ``is_error`` that says what was expected.

        What it raises becomes an error result with the exception's words. It is cancelled at its timeout or when a
        person interrupts.
        """
        ...


class ToolSource(Protocol):
    """Something with tools that come and go, such as an MCP server; given to a harness among its tools."""

    async def run(
        self,
        *,
        queue: str = ...,
        programs_lock: Path | None = ...,
        task_status: trio.TaskStatus[None] = ...,
    ) -> None:
        """Keep it alive until cancelled. Started once, in the harness's nursery, before the first session is opened.

        ``task_status.started()`` is called after the first connection or failure. It raises for no trouble of the source:
        its tools are not there then, or say why they fail. ``queue``, ``programs_lock``: as in ToolContext.
        """
        ...

    def tools(self) -> Sequence[Tool]:
        """What there is now; asked before each model request. A tool is the same object as long as its name is."""
        ...
