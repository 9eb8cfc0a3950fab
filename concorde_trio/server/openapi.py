"""The OpenAPI 3.1 document of an app's built-in routes (SRV-5).

The law: it is made of the app's own rules and of the declarations that their views were made of, so that it cannot tell of
another server than this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import msgspec
from quart import Quart

from concorde_trio.documents import ProblemDetails
from concorde_trio.server.declarations import Answer, Field, Operation, Scope, operation_of
from concorde_trio.server.problems import MEDIA_TYPE

_REF = "#/components/schemas/{name}"
_PROBLEM = {"$ref": _REF.format(name=ProblemDetails.__name__)}
_SEGMENT = re.compile(r"<(?:[^<>:]*:)?([^<>]+)>")

ABOUT = """Agents ask who they are; operators see and steer the queue.

Errors are problem documents (RFC 9457); `errors` has every wrong field of a request. A parameter that is not in this document, or
comes twice, is refused. `limit` is 1 to 200; pages lead on by `next`, as it is; only `null` says that a page is the last. HEAD is
answered wherever GET is. Times are wall-clock seconds since 1970."""

EVERYWHERE = {
    400: "The request is wrong: what, and where, is in errors.",
    413: "The body is larger than is allowed.",
    421: "The Host header does not name this server.",
    431: "The head of the request is too large.",
}
TAGS = ("Agents", "Signals", "Runs", "Sessions", "Locks", "Schedules", "Events", "Dashboard", "Login", "Reference")
"""The order in which groups are shown; others come after these."""

SCOPES: Mapping[Scope, Mapping[int, str]] = {
    Scope.OPERATOR: {
        401: "The request does not bear the operator token.",
        403: "A page of another site asked for this.",
        503: "The worker has stopped, or the store does not answer; try again.",
    },
    Scope.AGENT: {
        401: "The request does not bear the agent token, which this server needs.",
        403: "A page of another site asked for this.",
    },
    Scope.OPEN: {},
}
CHANGES = {403: "A page of another site asked for this change.", 408: "The body did not come in time."}
BODIES = {415: "The body is of another content type."}

SECURITY: Mapping[Scope, list[dict[str, list[str]]]] = {
    Scope.OPERATOR: [{"operator": []}],
    Scope.AGENT: [{}, {"agent": []}],
    Scope.OPEN: [],
}
SCHEMES = {
    "operator": {
        "type": "http",
        "scheme": "bearer",
        "description": "The operator token, which is given out as a link at the start. A browser that opened the link has a "
        "cookie instead.",
    },
    "agent": {
        "type": "http",
        "scheme": "bearer",
        "description": "The agent token. On loopback agents need none unless one is set.",
    },
}


def openapi_document(app: Quart) -> dict[str, Any]:
    """The document of every built-in route of ``app``, at the paths at which they are."""
    found = sorted(declared_rules(app), key=lambda each: each[0])
    shapes = [answer.shape for _, operation in found for answer in operation.answers if isinstance(answer.shape, type)]
    _, components = msgspec.json.schema_components([*dict.fromkeys(shapes), ProblemDetails], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for rule, operation in found:
        paths.setdefault(_SEGMENT.sub(r"{\1}", rule), {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "concorde_trio agent server",
            "version": _version(),
            "description": ABOUT,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "tags": [{"name": tag} for tag in _tags(operation for _, operation in found)],
        "paths": paths,
        "components": {
            "schemas": {name: _closed(schema) for name, schema in sorted(components.items())},
            "securitySchemes": SCHEMES,
        },
    }


def declared_rules(app: Quart) -> Iterator[tuple[str, Operation]]:
    """Each declared operation of an app, with the rule of its path."""
    for rule in app.url_map.iter_rules():
        operation = operation_of(app.view_functions.get(rule.endpoint))
        if operation is not None:
            yield rule.rule, operation


def refusals_of(operation: Operation) -> dict[int, str]:
    """Every error that an operation can be answered with, and when."""
    found = {**EVERYWHERE, **SCOPES[operation.scope]}
    if operation.changes:
        found |= CHANGES
    if operation.of("body"):
        found |= BODIES
    return dict(sorted((found | dict(operation.refusals)).items()))


def _tags(operations: Iterable[Operation]) -> list[str]:
    there = dict.fromkeys(operation.tag for operation in operations)
    return [*(tag for tag in TAGS if tag in there), *(tag for tag in there if tag not in TAGS)]


def _operation(operation: Operation) -> dict[str, Any]:
    summary, _, rest = operation.about.partition(". ")
    found: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": summary.rstrip("."),
        **({"description": operation.about} if rest else {}),
        "security": SECURITY[operation.scope],
        "responses": _responses(operation),
    }
    parameters = [_parameter(field) for field in operation.fields if field.place != "body"]
    if parameters:
        found["parameters"] = parameters
    members = operation.of("body")
    if members:
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {field.name: _schema(field) for field in members},
            "additionalProperties": False,
            **operation.body_rules,
        }
        required = [field.name for field in members if field.required]
        if required:
            schema["required"] = required
        found["requestBody"] = {
            "required": True,
            "content": {media_type: {"schema": schema} for media_type in operation.body_types},
        }
    return found


def _parameter(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "in": field.place,
        "description": field.about,
        "required": field.required,
        "schema": _schema(field),
    }


def _schema(field: Field) -> dict[str, Any]:
    schema = dict(field.kind.schema)
    if field.nullable:
        schema = {"anyOf": [schema, {"type": "null"}]}
    if field.place == "body":
        schema["description"] = field.about
    if isinstance(field.default, int):
        schema["default"] = field.default
    return schema


def _responses(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for answer in operation.answers:
        response = found.setdefault(str(answer.status), {"description": answer.about})
        response.setdefault("content", {}).update(_content(answer))
        if not response["content"]:
            del response["content"]
        if answer.headers:
            response["headers"] = {
                name: {"description": about, "schema": {"type": "string"}} for name, about in answer.headers.items()
            }
    for status, about in refusals_of(operation).items():
        response = found.setdefault(str(status), {"description": about or HTTPStatus(status).phrase})
        response.setdefault("content", {})[MEDIA_TYPE] = {"schema": _PROBLEM}
    return found


def _content(answer: Answer) -> dict[str, Any]:
    if answer.media_type is None:
        return {}
    if isinstance(answer.shape, type):
        return {answer.media_type: {"schema": {"$ref": _REF.format(name=answer.shape.__name__)}}}
    return {answer.media_type: {"schema": answer.shape or {"type": "string"}}}


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """A component that has no fields but its own."""
    found = {name: value for name, value in schema.items() if name != "title"}
    if "description" in found:
        found["description"] = " ".join(found["description"].replace("``", "`").split())
    return {**found, "additionalProperties": False} if found.get("type") == "object" else found


def _version() -> str:
    try:
        return version("concorde-trio")
    except PackageNotFoundError:
        return "0"
