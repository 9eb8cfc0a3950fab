"""What an input may be, checked before anything is asked of a session: the same from code, server and command line (SES-10)."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from concorde_trio._sansio.json_values import encode
from concorde_trio.errors import UsageError
from concorde_trio.messages import Input
from concorde_trio.records import TEXT_LIMIT, check_name, storable_text


def new_input(
    text: str, *, at: float, id: str | None = None, sender: str | None = None, attachments: Sequence[Any] = ()
) -> Input:
    """A checked input, with a new id unless one is given. ``at``: wall-clock seconds.

    InvalidName for the id or sender, InvalidValue for an attachment, UsageError for the text.
    """
    if not isinstance(text, str) or (not text.strip() and not attachments):
        raise UsageError(f"an input needs a text that says something, not {text!r:.80}")
    if len(text) > TEXT_LIMIT or storable_text(text) != text:
        raise UsageError(
            f"an input has at most {TEXT_LIMIT:,} characters, without NUL or lone surrogates; this one has {len(text):,}"
        )
    if id is not None:
        check_name(id, "input id")
    if sender is not None:
        check_name(sender, "sender")
    for number, each in enumerate(attachments):
        encode(each, what=f"attachment {number}", max_bytes=TEXT_LIMIT)
    return Input(id=id or uuid.uuid4().hex, text=text, at=at, sender=sender, attachments=tuple(attachments))
