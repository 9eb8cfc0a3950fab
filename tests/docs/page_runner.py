"""Runs pages, each in a process of its own, forked from one that has imported everything once.

``python -m tests.docs.page_runner`` reads lines of JSON, ``[page, folder]``, and answers each with the exit status of
running that page in that folder; what it printed is in ``printed.txt`` there.

A page is one program: its Python blocks, in their order, in one namespace, and between them its files are written and its
shell blocks are run. Ports that it names, 8700 to 8799, are others when it runs: free ones.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import socket
import sys
import traceback
from pathlib import Path

import attrs

from tests.docs.pages import Block, runs
from tests.docs.shell_blocks import Shell

PORT = re.compile(r"\b87\d\d\b")
BEFOREHAND = (
    "concorde_trio.gateway",
    "concorde_trio.cli.entry",
    "concorde_trio.cli.serve",
    "concorde_trio.cli.listing",
    "concorde_trio.cli.top",
    "concorde_trio.cli.sessions",
    "concorde_trio.cli.send",
    "concorde_trio.cli.emit",
    "concorde_trio.cli.locks",
    "concorde_trio.runtimes.in_process",
    "concorde_trio.models.scripted",
    "concorde_trio.stores.sqlite",
    "concorde_trio.client.client",
    "concorde_trio.tools.shell",
    "concorde_trio.tools.files",
    "trio.testing",
    "quart_trio",
)


class Ports:
    """A free port for each that a page names."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}

    def instead(self, block: Block) -> Block:
        """The block with those."""
        return attrs.evolve(block, code=PORT.sub(lambda named: self._free(named[0]), block.code))

    def _free(self, named: str) -> str:
        if named not in self._found:
            with socket.create_server(("127.0.0.1", 0)) as taken:
                self._found[named] = str(taken.getsockname()[1])
        return self._found[named]


def run(page: Path, folder: Path) -> None:
    """Run a page in this process, in that folder."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    shell = Shell(folder)
    names: dict[str, object] = {"__name__": "__main__", "__file__": str(folder / "page.py")}
    ports = Ports()
    for block in map(ports.instead, runs(page)):
        if block.file is not None:
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.code, encoding="utf-8")
        elif block.language == "sh":
            shell.run(block)
        else:
            # Lines before it, so that a traceback names the page's lines.
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), names)  # noqa: S102 - of our own pages


def _child(page: Path, folder: Path) -> None:
    with open(folder / "printed.txt", "w", encoding="utf-8") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    status = 1
    try:
        run(page, folder)
        status = 0
    except SystemExit as error:
        print(error.code, flush=True)
    except BaseException:  # noqa: BLE001 - whatever ended the page is told of in its output
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main() -> None:
    """Answer each line that comes."""
    for name in BEFOREHAND:
        importlib.import_module(name)
    for line in sys.stdin:
        page, folder = json.loads(line)
        if (child := os.fork()) == 0:
            _child(Path(page), Path(folder))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
