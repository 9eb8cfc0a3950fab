"""The OpenAPI document, held against the app that it is made of, and the page that is made of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from quart_trio import QuartTrio

from concorde_trio import FunctionRuntime, Gateway
from concorde_trio.server.closing import NAME
from concorde_trio.server.declarations import operation_of
from concorde_trio.server.openapi import openapi_document
from concorde_trio.server.reference import reference_page

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


async def agent(prompt: object) -> None:
    """A runtime that is never asked."""


@pytest.fixture(scope="module")
def app() -> QuartTrio:
    """The app of a gateway that is not started."""
    return Gateway(store="memory:", runtime=FunctionRuntime(agent)).app


@pytest.fixture(scope="module")
def document(app: QuartTrio) -> dict[str, Any]:
    """Its document."""
    return openapi_document(app)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and description of every operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def texts(value: object, key: str) -> Iterator[str]:
    """Every value of this key, at any depth."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name == key:
                yield each
            else:
                yield from texts(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from texts(each, key)


def test_every_route_of_the_server_is_in_the_document_and_nothing_else_is(
    app: QuartTrio, document: dict[str, Any]
) -> None:
    """SRV-5: by the app's own rules; Quart answers HEAD and OPTIONS of itself."""
    there = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method)
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith(f"{NAME}.")
        for method in (rule.methods or set()) & {*METHODS}
    }
    assert {(path, method) for path, method, _ in operations(document)} == there
    assert len(there) > 30


def test_a_route_that_nobody_declared_is_seen(app: QuartTrio) -> None:
    """SRV-5: this test's neighbour would fail for it."""
    other = QuartTrio("other")

    async def page() -> str:
        return ""

    other.add_url_rule("/page", f"{NAME}.page", page)
    assert openapi_document(other)["paths"] == {}
    assert operation_of(page) is None


def test_what_the_document_refers_to_is_in_it(document: dict[str, Any]) -> None:
    """SRV-5: components, fields of paths, names of operations, groups, schemes."""
    assert document["openapi"] == "3.1.0"
    assert {f"#/components/schemas/{name}" for name in document["components"]["schemas"]} >= {*texts(document, "$ref")}
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for path, _, operation in operations(document):
        fields = [each["name"] for each in operation.get("parameters", []) if each["in"] == "path"]
        assert sorted(fields) == sorted(re.findall(r"{(\w+)}", path)), path
        assert {tag["name"] for tag in document["tags"]} >= {*operation["tags"]}
        assert {*document["components"]["securitySchemes"]} >= {*texts_of(operation["security"])}
    json.dumps(document, allow_nan=False)


def texts_of(options: list[dict[str, Any]]) -> Iterator[str]:
    """The schemes of a security requirement."""
    for option in options:
        yield from option


def test_every_operation_tells_of_its_errors_as_problem_documents(document: dict[str, Any]) -> None:
    """SRV-5: which depends on what it takes and on who may ask."""
    for path, method, operation in operations(document):
        answers = operation["responses"]
        assert {"400", "413", "421", "431"} <= answers.keys(), path
        assert ("401" in answers and "503" in answers) or {"operator": []} not in operation["security"], path
        assert "403" in answers or method == "GET", path
        assert "415" in answers or "requestBody" not in operation, path
        for status, answer in answers.items():
            assert answer["description"].endswith("."), (path, status)
            assert int(status) < 400 or "application/problem+json" in answer["content"], (path, status)


def test_documents_have_no_fields_but_their_own(document: dict[str, Any]) -> None:
    """SRV-5: so that a field that nobody told of is found by who checks an answer."""
    for name, schema in document["components"]["schemas"].items():
        assert schema["additionalProperties"] is False, name
        assert schema.get("description") or name == "FieldError"


def test_below_a_prefix_the_paths_have_it() -> None:
    """SRV-1: the document is of the app as it is."""
    from concorde_trio.server.app import install

    gateway = Gateway(store="memory:", runtime=FunctionRuntime(agent))
    theirs = QuartTrio("theirs")
    install(theirs, gateway.worker, url_prefix="/agents")
    found = openapi_document(theirs)
    assert {*found["paths"]} == {f"/agents{path}" for path in openapi_document(gateway.app)["paths"]}


class Page(HTMLParser):
    """What a page links to, and what it has."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note it."""
        self.tags.append(tag)
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        for name, value in attrs:
            assert value is not None
            assert not name.startswith("on") and name != "style"
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src"):
                self.links.append(value)

    def handle_endtag(self, tag: str) -> None:
        """What was opened last is closed first."""
        assert self.open.pop() == tag


def test_the_reference_page_has_everything_and_needs_nothing_from_elsewhere(document: dict[str, Any]) -> None:
    """SRV-5: it works offline and under the policy: no script, no style, no host in it."""
    page = Page()
    page.feed(reference_page(document))
    assert page.open == []
    assert "script" not in page.tags and "style" not in page.tags and "img" not in page.tags
    assert len(set(page.ids)) == len(page.ids)
    assert {*page.ids} >= {operation["operationId"] for _, _, operation in operations(document)}
    inside = {link.removeprefix("#") for link in page.links if link.startswith("#")}
    assert inside <= {*page.ids} and len(inside) > 50
    assert {link for link in page.links if not link.startswith("#")} == {"reference/page.css", "openapi.json"}


def test_the_reference_page_escapes_what_the_document_says() -> None:
    """SRV-5: whatever it is."""
    hostile = "<script>alert(1)</script>"
    operation = {
        "operationId": "x",
        "tags": ["T"],
        "summary": hostile,
        "security": [],
        "responses": {"200": {"description": hostile}},
    }
    made = reference_page(
        {
            "info": {"title": hostile, "version": hostile, "description": hostile},
            "tags": [{"name": "T"}],
            "paths": {f"/{hostile}": {"get": operation}},
            "components": {"schemas": {}},
        }
    )
    assert "<script" not in made and made.count("&lt;script&gt;") >= 5
