"""Keeps the keys that an MCP server was given out of every text about it.

The law: what stands in a server's environment, headers or URL is replaced before a text leaves its connection, in the
log records of the libraries underneath too. Results that a tool gives as good are not touched.
"""

from __future__ import annotations

import contextvars
import logging
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit, urlunsplit

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
_LIBRARIES = ("httpx2", "mcp.client.streamable_http", "mcp.client.session", "mcp.shared.jsonrpc_dispatcher")


class Mask:
    """Replaces each of the values by ``[NAME]``. Values under 6 characters are kept, unless their name says secret."""

    def __init__(self, values: Mapping[str, str]) -> None:
        known: dict[str, str] = {}
        for name, value in values.items():
            for part in (value, *(piece for piece in value.split() if len(piece) >= 8)):  # "Bearer KEY": KEY alone too
                if len(part) >= 6 or (part and SECRET_NAME.search(name)):
                    known.setdefault(part, f"[{name}]")
        self._known = known
        longest_first = sorted(known, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if known else None

    def __call__(self, text: str) -> str:
        """The text without them."""
        return text if self._pattern is None else self._pattern.sub(lambda found: self._known[found[0]], text)


def url_secrets(url: str) -> dict[str, str]:
    """What may be a key in a URL: user, password, and the values of its query."""
    parts = urlsplit(url)
    found = {"user": parts.username or "", "password": parts.password or ""}
    return {**found, **dict(parse_qsl(parts.query))}


def shown_url(url: str) -> str:
    """The URL without user, password and query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


_current: contextvars.ContextVar[Mask | None] = contextvars.ContextVar("concorde_trio_mcp_mask", default=None)


class _Masking(logging.Filter):
    """Rewrites what a library logs in a task of ours; others' records pass as they are."""

    def filter(self, record: logging.LogRecord) -> bool:
        mask = _current.get()
        if mask is not None:
            record.msg, record.args = mask(record.getMessage()), ()
            if record.exc_info:
                record.exc_text = mask(logging.Formatter().formatException(record.exc_info))
                record.exc_info = None
        return True


_filter = _Masking()


def mask_logs(mask: Mask) -> None:
    """From here on, in this task and those it starts: the libraries' log records are masked."""
    _current.set(mask)
    for name in _LIBRARIES:
        logging.getLogger(name).addFilter(_filter)  # adding it again does nothing
