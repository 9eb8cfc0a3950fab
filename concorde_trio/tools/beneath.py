"""Opens what lies beneath a workspace and nothing else. The law:

- A path is walked from the workspace's own descriptor, one component at a time, and no link is followed at any of them. So
  there is no moment at which somebody could swap a folder for a link and lead us out.
- Only regular files are read or replaced. A FIFO, socket or device is refused before it could hang us.
- A file is replaced by renaming a complete one, or not at all.

Everything here waits for the disk, so it runs in a thread. UsageError for what is refused, OSError from the system.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator

import trio

from concorde_trio.errors import UsageError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def parts_of(path: str, workspace: str) -> tuple[str, ...]:
    """The components of a path that is relative to the workspace, or absolute and within it."""
    if "\0" in path or not path:
        raise UsageError("a path is not empty and has no NUL character")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise UsageError("the path has a lone surrogate, which is no character") from None
    if os.path.isabs(path):
        inside = path.removeprefix(workspace.rstrip("/"))
        if inside == path or not (inside == "" or inside.startswith("/")):
            raise UsageError(
                f"{path:.200} is outside of the workspace; give a path relative to it, such as notes/a.txt"
            )
        path = inside
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if ".." in parts:
        raise UsageError(f"{path:.200} has '..' in it, which is not allowed; give the path from the workspace's top")
    return parts


@contextlib.contextmanager
def folder_beneath(top: str | int, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder at ``parts`` beneath ``top`` (a path, or a descriptor, which stays open)."""
    here = os.dup(top) if isinstance(top, int) else os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, part in enumerate(parts):
            try:
                below = _enter(part, here, make=make)
            except NotADirectoryError:
                shown = "/".join(parts[: depth + 1])
                raise UsageError(f"{shown} is {_kind(os.lstat(part, dir_fd=here).st_mode)}, not a folder") from None
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _enter(part: str, here: int, *, make: bool) -> int:
    try:
        return os.open(part, _FOLDER, dir_fd=here)
    except FileNotFoundError:
        if not make:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=here)
    return os.open(part, _FOLDER, dir_fd=here)


def open_regular(folder: int, name: str, shown: str) -> int:
    """A descriptor to read the regular file ``name`` with. ``shown``: its path for messages."""
    check_regular(os.lstat(name, dir_fd=folder).st_mode, shown)
    descriptor = os.open(name, _READ, dir_fd=folder)
    try:
        check_regular(os.fstat(descriptor).st_mode, shown)  # it may have been swapped
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def replace_file(folder: int, name: str, data: bytes, shown: str) -> None:
    """Put a file with ``data`` there, whole, with the permissions of the one that it replaces.

    Nothing is replaced when the call was cancelled meanwhile: a late write is dropped.
    """
    mode = None
    with contextlib.suppress(FileNotFoundError):
        mode = os.lstat(name, dir_fd=folder).st_mode
        check_regular(mode, shown)
    temporary = f".{name[:40]}.{secrets.token_hex(4)}.tmp"
    with open(os.open(temporary, _NEW, 0o666, dir_fd=folder), "wb") as file:
        try:
            file.write(data)
            file.flush()
            if mode is not None:
                os.fchmod(file.fileno(), mode & 0o777)
            os.fsync(file.fileno())
            trio.from_thread.check_cancelled()
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def check_regular(mode: int, shown: str) -> None:
    """UsageError unless it is a regular file."""
    if not stat.S_ISREG(mode):
        raise UsageError(f"{shown} is {_kind(mode)}; only regular files can be read or written")


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link, which is not followed",
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFREG: "a file",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
