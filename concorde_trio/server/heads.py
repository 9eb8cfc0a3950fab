"""The head of a request: what no app should see is answered here (SRV-5).

The law: an app gets a path that starts with a slash, a Host that is a host, HTTP/1.0 or 1.1, a head and an announced body
within their bounds. Frameworks take these for granted, and fail where they don't hold.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import attrs

from concorde_trio.server.asgi import Scope
from concorde_trio.server.problems import ProblemDocument

_LABEL = rb"[A-Za-z0-9_-]{1,63}"
_HOST = re.compile(rb"(\[[0-9A-Fa-f:.]{2,45}\]|(" + _LABEL + rb"(\." + _LABEL + rb")*\.?)?)(:[0-9]{0,5})?\Z")


@attrs.frozen(kw_only=True)
class RequestLimits:
    """Bounds of one request. Sizes are bytes, times seconds.

    ``max_body``: of its body, however it comes. ``max_head``: of its target and headers. ``drain_time`` and
    ``drain_size``: what is read of a body that the answer did not wait for. ``grace``: for an answer once the server closes.
    """

    max_body: int = 2_000_000
    max_head: int = 32 * 1024
    drain_time: float = 5.0
    drain_size: int = 8_000_000
    grace: float = 0.4


def check_head(scope: Scope, limits: RequestLimits) -> ProblemDocument | None:
    """Make a request target in absolute form a path; a document for a head that no app should see."""
    size = len(scope["raw_path"]) + len(scope["query_string"])
    length = 0
    if {name for name, _ in scope["headers"]} >= {b"content-length", b"transfer-encoding"}:
        # Whoever stands between may take its end to be elsewhere, and what follows for the next request.
        return ProblemDocument(
            status=400,
            detail="the request has both a Content-Length and a Transfer-Encoding; send one",
            headers={"connection": "close"},
        )
    for name, value in scope["headers"]:
        size += len(name) + len(value) + 4
        if name == b"content-length" and value.isdigit():
            length = int(value[:20])
        elif name == b"host" and not _HOST.match(value):
            return ProblemDocument(status=400, detail="the Host header is no host name with an optional port")
    if size > limits.max_head:
        return ProblemDocument(
            status=431, detail=f"the head of the request has {size} bytes, at most {limits.max_head} are allowed"
        )
    if scope["http_version"] not in ("1.0", "1.1"):
        return ProblemDocument(status=505, detail="this server speaks HTTP/1.1")
    raw = scope["raw_path"]
    if raw[:7].lower() == b"http://" or raw[:8].lower() == b"https://":
        raw = b"/" + raw.split(b"//", 1)[1].partition(b"/")[2]
        scope["raw_path"], scope["path"] = raw, unquote(raw.decode("ascii"))
    if raw[:1] != b"/":
        return ProblemDocument(status=400, detail="the request target must be a path that starts with a slash")
    if length > limits.max_body:
        return too_large(limits)
    return None


def too_large(limits: RequestLimits) -> ProblemDocument:
    """The answer to a body that is larger than allowed."""
    return ProblemDocument(status=413, detail=f"the body is larger than the {limits.max_body} bytes that are allowed")
