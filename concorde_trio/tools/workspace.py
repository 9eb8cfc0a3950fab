"""The folder that tools work in: one for all sessions, or one a session.

The law: a session's name is encoded before it becomes part of a path, so no name leads anywhere else.
"""

from __future__ import annotations

import os
import re

from concorde_trio._sansio.encoded_names import encode_name
from concorde_trio.errors import UsageError

_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


class Workspace:
    """``place``: an absolute folder, with ``{session}`` where the session's name is to stand. UsageError for another."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        path = os.fspath(place)
        if not isinstance(path, str) or not os.path.isabs(path) or "\0" in path:
            raise UsageError(
                f"a workspace is an absolute folder such as '/srv/agents/{{session}}', not {path!r:.200}; write "
                "str(Path(...).resolve())"
            )
        unknown = [each for each in _PLACEHOLDER.findall(path) if each != "{session}"]
        if unknown:
            raise UsageError(f"a workspace can have the placeholder {{session}} only, not {unknown[0]}: {path!r:.200}")
        self._template = path

    def folder(self, session: str) -> str:
        """Its path, whether it is there or not."""
        return self._template.replace("{session}", encode_name(session))

    def make(self, session: str) -> str:
        """Its path, made if need be. OSError when it cannot be. Waits for the disk."""
        folder = self.folder(session)
        os.makedirs(folder, exist_ok=True)
        return folder
