"""``openapi``: the document of the agent server's routes, for tools that make clients of it (SRV-5)."""

from __future__ import annotations

import json
from pathlib import Path

import click

from concorde_trio.cli.show import document, say, visible


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
def openapi(file: Path | None) -> None:
    """Print the OpenAPI document of the agent server.

    Or write it into FILE. A running server has the same at /openapi.json, and
    a page to read at /reference.

    \b
    Examples:
      concorde-trio openapi > openapi.json
      concorde-trio openapi docs/openapi.json
    """
    # Imported here: the web framework takes a while, and no other command of these needs it.
    from concorde_trio.gateway import Gateway
    from concorde_trio.runtimes.function import FunctionRuntime
    from concorde_trio.server.openapi import openapi_document

    gateway = Gateway(store="memory:", runtime=FunctionRuntime(_nothing))
    found = openapi_document(gateway.app)
    if file is None:
        document(found)
        return
    file.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")
    say(visible(f"written to {file}: {len(found['paths'])} paths"))


async def _nothing(prompt: object) -> None:
    """A gateway needs a runtime; this one is never run."""
