"""The whole screen of a terminal, and its keys one by one, for as long as it is entered.

The law: the terminal is given back as it was, whatever ends the program short of a kill that cannot be caught, and for as
long as it is suspended.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import trio
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from concorde_trio.cli.top_keys import Keys

FOLLOWS = 0.05
"""Seconds in which what belongs to an escape comes after it."""

DUMB = (None, "", "dumb", "unknown")
"""What TERM says of a terminal that shows lines and no screens."""


def is_interactive() -> bool:
    """Whether somebody sits at a terminal that can show a screen, and types there."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") not in DUMB


class Terminal:
    """Standard input and output, which are terminals."""

    def __init__(self) -> None:
        self._descriptor = sys.stdin.fileno()
        width, height = self.size
        self._console = Console(markup=False, highlight=False, emoji=False, width=width, height=height)
        self._keys = Keys()
        self._live: Live | None = None
        self._modes: list[Any] = []

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines now. A terminal that does not know them is taken for one of 80 by 24."""
        try:
            found = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return 80, 24
        return (found.columns, found.lines) if found.columns and found.lines else (80, 24)

    def __enter__(self) -> Self:
        """Take the screen."""
        self._modes = termios.tcgetattr(self._descriptor)
        self._take()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give it back."""
        self._give_back()

    def show(self, lines: Sequence[Text]) -> None:
        """Draw these lines, which fit."""
        if self._live is not None:
            width, height = self.size
            self._console.size = (width, height)
            self._live.update(Group(*lines), refresh=True)

    def suspend(self) -> None:
        """Stop, as Ctrl-Z does, and go on when the shell says so."""
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()

    async def keys(self) -> list[str]:
        """The next keys that are pressed; [] when the terminal is gone."""
        while True:
            with trio.move_on_after(FOLLOWS if self._keys.begun else float("inf")) as patience:
                await trio.lowlevel.wait_readable(self._descriptor)
            if patience.cancelled_caught:
                found = self._keys.flush()
            else:
                try:
                    data = os.read(self._descriptor, 4096)
                except OSError:
                    data = b""
                if not data:
                    return []
                found = self._keys.feed(data)
            if found:
                return found

    def _take(self) -> None:
        tty.setcbreak(self._descriptor, termios.TCSADRAIN)
        self._live = Live(
            console=self._console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self._live.start()

    def _give_back(self) -> None:
        live, self._live = self._live, None
        try:
            if live is not None:
                live.stop()
        finally:
            with suppress(termios.error):  # it may be gone
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, self._modes)
