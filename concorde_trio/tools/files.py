"""Tools for the files of a workspace: read, write, edit, list, search.

The law: nothing outside of the workspace is touched (``tools/beneath.py``), every fault is a result that says what to do,
and the disk is waited for in threads: one that hangs freezes nobody (SES-13).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import ParamSpec

from concorde_trio.errors import UsageError
from concorde_trio.sessions.tool import TIMEOUT, Tool, ToolContext, ToolResult
from concorde_trio.tools.beneath import folder_beneath, open_regular, parts_of, replace_file
from concorde_trio.tools.finding import list_beneath, search_beneath
from concorde_trio.tools.function import tool
from concorde_trio.tools.texts import EDITED, edit_text, read_part
from concorde_trio.tools.workspace import Workspace

P = ParamSpec("P")


def file_tools(workspace: str | os.PathLike[str], *, timeout: float = TIMEOUT) -> list[Tool]:
    """read_file, write_file, edit_file, list_files and search_files, for ``InProcessRuntime(tools=[...])``.

    ``workspace``: an absolute folder, made if need be; ``{session}`` in it is the session's name, encoded. Paths are relative
    to it, or absolute within it. No link is followed in it, and only regular files are read and written. ``timeout``: seconds a call
    may take. UsageError for a workspace that can be none.
    """
    place = Workspace(workspace)
    reads = functools.partial(tool, timeout=timeout, concurrent=True, kind="read")
    writes = functools.partial(tool, timeout=timeout, kind="write")

    @reads()
    @_answers
    def read_file(
        path: str, context: ToolContext, offset: int = 1, limit: int = 2_000, numbers: bool = False
    ) -> ToolResult:
        """Read a text file of your workspace.

        Args:
            path: Of the file, relative to the workspace.
            offset: The first line to read; 1 is the first of the file.
            limit: How many lines to read at most.
            numbers: Whether each line begins with its number and a tab.
        """
        top, (*folders, name) = _named(place.make(context.session), path)
        with folder_beneath(top, tuple(folders)) as folder, open(open_regular(folder, name, path), "rb") as file:
            return ToolResult(read_part(file, path, offset, limit, numbers=numbers))

    @writes()
    @_answers
    def write_file(path: str, content: str, context: ToolContext) -> ToolResult:
        """Write a file of your workspace as a whole. Its folders are made; a file that is there is replaced.

        Args:
            path: Of the file, relative to the workspace.
            content: All that the file is to have.
        """
        top, (*folders, name) = _named(place.make(context.session), path)
        try:
            data = content.encode()
        except UnicodeEncodeError:
            raise UsageError("the content has a lone surrogate, which is no character; nothing was written") from None
        with folder_beneath(top, tuple(folders), make=True) as folder:
            replace_file(folder, name, data, path)
        return ToolResult(f"wrote {len(data):,} bytes to {path}")

    @writes()
    @_answers
    def edit_file(path: str, old: str, new: str, context: ToolContext) -> ToolResult:
        """Replace one text in a file of your workspace by another.

        Args:
            path: Of the file, relative to the workspace.
            old: The text to replace, exactly as it stands in the file, where it must stand once only.
            new: What is to stand there instead.
        """
        top, (*folders, name) = _named(place.make(context.session), path)
        with folder_beneath(top, tuple(folders)) as folder:
            with open(open_regular(folder, name, path), "rb") as file:
                data = file.read(EDITED + 1)
            if len(data) > EDITED:
                raise UsageError(f"{path} has more than {EDITED:,} bytes, which is too much to edit")
            data, line = edit_text(data, old, new, path)
            replace_file(folder, name, data, path)
        return ToolResult(f"edited {path} at line {line}")

    @reads()
    @_answers
    def list_files(context: ToolContext, pattern: str = "*", path: str = ".") -> ToolResult:
        """List files and folders of your workspace by their names. Folders end with a slash.

        Args:
            pattern: Such as *.py for one folder, or **/*.py for all below it. Hidden names need a pattern with a dot.
            path: The folder to begin in, relative to the workspace.
        """
        top = place.make(context.session)
        return ToolResult(list_beneath(top, parts_of(path, top), pattern))

    @reads()
    @_answers
    def search_files(
        text: str, context: ToolContext, pattern: str = "**/*", path: str = ".", ignore_case: bool = False
    ) -> ToolResult:
        """Find the lines that have a text, in the text files of your workspace. Each comes as path:line: text.

        Args:
            text: What to find, literally; it is no regular expression.
            pattern: Which files to look into, such as **/*.py.
            path: The folder to begin in, relative to the workspace.
            ignore_case: Whether capitals do not count.
        """
        top = place.make(context.session)
        return ToolResult(search_beneath(top, parts_of(path, top), text, pattern, ignore_case=ignore_case))

    return [read_file, write_file, edit_file, list_files, search_files]


def _answers(function: Callable[P, ToolResult]) -> Callable[P, ToolResult]:
    """What is refused, and what the system refuses, as a result."""

    @functools.wraps(function)
    def answer(*args: P.args, **kwargs: P.kwargs) -> ToolResult:
        try:
            return function(*args, **kwargs)
        except UsageError as error:
            return ToolResult(str(error), is_error=True)
        except OSError as error:
            named = error.filename
            about = named if isinstance(named, str) and os.path.isabs(named) else kwargs.get("path", named)
            return ToolResult(f"{about}: {error.strerror or error}", is_error=True)

    return answer


def _named(top: str, path: str) -> tuple[str, tuple[str, ...]]:
    parts = parts_of(path, top)
    if not parts:
        raise UsageError(f"{path:.200} is the workspace itself; give the path of a file in it")
    return top, parts
