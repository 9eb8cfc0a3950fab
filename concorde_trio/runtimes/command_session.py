"""How a program is told which conversation to continue: by a file, by an id derived from the name, by the id that it
made up itself, or not at all.

The law: what must be remembered of a session is on the disk before more of the program's output is read.
"""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path
from typing import Protocol

import attrs

from concorde_trio._sansio.encoded_names import encode_name
from concorde_trio.errors import UsageError
from concorde_trio.records import Usage
from concorde_trio.runtimes.command_rules import Rule


@attrs.frozen(kw_only=True)
class Conversation:
    """One session as its program knows it. ``known``: the program has it already, as far as we know.

    ``used``: what the conversation had used before, where the program only tells the sum.
    """

    known: bool = False
    session_file: str | None = None
    native_id: str | None = None
    used: Usage | None = None


class SessionKind(Protocol):
    """What the kinds have in common. Its methods may use the disk; they are called in a thread."""

    @property
    def needs_resume(self) -> bool | None:
        """Whether ``argv_resume`` must be given (True), may (None), or is of no use (False)."""
        ...

    @property
    def provides(self) -> tuple[str, ...]:
        """The placeholders it fills."""
        ...

    @property
    def learns(self) -> Rule | None:
        """Where the program's output tells the id that it made up, None if it makes up none."""
        ...

    def find(self, session: str) -> Conversation:
        """What is known of a session."""
        ...

    def seen(self, session: str, conversation: Conversation) -> None:
        """The program has this session from now on, and this is how."""
        ...

    def mistaken(self, known: bool, stderr: str) -> bool:
        """Whether a failed program's stderr says that the session is not, or is already, there."""
        ...


@attrs.frozen
class NoSession:
    """The program keeps no conversations, or finds them by its arguments and folder alone."""

    needs_resume = False
    provides = ()
    learns = None

    def find(self, session: str) -> Conversation:
        """Nothing is known."""
        return Conversation()

    def seen(self, session: str, conversation: Conversation) -> None:
        """Nothing to remember."""

    def mistaken(self, known: bool, stderr: str) -> bool:
        """Never."""
        return False


def absolute(value: str | os.PathLike[str]) -> Path:
    """``value`` as a Path; UsageError if it is not absolute."""
    path = Path(value)
    if not path.is_absolute():
        raise UsageError(f"the folder of a session kind must be absolute, not {str(path)!r}; write Path(...).resolve()")
    return path


def check_patterns(*patterns: str) -> None:
    """UsageError for what is no regular expression."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{pattern!r} is no regular expression: {error}") from None


def _namespace(value: uuid.UUID | str) -> uuid.UUID:
    return value if isinstance(value, uuid.UUID) else uuid.uuid5(uuid.NAMESPACE_OID, value)


@attrs.frozen
class SessionFile:
    """The program keeps each conversation in a file of its own that it is given: ``{folder}/{encoded name}.jsonl``.

    With an ``argv_resume``, that is used once the file is there.
    """

    folder: Path = attrs.field(converter=absolute)

    needs_resume = None
    provides = ("session_file",)
    learns = None

    def find(self, session: str) -> Conversation:
        """The file; known when it is there. The folder is made."""
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / f"{encode_name(session)}.jsonl"
        return Conversation(known=file.exists(), session_file=str(file))

    def seen(self, session: str, conversation: Conversation) -> None:
        """The file itself tells."""

    def mistaken(self, known: bool, stderr: str) -> bool:
        """Never: programs make the file if it is not there."""
        return False


@attrs.frozen
class DerivedSession:
    """The program takes a UUID of our choice for a new conversation: ``uuid5(namespace, name)``.

    ``namespace``: a UUID, or a string from which one is made; never change it. ``folder``: where an empty file for each
    conversation says that it was begun, once the program printed anything in it. Should that be wrong, the program
    says so on stderr, which ``missing`` (it does not know the id) and ``exists`` (it has it already) recognise; then
    the other argv is tried, once.
    """

    namespace: uuid.UUID = attrs.field(converter=_namespace)
    folder: Path = attrs.field(converter=absolute)
    missing: str = "No conversation found"
    exists: str = "already in use"

    needs_resume = True
    provides = ("native_id",)
    learns = None

    def __attrs_post_init__(self) -> None:
        check_patterns(self.missing, self.exists)

    def find(self, session: str) -> Conversation:
        """The id; known when its file is there."""
        return Conversation(known=self._file(session).exists(), native_id=str(uuid.uuid5(self.namespace, session)))

    def seen(self, session: str, conversation: Conversation) -> None:
        """Make the file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file(session).touch()

    def mistaken(self, known: bool, stderr: str) -> bool:
        """Whether stderr has the pattern that contradicts ``known``."""
        return re.search(self.missing if known else self.exists, stderr) is not None

    def _file(self, session: str) -> Path:
        return self.folder / encode_name(session)
