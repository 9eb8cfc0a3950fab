"""What a Retry-After header means: seconds, or a date; nonsense means nothing (SES-11)."""

from __future__ import annotations

import math
import re
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?", re.ASCII)


def retry_after_seconds(header: object, now: float) -> float | None:
    """Seconds from ``now`` (wall-clock), None if the header says nothing that makes sense: negative, zero, or no time at all."""
    if header is None:
        return None
    text = str(header).strip()  # a client of a user's own may give a number
    if _SECONDS.fullmatch(text):
        wait = float(text)
    else:
        try:
            wait = parsedate_to_datetime(text).timestamp() - now
        except (TypeError, ValueError, OverflowError, OSError):
            return None
    return wait if 0 < wait < math.inf else None
