"""Bodies of operators' requests: JSON objects with known members, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from quart import request
from werkzeug.exceptions import HTTPException

from concorde_trio.server.problems import FieldFault, Problem
from concorde_trio.server.strict_json import read_json

MAX_BYTES = 2_000_000
"""What a body may have at least, whatever the app around allows."""


def body_bound(max_payload: int) -> int:
    """How many bytes a body may have in which a payload comes: JSON may write a character in more bytes than it needs."""
    return max(MAX_BYTES, 2 * max_payload)


async def read_object(*members: str, max_bytes: int = MAX_BYTES, strict: bool = True) -> dict[str, Any]:
    """The JSON object in the body, which (if ``strict``) has no members but these. Problem 400, 408, 413 or 415."""
    if request.mimetype != "application/json":
        given = request.mimetype or "nothing"
        raise Problem(
            415,
            f"the content type must be application/json, not {given!r:.80}",
            headers={"accept-post": "application/json"},
        )
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "the body must not be compressed", headers={"accept-encoding": "identity"})
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if charset != "utf-8":
        raise Problem(415, f"JSON is UTF-8, not {charset!r:.80}")
    value = read_json(await _read(max_bytes))
    if not isinstance(value, dict):
        raise Problem(400, f"the body must be a JSON object with {', '.join(members)}", place="body")
    faults = unknown_members(value, members)
    if faults and strict:
        raise Problem.of_fields(faults)
    return value


def unknown_members(value: Iterable[str], known: Sequence[str]) -> list[FieldFault]:
    """What is wrong with names that are not known, at most 20 of them."""
    unknown = islice((name for name in value if name not in known), 20)
    return [
        FieldFault(
            within="body", field=name[:80], message=f"unknown member {name!r:.80}; there are: {', '.join(known)}"
        )
        for name in unknown
    ]


async def read_form(max_bytes: int) -> bytes:
    """The body of a form, as it was sent. Problem 408 or 413."""
    return await _read(max_bytes)


async def read_nothing() -> None:
    """Problem 400 if there is more in the body than white space or an empty object."""
    if (await _read(MAX_BYTES)).strip() not in (b"", b"{}", b"null"):
        raise Problem(400, "this takes no body; leave it empty", place="body")


async def _read(max_bytes: int) -> bytes:
    try:
        body = await request.get_data(cache=False, as_text=False, parse_form_data=False)
    except HTTPException as error:  # too large for the app around, or it has not come in its time
        raise Problem(error.code or 400, str(error.description)) from None
    if len(body) > max_bytes:
        raise Problem(413, f"the body is larger than the {max_bytes} bytes that are allowed")
    return body
