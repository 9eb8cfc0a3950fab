"""Waiting for a signal to settle, whoever works on it, over a stop and a start of the worker if need be."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from concorde_trio.cli.show import STYLES, coloured, document, note, say, visible, visible_lines
from concorde_trio.cli.sources import is_served, open_source

if TYPE_CHECKING:
    from rich.status import Status

    from concorde_trio.signals.documents import Document

FIRST, LONGEST = 0.05, 0.5
"""Seconds between two looks: short for what is quick, and never more than this."""
PATIENCE = 1.0
"""Seconds after which a person is told what is waited for."""


def wait_settled(path: Path, direct: bool, signal_id: str, *, as_json: bool) -> int:
    """Wait until a signal is done or failed, print how it ended, and give the exit status: 1 if it failed."""
    with _progress() as tell:
        pause, since = FIRST, time.monotonic()
        while True:
            signal = open_source(path, direct=direct).signal(signal_id)
            if signal["state"] in ("done", "failed"):
                break
            if time.monotonic() - since >= PATIENCE:
                tell(_standing(signal, served=is_served(path)))
            time.sleep(pause)
            pause = min(pause * 1.3, LONGEST)
    if as_json:
        document(signal)
    else:
        _show(signal)
    return 0 if signal["state"] == "done" else 1


def _standing(signal: Document, *, served: bool) -> str:
    if not served:
        return f"{signal['state']}; no worker serves this queue now, waiting for one"
    ended = sum(run["state"] not in ("pending", "running") for run in signal["runs"])
    runs = f", {ended} of {len(signal['runs'])} runs ended" if signal["runs"] else ""
    return f"{signal['state']}{runs}"


def _show(signal: Document) -> None:
    for run in signal["runs"]:
        if run["text"] is not None:
            say(visible_lines(run["text"]))
    error = f": {visible(signal['error'])}" if signal["error"] else ""
    say(coloured(f"{signal['state']}{error}", STYLES[signal["state"]]))


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What to tell a waiting person with: a spinner on a terminal, else a line on stderr when it changes."""
    if not sys.stderr.isatty():
        told: list[str] = []

        def tell(text: str) -> None:
            if told[-1:] != [text]:
                told.append(text)
                note(text)

        yield tell
        return
    with ExitStack() as stack:
        spinner: list[Status] = []

        def spin(text: str) -> None:
            # Started late, since most waits are short and Rich takes a tenth of a second to import.
            from rich.console import Console
            from rich.text import Text

            if not spinner:
                console = Console(stderr=True, markup=False, highlight=False, emoji=False)
                spinner.append(stack.enter_context(console.status(Text(visible(text)))))
            spinner[0].update(Text(visible(text)))

        yield spin
