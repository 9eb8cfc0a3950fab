"""Answers of the built-in routes: JSON documents and problem documents, masked, in pages of bounded size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import trio
from quart import Response

from concorde_trio.server.problems import SAFE_HEADERS, ProblemDocument

PAGE_BYTES = 4_000_000
"""A page ends before its limit when its documents are larger than this together; one document always fits."""

T = TypeVar("T")


def answer(document: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """``document``, masked already, as JSON."""
    return _response(_encode(document), status, {"content-type": "application/json", **(headers or {})})


def answer_problem(problem: ProblemDocument, mask: Callable[[str], str]) -> Response:
    """A problem document, masked here."""
    body, headers = problem.encode(mask)
    return _response(body, problem.status, headers)


async def page(
    name: str, items: Sequence[T], limit: int, document: Callable[[T], Any], cursor: Callable[[T], Any]
) -> dict[str, Any]:
    """``{name: documents, "next": the cursor of the page after this one, null when this is the last}``.

    ``items``: at most ``limit``; there may be more only if there are just as many.
    """
    documents: list[Any] = []
    size = 0
    for item in items:
        shown = document(item)
        size += len(_encode(shown))
        if documents and size > PAGE_BYTES:
            break
        documents.append(shown)
        await trio.lowlevel.checkpoint()  # Large documents take a while each, and others want to be answered.
    last = len(documents) == len(items) < limit
    return {name: documents, "next": None if last or not items else cursor(items[len(documents) - 1])}


def _encode(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _response(body: bytes, status: int, headers: Mapping[str, str]) -> Response:
    return Response(body, status=status, headers={**SAFE_HEADERS, **headers})
