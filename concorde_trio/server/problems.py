"""Every error that the server answers with is a problem document (RFC 9457), by whose fault it is (SRV-5).

The law: a document says what was expected, what came, and what to do; it never holds a traceback, and no live tag,
not even one that the client sent (TAG-4).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from urllib.parse import quote

import attrs

from concorde_trio.errors import (
    InputConflict,
    InvalidName,
    InvalidSchedule,
    InvalidValue,
    StoreBusy,
    StoreError,
    UnknownId,
    UsageError,
    WrongState,
)

MEDIA_TYPE = "application/problem+json"
SAFE_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
}
"""What every answer of ours carries: it is for this client now, is what its content type says, and no other page's."""

PAGE_HEADERS = {
    **SAFE_HEADERS,
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
}
"""The same for pages: they may use what this server has, and nothing that stands in the page itself."""


SAID = 5
"""Wrong fields that the sentence of a problem tells of; its ``errors`` have all."""


@attrs.frozen(kw_only=True)
class FieldFault:
    """One wrong thing in a request. ``within``: path, query, header or body. ``place``: where in the field, if it is deep."""

    within: str
    field: str
    message: str
    place: str | None = None

    def as_json(self, mask: Callable[[str], str]) -> dict[str, str]:
        """As a document; a body's fields have a pointer, too."""
        found = {"in": self.within, "field": mask(self.field), "message": mask(self.message)}
        if self.within == "body":
            escaped = self.field.replace("~", "~0").replace("/", "~1")
            found["pointer"] = mask(f"#/{quote(escaped)}" if self.field else "#")
        return found


@attrs.frozen(kw_only=True)
class ProblemDocument:
    """What went wrong: an HTTP status, a sentence for a person, where in the request it stands.

    ``errors``: each wrong field. ``headers`` and ``members`` (masked already) are added to the answer and to the document.
    """

    status: int
    detail: str
    place: str | None = None
    errors: Sequence[FieldFault] = ()
    headers: Mapping[str, str] = attrs.field(factory=dict)
    members: Mapping[str, object] = attrs.field(factory=dict)

    def encode(self, mask: Callable[[str], str]) -> tuple[bytes, dict[str, str]]:
        """The body and all headers, every text masked."""
        document: dict[str, object] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": mask(self.detail),
            **self.members,
        }
        if self.place is not None:
            document["place"] = mask(self.place)
        if self.errors:
            document["errors"] = [error.as_json(mask) for error in self.errors]
        body = json.dumps(document).encode() + b"\n"
        return body, {
            "content-type": MEDIA_TYPE,
            "content-length": str(len(body)),
            **SAFE_HEADERS,
            **{name: mask(value) for name, value in self.headers.items()},
        }


class Problem(Exception):
    """Raised in a route to answer with a problem document."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        place: str | None = None,
        errors: Sequence[FieldFault] = (),
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(detail)
        self.document = ProblemDocument(
            status=status, detail=detail, place=place, errors=errors, headers=headers or {}, members=members or {}
        )

    @classmethod
    def of_fields(cls, faults: Sequence[FieldFault]) -> Problem:
        """400, with every wrong field: the first is the ``place``, and the sentence tells of some."""
        said = [fault.message for fault in faults]
        detail = said[0]
        if len(said) > 1:
            more = f"; and {len(said) - SAID} more" if len(said) > SAID else ""
            detail = f"{len(said)} things are wrong: {'; '.join(said[:SAID])}{more}"
        return cls(400, detail, place=faults[0].place or faults[0].field, errors=faults)


def problem_of(error: Exception) -> ProblemDocument | None:
    """The document that answers an exception of this package, None for any other exception."""
    match error:
        case Problem():
            return error.document
        case UnknownId():
            return ProblemDocument(status=404, detail=str(error))
        case WrongState() | InputConflict():
            return ProblemDocument(status=409, detail=str(error))
        case InvalidValue():
            return ProblemDocument(status=400, detail=str(error), place=error.place)
        case InvalidName() | InvalidSchedule():
            return ProblemDocument(status=400, detail=str(error))
        case StoreBusy():
            return ProblemDocument(
                status=503, detail=f"{error}; nothing was changed, try again", headers={"retry-after": "1"}
            )
        case StoreError():
            return ProblemDocument(status=503, detail=f"the store failed: {error}")
        case UsageError():  # not the client's: the store is not open yet, or not any more
            return ProblemDocument(status=503, detail=f"this cannot be done now: {error}")
    return None
