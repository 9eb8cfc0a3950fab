"""Conversations whose id the program makes up itself, and tells in its output.

The law: the id is written down as soon as it is seen, whatever becomes of the run, and is there after a crash: a file is written
beside the old one, synced, and takes its place.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import attrs

from concorde_trio._sansio.encoded_names import encode_name
from concorde_trio.errors import ProgramError, UsageError
from concorde_trio.records import Usage, usage_fault
from concorde_trio.runtimes.command_rules import Rule
from concorde_trio.runtimes.command_session import Conversation, absolute, check_patterns


def check_native_id(value: Any) -> str:
    """``value`` if it can be an argument; ProgramError for what could become an option, or is none at all."""
    if isinstance(value, str) and 1 <= len(value) <= 500 and value.isprintable() and value[0] not in "- ":
        return value
    raise ProgramError(f"the id that it told for its session cannot be used: {value!r:.80}")


@attrs.frozen
class LearntSession:
    """The program makes up an id for a new conversation and tells it: ``id`` is the rule that finds it in the output.

    ``folder``: where a small file for each conversation keeps the id, and what was used up to then, for programs that only
    tell the sum (``UsageRules.cumulative``). ``missing``: a pattern of stderr with which a program says that it does not know the
    id; then the conversation is begun anew, once. A program that goes on with another conversation than the one it was asked for
    is stopped, and its run has failed; with ``may_change`` the new id takes the place of the old.
    """

    folder: Path = attrs.field(converter=absolute)
    id: Rule = attrs.field(validator=attrs.validators.instance_of(Rule))
    missing: str = "no rollout found|[Ss]ession not found|[Nn]o conversation found"
    may_change: bool = False

    needs_resume = True
    provides = ("native_id",)

    def __attrs_post_init__(self) -> None:
        check_patterns(self.missing)

    @property
    def learns(self) -> Rule | None:
        """The rule."""
        return self.id

    def find(self, session: str) -> Conversation:
        """What the file says. ProgramError if it cannot be read."""
        file = self._file(session)
        try:
            kept = json.loads(file.read_bytes())
            used = None if kept["used"] is None else Usage(**kept["used"])
            if used is not None and (fault := usage_fault(used)):
                raise UsageError(fault)
            return Conversation(known=True, native_id=check_native_id(kept["id"]), used=used)
        except FileNotFoundError:
            return Conversation()
        except (OSError, ValueError, TypeError, KeyError, UsageError) as error:
            raise ProgramError(
                f"which conversation the session {session!r} is cannot be read from {file}: {error}. "
                "If that file is removed, the session begins anew"
            ) from None

    def seen(self, session: str, conversation: Conversation) -> None:
        """Write it down, so that it is there after a crash."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._file(session)
        used = None if conversation.used is None else attrs.asdict(conversation.used)
        handle, draft = tempfile.mkstemp(prefix=".", dir=self.folder)  # no encoded name begins with a dot
        try:
            with open(handle, "wb") as stream:
                stream.write(json.dumps({"id": conversation.native_id, "used": used}).encode())
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(draft, file)
        except BaseException:
            os.unlink(draft)
            raise
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def mistaken(self, known: bool, stderr: str) -> bool:
        """Whether stderr says that the program does not have it."""
        return known and re.search(self.missing, stderr) is not None

    def _file(self, session: str) -> Path:
        return self.folder / encode_name(session)
