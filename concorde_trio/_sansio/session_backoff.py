"""How long a session waits before it asks a model again, and whether it does (SES-11)."""

from __future__ import annotations

import attrs

from concorde_trio._sansio.session_requests import RETRIED
from concorde_trio._sansio.session_terms import RequestFailure, SessionSettings


@attrs.frozen
class Backoff:
    """A wait for the model. ``until`` and ``since`` are on the session's clock; ``asked``: it is the provider's own time."""

    since: float
    until: float
    asked: bool
    reason: str


def may_pass(failure: RequestFailure) -> bool:
    """Whether the same request may succeed later."""
    return failure.connection or failure.status in RETRIED


def pause(failure: RequestFailure, tries: int, settings: SessionSettings, jitter: float) -> float:
    """Seconds to wait after try number ``tries`` (from 1): Retry-After exactly, else exponentially with jitter and a cap.

    ``jitter``: a number from 0 to 1; the wait is between half of what the exponent gives and all of it.
    """
    if failure.retry_after is not None:
        return failure.retry_after
    longest = min(settings.backoff_cap, settings.backoff * 2.0 ** min(tries - 1, 60))
    return longest * (0.5 + jitter / 2)
