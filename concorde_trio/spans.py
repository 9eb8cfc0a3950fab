"""Where spans are opened and closed, for whoever traces; nothing happens here unless somebody does.

The law: a tracer is told and decides nothing. Whatever it raises is logged once and ends the tracing, never a run. Work for which no
span is wanted costs one comparison. Spans get ids, names and states, and no prompt, payload, result or error in words.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from concorde_trio.events import Event

logger = logging.getLogger("concorde_trio.spans")


class Span(Protocol):
    """What was opened for one piece of work, and is ended once."""

    def heard(self, event: Any) -> None:
        """Something of a model's answer came."""
        ...

    def end(self, failure: str | None) -> None:
        """It is over. ``failure``: the state or the kind of error, of a few; None if it went well."""
        ...


class Tracer(Protocol):
    """Who makes spans. Each of the ``open`` methods is called in the task that does the work, and makes its span the current one."""

    def emitted(self, signal_id: str) -> None:
        """A signal is emitted, in the task that emits it."""
        ...

    def told(self, event: Event) -> None:
        """A worker's or a session's event: signals and turns begin and end by theirs."""
        ...

    def open_run(self, run_id: str, signal_id: str, session: str, kind: str) -> Span:
        """A runtime is called."""
        ...

    def open_request(self, session: str, purpose: str, model: object) -> Span:
        """A model is asked."""
        ...

    def open_call(self, session: str, call_id: str, tool: str) -> Span:
        """A tool is called."""
        ...


class _Nothing:
    """The span of work that nobody traces."""

    def heard(self, event: Any) -> None:
        """Nothing."""

    def end(self, failure: str | None) -> None:
        """Nothing."""


NOTHING = _Nothing()
_tracer: Tracer | None = None


def trace_by(tracer: Tracer | None) -> None:
    """Everything in this process is traced by this from now on, or by nobody."""
    global _tracer
    _tracer = tracer


def tracing() -> bool:
    """Whether somebody traces."""
    return _tracer is not None


def tracer() -> Tracer | None:
    """Who traces, if anybody does."""
    return _tracer


def emitted(signal_id: str) -> None:
    """A signal is emitted now."""
    if _tracer is not None:
        _safely(lambda tracer: tracer.emitted(signal_id))


def told(events: Iterable[Event]) -> None:
    """Events that are true."""
    if _tracer is not None:
        for event in events:
            _safely(lambda tracer, event=event: tracer.told(event))  # type: ignore[misc]


def opened(open_span: Callable[[Tracer], Span]) -> Span:
    """A span, or none of anybody's."""
    if _tracer is None:
        return NOTHING
    span: Span | None = _safely(open_span)
    return NOTHING if span is None else _Safe(span)


class _Safe:
    """A span that cannot fail the work that it is of."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def heard(self, event: Any) -> None:
        _safely(lambda _: self._span.heard(event))

    def end(self, failure: str | None) -> None:
        try:
            self._span.end(failure)
        except Exception:
            logger.exception("a span could not be ended")


def _safely(act: Callable[[Tracer], Any]) -> Any:
    found = _tracer
    if found is None:
        return None
    try:
        return act(found)
    except Exception:
        logger.exception("the tracer failed; nothing is traced from now on")
        trace_by(None)
        return None
