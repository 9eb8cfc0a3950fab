"""What an input may be, checked before anything is asked of a session: the same from code, server and command line (SES-10)."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence
from typing import Any

from concorde_trio._sansio.input_queue import Receipt, conflict
from concorde_trio._sansio.json_values import encode
from concorde_trio.errors import InvalidName, UsageError
from concorde_trio.messages import Input
from concorde_trio.records import TEXT_LIMIT, check_name, storable_text
from concorde_trio.sessions.store import StoredInput

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What models take."""

RUNS_OWN = "prompt_"
"""How the ids of inputs begin that are the prompts of runs; another under such an id would be in a run's way."""


def new_input(
    text: str, *, at: float, id: str | None = None, sender: str | None = None, attachments: Sequence[Any] = ()
) -> Input:
    """A checked input, with a new id unless one is given. ``at``: wall-clock seconds.

    InvalidName for the id or sender, InvalidValue for an attachment that is no JSON, UsageError for the text and for an
    attachment that is no image: in a transcript it would fail every later request.
    """
    if not isinstance(text, str) or (not text.strip() and not attachments):
        raise UsageError(f"an input needs a text that says something, not {text!r:.80}")
    if len(text) > TEXT_LIMIT or storable_text(text) != text:
        raise UsageError(
            f"an input has at most {TEXT_LIMIT:,} characters, without NUL or lone surrogates; this one has {len(text):,}"
        )
    if id is not None:
        check_name(id, "input id")
        if id.startswith(RUNS_OWN):
            raise InvalidName(f"an input id must not begin with {RUNS_OWN!r}, as those of runs' prompts do: {id!r:.80}")
    if sender is not None:
        check_name(sender, "sender")
    for number, each in enumerate(attachments):
        encode(each, what=f"attachment {number}", max_bytes=TEXT_LIMIT)
        _check_attachment(each, number)
    return Input(id=id or uuid.uuid4().hex, text=text, at=at, sender=sender, attachments=tuple(attachments))


def first_receipt(known: StoredInput, session: str, given: Input) -> Receipt:
    """The receipt of an input that is in the ledger again (SES-10a); InputConflict if it was another one."""
    first = known.input
    if known.session != session:
        raise conflict(given.id, f"in session {known.session!r:.80}, and this is session {session!r:.80}")
    if (first.text, first.attachments) != (given.text, given.attachments):
        raise conflict(given.id)
    return Receipt(given.id, "accepted")


def _check_attachment(each: Any, number: int) -> None:
    """What a transcript holds is sent with every request from now on, so what no model client knows must not get in."""
    image = isinstance(each, dict) and each.get("type") == "image"
    if not image or not all(isinstance(each.get(key), str) and each[key] for key in ("media_type", "data")):
        raise UsageError(
            f'attachment {number} must be {{"type": "image", "media_type": "image/png", "data": BASE64}}, not {each!r:.80}; '
            "put other files where a tool can read them, and name them in the text"
        )
    if each["media_type"] not in IMAGES:
        raise UsageError(
            f"attachment {number} is {each['media_type']!r:.80}; models take {', '.join(IMAGES)}: convert it first"
        )
    try:
        base64.b64decode(each["data"], validate=True)
    except ValueError:
        raise UsageError(f"the data of attachment {number} is no base64 text") from None
