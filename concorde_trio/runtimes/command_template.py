"""Placeholders in a program's arguments, environment and folder.

The law: a placeholder is a whole argument or a whole value, so that nothing a name holds can become a second argument
or a part of one; there is no shell; the prompt is never among them. Mistakes are refused when they are written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from concorde_trio._sansio.encoded_names import encode_name
from concorde_trio.errors import UsageError

ARGUMENTS: Mapping[str, str] = {
    "session": "the session's name, encoded (CLM-7)",
    "session_file": "the session's file (SessionFile)",
    "native_id": "the session's id in the program's own world (DerivedSession)",
    "agent_server_url": "where the agent server is reached",
    "cwd": "the session's folder",
    "model": "the model that was given",
}
"""What can stand in an argument, and what it becomes."""

VARIABLES = ("agent_server_url", "session")
"""What can stand as the value of an environment variable."""

_LIKE_ONE = re.compile(r"(?<!\$)\{([a-z][a-z_]*)\}")  # ${home} is a shell's

Folder: TypeAlias = str | os.PathLike[str] | Callable[[str], str | os.PathLike[str]]


class LiteralArgument(str):
    """An argument or value in which ``{word}`` means just that."""

    __slots__ = ()


def check_arguments(argv: Iterable[str], what: str) -> tuple[str, ...]:
    """``argv`` as a tuple; UsageError for what is no argument, or has a partial or unknown placeholder."""
    if isinstance(argv, str | bytes):
        raise UsageError(
            f"{what} is a list of arguments, the program first, not one string: {argv!r:.80}. No shell splits it"
        )
    parts = tuple(argv)
    if not parts or not parts[0]:
        raise UsageError(f"{what} must have at least the program")
    for part in parts:
        _check(part, what, tuple(ARGUMENTS))
    if placeholder(parts[0]) is not None:
        raise UsageError(f"the program in {what} must be fixed, not {parts[0]}")
    return parts


def check_variables(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` as a dict; UsageError for a wrong name, value or placeholder. Values are never shown."""
    for name, value in env.items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise UsageError(f"an environment variable's name is a string without '=' and NUL, not {name!r:.80}")
        if name == "CONCORDE_RUN_ID":
            raise UsageError(
                "CONCORDE_RUN_ID marks the processes of a run; it is set by the runtime and by nobody else"
            )
        _check(value, f"the environment variable {name}", VARIABLES)
    return dict(env)


def placeholder(part: str) -> str | None:
    """The name of the placeholder that ``part`` is, None if it is plain text."""
    if isinstance(part, LiteralArgument):
        return None
    match = _LIKE_ONE.fullmatch(part)
    return match[1] if match else None


def fill(part: str, values: Mapping[str, str | None]) -> str:
    """``part``, or what its placeholder stands for. UsageError when that is not there (None)."""
    name = placeholder(part)
    if name is None:
        return str(part)
    value = values.get(name)
    if value is None:
        raise UsageError(f"{{{name}}} is used, but there is none here: it is {ARGUMENTS[name]}")
    return value


def check_folder(cwd: Folder) -> Callable[[str], str]:
    """A function from a session's name to its absolute folder; UsageError for a template that can give none."""
    if callable(cwd):
        function = cwd

        def folder(session: str) -> str:
            path = os.fspath(function(session))
            if not isinstance(path, str) or not os.path.isabs(path):
                raise UsageError(f"cwd must give an absolute folder for the session {session!r:.80}, not {path!r:.200}")
            return path

        return folder
    template = os.fspath(cwd)
    if not isinstance(template, str) or not os.path.isabs(template):
        raise UsageError(f"cwd must be an absolute folder, not {template!r:.200}; write str(Path(...).resolve())")
    unknown = [name for name in _LIKE_ONE.findall(template) if name != "session"]
    if unknown and not isinstance(cwd, LiteralArgument):
        raise UsageError(f"cwd can have the placeholder {{session}} only, not {{{unknown[0]}}}: {template!r:.200}")
    if isinstance(cwd, LiteralArgument):
        return lambda session: template
    return lambda session: template.replace("{session}", encode_name(session))


def _check(part: object, what: str, known: tuple[str, ...]) -> None:
    if not isinstance(part, str) or "\0" in part:
        raise UsageError(f"each part of {what} must be a string without NUL, not {type(part).__name__}")
    if isinstance(part, LiteralArgument):
        return
    names = _LIKE_ONE.findall(part)
    if not names:
        return
    there = ", ".join(f"{{{name}}}" for name in known)
    if any(name in ("prompt", "text") for name in names):
        raise UsageError(f"the prompt goes to the program on stdin, never into {what} (everyone can see those)")
    if names[0] not in known:
        raise UsageError(
            f"{what} has the unknown placeholder {{{names[0]}}}; there are {there}. If it is none: LiteralArgument(...)"
        )
    if placeholder(part) is None:
        raise UsageError(
            f"a placeholder is a whole part of {what}, and {{{names[0]}}} is not alone in its part; "
            "split it in two, or wrap it in LiteralArgument(...) if it is no placeholder"
        )
