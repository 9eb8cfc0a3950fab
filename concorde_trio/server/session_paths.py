"""Session names in paths: percent-encoded, any name of CLM-7, slashes too.

The law: a segment of a path ends where the client wrote a slash. A server hands paths on decoded, so that ``a%2Fb`` would
be two segments; below ``/sessions/`` they are routed as they were sent, and decoded one by one.
"""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from quart import request

from concorde_trio.records import check_name
from concorde_trio.server.asgi import App, Receive, Scope, Send
from concorde_trio.server.problems import Problem

SESSIONS = "/sessions/"
_AS_SENT = "concorde_trio.path_as_sent"


class RawSessionPaths:
    """ASGI middleware: below ``prefix``/sessions/ the path is what the client sent, not decoded."""

    def __init__(self, app: App, prefix: str) -> None:
        self._app = app
        self._below = prefix.rstrip("/") + SESSIONS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Route by the path as it was sent."""
        if scope["type"] == "http":
            below = str(scope.get("root_path", "")) + self._below
            path = str(scope["path"])
            raw = scope.get("raw_path")
            sent = raw.decode("latin-1") if isinstance(raw, bytes) else ""
            if path.startswith(below) and sent.startswith(below):
                scope = {**scope, "path": sent, _AS_SENT: True}
        await self._app(scope, receive, send)


def segment(text: str) -> str:
    """One segment of such a path, decoded. Problem 400 if it is no UTF-8."""
    if not request.scope.get(_AS_SENT):
        return text  # what came was decoded already
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise Problem(400, f"{text!r:.80} in the path is not UTF-8, percent-encoded", place="path") from None


def session_name(text: str) -> str:
    """The name of a session in such a path. InvalidName for what can be none (CLM-7)."""
    return check_name(segment(text), "session")
