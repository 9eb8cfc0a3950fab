"""The installed program on a terminal of its own, as its person sees it: the picture that stands there, and keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from pathlib import Path

from tests.cli.running import script

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
HOME = "\x1b[H"
"""What begins each picture."""
PATIENCE = 30.0


class ScreenTerminal:
    """A program that fills the screen."""

    def __init__(self, here: Path, *arguments: str, columns: int = 120, lines: int = 40, **env: str) -> None:
        self._ours, self._theirs = pty.openpty()
        self.resize(columns, lines)
        self.process = subprocess.Popen(
            ["setsid", "--ctty", script(), *arguments],
            cwd=here,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env={**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", **env},
        )
        self.raw = ""

    def resize(self, columns: int, lines: int) -> None:
        """The window gets another size; the system tells the program."""
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def modes(self) -> list[object]:
        """How the terminal is set."""
        return termios.tcgetattr(self._theirs)

    def picture(self) -> list[str]:
        """The lines of the last whole picture."""
        pictures = self.raw.split(HOME)
        return [line.rstrip() for line in ESCAPES.sub("", pictures[-2] if len(pictures) > 2 else "").split("\r\n")]

    def until(self, seen: Callable[[list[str]], object]) -> list[str]:
        """Look until the picture is so; that picture."""
        deadline = time.monotonic() + PATIENCE
        while not seen(self.picture()):
            assert self._more(deadline), "\n".join(self.picture())
        return self.picture()

    def shows(self, text: str) -> list[str]:
        """Look until a line has this text."""
        return self.until(lambda lines: any(text in line for line in lines))

    def hides(self, text: str) -> list[str]:
        """Look until no line has this text."""
        return self.until(lambda lines: len(lines) > 1 and not any(text in line for line in lines))

    def end(self) -> int:
        """The exit status, once all that came is read."""
        os.close(self._theirs)
        self._theirs = -1
        deadline = time.monotonic() + PATIENCE
        while self._more(deadline):
            pass
        return self.process.wait(timeout=20)

    def _more(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        try:
            piece = os.read(self._ours, 65536) if ready else b""
        except OSError:
            piece = b""
        self.raw += piece.decode(errors="replace")
        return bool(piece)

    def close(self) -> None:
        """Nobody looks any more."""
        self.process.kill()
        self.process.wait()
        for each in (self._ours, self._theirs):
            if each >= 0:
                os.close(each)
