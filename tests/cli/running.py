"""A command that was run, and how one is."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs


@attrs.frozen
class Done:
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout, and nothing beside it."""
        return json.loads(self.out)

    def sentence(self) -> str:
        """The one line on stderr of a command that failed."""
        assert self.out == ""
        assert self.err.startswith("concorde-trio: ") and self.err.endswith("\n"), self.err
        assert self.err.count("\n") == 1, self.err
        assert "Traceback" not in self.err
        return self.err.removeprefix("concorde-trio: ").rstrip("\n")


Command = Callable[..., Done]


def script() -> str:
    """The console script beside this interpreter."""
    return str(Path(sys.executable).parent / "concorde-trio")
