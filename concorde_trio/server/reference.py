"""The reference as a page: the OpenAPI document, made into HTML by the server (SRV-5).

The law: the page needs nothing but its own style sheet, from this server, and runs no script.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any


def reference_page(document: Mapping[str, Any]) -> str:
    """The page of a document that ``openapi_document`` made. Its style sheet is ``reference/page.css``."""
    return "\n".join(_page(document))


def _page(document: Mapping[str, Any]) -> Iterator[str]:
    info = document["info"]
    operations = [
        (path, method.upper(), operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    groups = {tag["name"]: [each for each in operations if tag["name"] in each[2]["tags"]] for tag in document["tags"]}
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="color-scheme" content="light dark">'
    yield f'<title>{escape(info["title"])}: reference</title>\n<link rel="stylesheet" href="reference/page.css">\n</head>'
    yield f"<body>\n<header><h1>{escape(info['title'])}</h1>\n<p>Version {escape(info['version'])}. The same for programs: "
    yield '<a href="openapi.json">openapi.json</a>.</p>'
    yield from (f"<p>{_text(each)}</p>" for each in info["description"].split("\n\n"))
    yield '</header>\n<nav aria-label="Routes">'
    for tag, members in groups.items():
        yield f"<h2>{escape(tag)}</h2>\n<ul>"
        for path, method, operation in members:
            where = escape(operation["operationId"])
            yield f'<li><a href="#{where}"><code>{method} {escape(path)}</code></a> {_text(operation["summary"])}</li>'
        yield "</ul>"
    yield '<h2>Documents</h2>\n<ul class="names">'
    schemas = document["components"]["schemas"]
    yield from (f'<li><a href="#{escape(name)}"><code>{escape(name)}</code></a></li>' for name in schemas)
    yield "</ul>\n</nav>\n<main>"
    for members in groups.values():
        for path, method, operation in members:
            yield from _operation(path, method, operation)
    for name, schema in schemas.items():
        yield from _document(name, schema)
    yield "</main>\n</body>\n</html>\n"


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f'<section id="{escape(operation["operationId"])}">\n<h2><code>{method} {escape(path)}</code></h2>'
    yield f"<p>{_text(operation.get('description', operation['summary'] + '.'))}</p>"
    needs = sorted({scheme for option in operation["security"] for scheme in option})
    optional = {} in operation["security"]
    if needs:
        yield f"<p>Token: {escape(', '.join(needs))}{' (where one is set)' if optional else ''}.</p>"
    parameters = operation.get("parameters", [])
    if parameters:
        yield "<h3>Takes</h3>"
        yield from _table(
            ("Name", "In", "Values", "About"),
            (
                (_code(each["name"]), escape(each["in"]), _values(each), _text(each["description"]))
                for each in parameters
            ),
        )
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]
        yield f"<h3>Body</h3>\n<p>{', '.join(_code(each) for each in content)}</p>"
        schema = next(iter(content.values()))["schema"]
        required = schema.get("required", ())
        yield from _table(
            ("Member", "Values", "About"),
            (
                (_code(name), _values({"schema": each, "required": name in required}), _text(each["description"]))
                for name, each in schema["properties"].items()
            ),
        )
    yield "<h3>Answers</h3>"
    yield from _table(
        ("Status", "Content", "About"),
        (
            (escape(status), _content(answer.get("content", {})), _text(answer["description"]))
            for status, answer in operation["responses"].items()
        ),
    )
    yield "</section>"


def _document(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f'<section id="{escape(name)}">\n<h2><code>{escape(name)}</code></h2>'
    if "description" in schema:
        yield f"<p>{_text(schema['description'])}</p>"
    required = schema.get("required", ())
    yield from _table(
        ("Field", "Value"),
        (
            (_code(field), _shape(each) + ("" if field in required else ", may be left out"))
            for field, each in schema.get("properties", {}).items()
        ),
    )
    yield "</section>"


def _table(heads: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield '<div class="wide"><table>'
    yield "<thead><tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr></thead>\n<tbody>"
    for row in rows:
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>"
    yield "</tbody></table></div>"


def _content(content: Mapping[str, Any]) -> str:
    return (
        "<br>".join(f"{_code(media_type)} {_shape(each['schema'])}" for media_type, each in content.items())
        or "nothing"
    )


def _values(parameter: Mapping[str, Any]) -> str:
    needed = ", required" if parameter["required"] else ""
    return _shape(parameter["schema"]) + needed


def _shape(schema: Mapping[str, Any]) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}"><code>{name}</code></a>'
    if "anyOf" in schema and "type" not in schema:
        return " or ".join(_shape(each) for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(_code(str(each)) for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_shape(schema.get('items', {}))}"
    words = [str(schema.get("type", "any JSON"))]
    if "minimum" in schema:
        words.append(f"{schema['minimum']} to {schema['maximum']}")
    if "maxLength" in schema:
        words.append(f"{schema['minLength']} to {schema['maxLength']} characters")
    if "format" in schema:
        words.append(schema["format"])
    elif "pattern" in schema and "maxLength" not in schema:
        words.append(f"like {schema['pattern']}")
    if "default" in schema:
        words.append(f"default {json.dumps(schema['default'])}")
    return escape(", ".join(words))


def _text(text: str) -> str:
    """Plain text with code between backquotes."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"
