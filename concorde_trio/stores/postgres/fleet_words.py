"""What members of a fleet tell each other by notifications, in words.

The law: a word says where to look. What it says beside that may be believed, and need not have come.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from concorde_trio.stores.postgres.fleet_works import taken_of


def heard_words(heard: Callable[[str, Any], None]) -> Callable[[str | None], None]:
    """Calls ``heard`` with the word of a payload and what it is about; None is a gap."""

    def payload(text: str | None) -> None:
        if text is None:
            heard("gap", None)
            return
        word, _, rest = text.partition(" ")
        if word == "taken":
            for taken in taken_of(json.loads(rest)):
                heard(word, taken)
        else:
            heard(word, json.loads(rest) if rest else None)

    return payload
