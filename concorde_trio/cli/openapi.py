"""``openapi``: the document of the agent server's routes, for tools that make clients of it (SRV-5)."""

from __future__ import annotations

import json
from pathlib import Path

import click

from concorde_trio.cli.options import json_option
from concorde_trio.cli.show import document, note, say, visible


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@json_option
def openapi(file: Path | None, as_json: bool) -> None:
    """List the routes of the agent server, or write their OpenAPI document.

    With FILE the document goes there, with --json to the screen. A running
    server has the same at /openapi.json, and a page to read at /reference.

    \b
    Examples:
      concorde-trio openapi
      concorde-trio openapi docs/openapi.json
      concorde-trio openapi --json > openapi.json
    """
    # Imported here: the web framework takes a while, and no other command of these needs it.
    from concorde_trio.gateway import Gateway
    from concorde_trio.runtimes.function import FunctionRuntime
    from concorde_trio.server.openapi import openapi_document

    gateway = Gateway(store="memory:", runtime=FunctionRuntime(_nothing))
    found = openapi_document(gateway.app)
    if as_json:
        document(found)
    if file is not None:
        file.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")
        note(f"written to {file}: {len(found['paths'])} paths")
    elif not as_json:
        for path, methods in found["paths"].items():
            for method, operation in methods.items():
                say(visible(f"{method.upper():7}{path}  {operation['summary']}"))


async def _nothing(prompt: object) -> None:
    """A gateway needs a runtime; this one is never run."""
