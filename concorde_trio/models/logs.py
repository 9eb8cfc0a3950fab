"""What HTTP libraries log of a model request, without its keys.

The law: while a request is made its secrets are scrubbed from those libraries' records, for they log whole addresses, with
a password and a query. Other requests' records pass as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from concorde_trio.models.keys import Secrets

_LIBRARIES = {"httpx2", "httpcore2", "httpx", "httpcore", "openai", "anthropic"}
_current: ContextVar[Secrets | None] = ContextVar("concorde_trio_model_secrets", default=None)


class _Scrubbing(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        secrets = _current.get()
        if secrets is not None:
            record.msg, record.args = secrets.scrub(record.getMessage()), ()
        return True


_filter = _Scrubbing()


@contextmanager
def scrubbed_logs(secrets: Secrets) -> Iterator[None]:
    """Until the block is left, in this task and those it starts."""
    # A filter hears its own logger alone, not those below it; they are made as the libraries are imported.
    for name in [each for each in logging.root.manager.loggerDict if each.partition(".")[0] in _LIBRARIES]:
        logging.getLogger(name).addFilter(_filter)  # adding it again does nothing
    before = _current.set(secrets)
    try:
        yield
    finally:
        _current.reset(before)
