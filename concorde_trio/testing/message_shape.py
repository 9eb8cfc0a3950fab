"""Whether messages make a valid transcript (SES-9), for tests of whatever makes them."""

from __future__ import annotations

from collections.abc import Sequence

from concorde_trio._sansio.message_shape import message_shape
from concorde_trio.messages import Message


def check_message_shape(messages: Sequence[Message]) -> None:
    """AssertionError with a sentence if a model could not be sent these messages.

    Each call is answered exactly once, right after its message, in call order, with nothing between; its arguments are the
    JSON text of an object; no result is without a call; seqs rise.
    """
    wrong = message_shape(messages)
    if wrong is not None:
        raise AssertionError(f"SES-9: {wrong}")
