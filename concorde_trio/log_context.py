"""Which run, signal and session a line of the log is about, for whoever reads it by machine.

The law: it is known where the line is written, without being said there: each run, handler, session and request notes once whom
its task and all that it starts work for. Nothing is read from a store, and nothing here ever fails a line.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

import attrs

FIELDS = ("run_id", "signal_id", "session")


@attrs.frozen
class Subject:
    """Whom a task works for; None where that is not known."""

    run_id: str | None = None
    signal_id: str | None = None
    session: str | None = None


NOBODY = Subject()
_subject: ContextVar[Subject] = ContextVar("concorde_trio_subject", default=NOBODY)
_runs: dict[str, Subject] = {}
"""By session: its run in flight, for the session's own loop, which outlasts runs."""


def note_run(run_id: str, signal_id: str, session: str) -> None:
    """From now on this task, and what it starts, works for this run; and so does its session's loop until ``forget_run``."""
    subject = Subject(run_id, signal_id, session)
    _subject.set(subject)
    _runs[session] = subject


def forget_run(run_id: str, session: str) -> None:
    """The run has ended."""
    if session in _runs and _runs[session].run_id == run_id:
        del _runs[session]


def note_signal(signal_id: str) -> None:
    """From now on this task works for this signal: its handler, or its post phase."""
    _subject.set(Subject(signal_id=signal_id))


def note_session(session: str) -> None:
    """From now on this task works for this session, whatever run it has."""
    _subject.set(Subject(session=session))


def note_request(run_id: str, signal_id: str, session: str) -> None:
    """From now on this task answers a request that came from this run."""
    _subject.set(Subject(run_id, signal_id, session))


def subject() -> Subject:
    """Whom the current task works for; NOBODY if that is not known."""
    found = _subject.get()
    if found.run_id is None and found.session is not None:
        return _runs.get(found.session, found)
    return found


class RunLogFilter(logging.Filter):
    """Gives every record ``run_id``, ``signal_id`` and ``session``, None where there is none: add it to a handler.

    ``handler.addFilter(RunLogFilter())``; then a format may say ``%(run_id)s``. What a record says itself (``extra=``) stays.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Note it; every record passes."""
        about = subject()
        for name in FIELDS:
            if not hasattr(record, name):
                setattr(record, name, getattr(about, name))
        return True


class JsonLogFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, run_id, signal_id, session, and what a record has beside.

    ``mask``: applied to every text, ``worker.mask`` to hide live tags (TAG-4). Under ``exception`` there is the traceback.
    """

    def __init__(self, *, mask: Callable[[str], str] = str) -> None:
        super().__init__()
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        about = subject()
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: getattr(record, name, getattr(about, name)) for name in FIELDS},
        }
        for name, value in record.__dict__.items():
            if name not in _OWN and name not in line:
                line[name] = value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps({name: self._shown(value) for name, value in line.items()}, ensure_ascii=False, default=str)

    def _shown(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        # A lone surrogate, from a path that is no text, cannot be written anywhere.
        return self._mask(str(value)).encode("utf-8", "replace").decode()


_OWN = {*logging.LogRecord("", 0, "", 0, "", (), None).__dict__, "message", "asctime", "taskName"}
"""What every record has, which is said in other words or of no use."""
