"""The page of routes: what the agent server's OpenAPI document says, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from concorde_trio import FunctionRuntime, Gateway, RunPrompt
from concorde_trio.server.openapi import openapi_document

INTRO = """\
What `concorde-trio openapi` writes and `GET /openapi.json` answers, for people. What goes for all of them, cursors, tokens, errors, is in
[the agent server](../agent-server.md); what the answers have in them is in [documents](documents.md).
"""


async def _nothing(prompt: RunPrompt) -> str:
    """A gateway needs a runtime; this one is never run."""
    return ""


def routes() -> str:
    """The page."""
    found = openapi_document(Gateway(store="memory:", runtime=FunctionRuntime(_nothing)).app)
    lines = ["# Routes", INTRO]
    for tag in found["tags"]:
        lines.append(f"## {tag['name']}")
        for path, methods in found["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    lines += _route(method, path, operation)
    return "\n\n".join(lines) + "\n"


def _route(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    who = [scope for each in operation.get("security", []) for scope in each]
    scope = f"For {' or '.join(f'{each}s' for each in dict.fromkeys(who))}." if who else "For anybody."
    yield f"### `{method.upper()} {path}` {{ #{operation['operationId']} }}"
    about = _plain(operation.get("description") or operation["summary"])
    yield f"{about if about.endswith('.') else f'{about}.'} {scope}"
    parameters = operation.get("parameters", [])
    if parameters:
        rows = [f"| `{each['name']}` | {each['in']} | {_plain(each.get('description', ''))} |" for each in parameters]
        yield "\n".join(["| parameter | in | |", "| --- | --- | --- |", *rows])
    answers = [f"| {status} | {_plain(answer['description'])} |" for status, answer in operation["responses"].items()]
    yield "\n".join(["| answer | |", "| --- | --- |", *answers])


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
