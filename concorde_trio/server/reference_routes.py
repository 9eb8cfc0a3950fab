"""``/openapi.json`` and ``/reference``: what this server can be asked, for programs and for people (SRV-5)."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from quart import Blueprint, Response, current_app

from concorde_trio.server.answers import answer
from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.declarations import Answer, Operation, Scope
from concorde_trio.server.openapi import openapi_document
from concorde_trio.server.problems import PAGE_HEADERS
from concorde_trio.server.reference import reference_page

_TAG = "Reference"

DOCUMENT = Operation(
    "GET",
    "/openapi.json",
    "get_openapi",
    "This document.",
    tag=_TAG,
    scope=Scope.AGENT,
    answers=(Answer(200, "The OpenAPI 3.1 document.", {"type": "object"}),),
)
PAGE = Operation(
    "GET",
    "/reference",
    "get_reference",
    "The same as a page.",
    tag=_TAG,
    scope=Scope.AGENT,
    answers=(Answer(200, "The page.", media_type="text/html"),),
)
STYLE = Operation(
    "GET",
    "/reference/page.css",
    "get_reference_style",
    "The style of the page.",
    tag=_TAG,
    scope=Scope.AGENT,
    answers=(Answer(200, "The style sheet.", media_type="text/css"),),
)


def reference_routes() -> Blueprint:
    """The document, the page, and its style sheet."""
    routes = Blueprint("reference", __name__)
    style = (files("concorde_trio.server") / "pages" / "reference.css").read_text("utf-8")
    made: list[dict[str, Any]] = []

    def document() -> dict[str, Any]:
        if not made:  # not before all routes are there
            made.append(openapi_document(current_app))
        return made[0]

    @serve(routes, DOCUMENT)
    async def openapi(asked: Asked) -> Response:
        """The document, made once."""
        return answer(document())

    @serve(routes, PAGE)
    async def reference(asked: Asked) -> Response:
        """The page."""
        page = reference_page(document())
        return Response(page, content_type="text/html; charset=utf-8", headers=PAGE_HEADERS)

    @serve(routes, STYLE)
    async def page_style(asked: Asked) -> Response:
        """Its style sheet."""
        return Response(style, content_type="text/css; charset=utf-8", headers=PAGE_HEADERS)

    return routes
