"""The server itself: who asks, whether it is ready, and what was wrong with a request (SRV-5, SRV-7)."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class CurrentRun(TypedDict):
    """The run that a request came from (TAG-3)."""

    id: str
    signal_id: str
    session: str
    context: Any


class Health(TypedDict):
    """The server answers."""

    status: Literal["ok"]


class Readiness(TypedDict):
    """The worker takes signals and the store answers. ``last_error``: what last went wrong with the queue, or null."""

    status: Literal["ready"]
    worker: str
    store: str
    last_error: str | None


FieldError = TypedDict(
    "FieldError",
    {
        "in": Literal["path", "query", "header", "body"],
        "field": str,
        "message": str,
        "pointer": NotRequired[str],
    },
)
"""One wrong thing in a request: where it stands, and what is wrong; ``pointer``: its place in a body, as in RFC 9457."""


class ProblemDetails(TypedDict):
    """What went wrong (RFC 9457). ``place``: where in the request the first wrong thing stands; ``errors``: all of them.

    ``worker``, ``store`` and ``last_error`` say why a server is not ready.
    """

    type: str
    title: str
    status: int
    detail: str
    place: NotRequired[str]
    errors: NotRequired[list[FieldError]]
    worker: NotRequired[str]
    store: NotRequired[str]
    last_error: NotRequired[str | None]
