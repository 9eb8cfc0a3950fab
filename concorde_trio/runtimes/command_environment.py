"""What a program's environment is made of, and how its secrets stay out of what we say of it.

The law: it starts empty, and holds what was named and AGENT_SERVER_URL; the values of secret-looking variables never stand in an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from concorde_trio.errors import UsageError
from concorde_trio.runtimes.command_template import check_variables, fill, placeholder

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


class Environment:
    """``env``: variables, with placeholders as whole values; ``inherit``: names taken from the worker's own.

    UsageError for what can never be right.
    """

    def __init__(self, env: Mapping[str, str] | None, inherit: Sequence[str]) -> None:
        self._env = check_variables(env or {})
        if isinstance(inherit, str) or "CONCORDE_RUN_ID" in inherit:
            raise UsageError(
                f"inherit is a list of names of environment variables, without CONCORDE_RUN_ID, not {inherit!r}"
            )
        self._inherit = tuple(inherit)

    @property
    def placeholders(self) -> set[str | None]:
        """Those that stand as values; None for plain values."""
        return {placeholder(value) for value in self._env.values()}

    def fill(self, values: Mapping[str, str | None]) -> dict[str, str]:
        """The variables of one start of the program."""
        env = self._inherited()
        url = values["agent_server_url"]
        if url is not None:
            env["AGENT_SERVER_URL"] = url
        return env | {name: fill(value, values) for name, value in self._env.items()}

    def masked(self, text: str) -> str:
        """``text`` without what secret-looking variables hold: programs quote their keys in their complaints."""
        for name, value in (self._inherited() | self._env).items():
            if len(value) >= 6 and _SECRET.search(name):
                text = text.replace(value, f"<{name}>")
        return text

    def _inherited(self) -> dict[str, str]:
        return {name: os.environ[name] for name in self._inherit if name in os.environ}
