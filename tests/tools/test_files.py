"""Tools for files: what they do, and what they refuse."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from concorde_trio import ToolResult, file_tools
from concorde_trio.errors import UsageError
from concorde_trio.testing.tool_context import FakeToolContext, tool_context
from concorde_trio.tools import finding, texts
from concorde_trio.tools.beneath import folder_beneath


@attrs.frozen
class Bench:
    """The tools of one workspace, ``here``, called by name. A file ``secret`` lies beside it."""

    here: Path
    context: FakeToolContext

    async def __call__(self, name: str, **arguments: Any) -> ToolResult:
        tools = {tool.spec.name: tool for tool in file_tools(self.here.parent / "{session}")}
        return await tools[name].call(arguments, self.context)

    async def good(self, name: str, **arguments: Any) -> str:
        result = await self(name, **arguments)
        assert not result.is_error, result.text
        return result.text

    async def refused(self, name: str, **arguments: Any) -> str:
        result = await self(name, **arguments)
        assert result.is_error, result.text
        return result.text


@contextlib.asynccontextmanager
async def bench(folder: Path) -> AsyncIterator[Bench]:
    (folder / "secret").write_text("classified")
    async with tool_context(session="ann") as context:
        (folder / "ann").mkdir()
        yield Bench(folder / "ann", context)


async def test_a_file_is_written_read_and_edited(tmp_path: Path) -> None:
    """Folders are made, a file is replaced as a whole and keeps its permissions, no other file is left."""
    async with bench(tmp_path) as tools:
        assert await tools.good("write_file", path="a/b/x.sh", content="één\ntwo\n") == "wrote 10 bytes to a/b/x.sh"
        (tools.here / "a/b/x.sh").chmod(0o750)
        assert await tools.good("read_file", path=str(tools.here / "a/b/x.sh")) == "één\ntwo\n"
        assert await tools.good("edit_file", path="a/b/x.sh", old="two\n", new="2\n3\n") == "edited a/b/x.sh at line 2"
        assert (tools.here / "a/b/x.sh").read_text() == "één\n2\n3\n"
        assert (tools.here / "a/b/x.sh").stat().st_mode & 0o777 == 0o750
        assert os.listdir(tools.here / "a/b") == ["x.sh"]


async def test_a_workspace_is_made_and_is_the_sessions_own(tmp_path: Path) -> None:
    """The name is encoded."""
    async with tool_context(session="../x") as context:
        tools = {tool.spec.name: tool for tool in file_tools(tmp_path / "{session}")}
        await tools["write_file"].call({"path": "a", "content": ""}, context)
    assert [path.name for path in tmp_path.iterdir()] == ["=2e.=2fx"]


OUTSIDE = ["../secret", "a/../../secret", "/etc/passwd", "{top}/secret", "{top}/ann/../secret", "{top}/annex/x", ".."]
THROUGH_LINKS = ["link", "folder/secret", "deep/er/secret", "absolute", "loop"]


@pytest.mark.parametrize("path", [*OUTSIDE, *THROUGH_LINKS, "a\0b", "", "\ud800", "x" * 300, "."])
@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file", "list_files", "search_files"])
async def test_no_path_leads_out_of_the_workspace(tmp_path: Path, name: str, path: str) -> None:
    """``..``, absolute paths and links at any component: an error that says so, and nothing is read or written."""
    async with bench(tmp_path) as tools:
        (tmp_path / "annex").mkdir()
        (tools.here / "link").symlink_to("../secret")
        (tools.here / "folder").symlink_to("..")
        (tools.here / "deep").mkdir()
        (tools.here / "deep/er").symlink_to(tmp_path)
        (tools.here / "absolute").symlink_to("/etc")
        (tools.here / "loop").symlink_to("loop")
        more = {
            "write_file": {"content": "x"},
            "edit_file": {"old": "classified", "new": "x"},
            "search_files": {"text": "classified"},
        }.get(name, {})
        if path == "." and name in ("list_files", "search_files"):
            assert "classified" not in await tools.good(name, path=path, **more)
            return
        text = await tools.refused(name, path=path.replace("{top}", str(tmp_path)), **more)
        assert "classified" not in text
        assert (tmp_path / "secret").read_text() == "classified"
        assert sorted(os.listdir(tmp_path)) == ["ann", "annex", "secret"]


async def test_walks_do_not_follow_links(tmp_path: Path) -> None:
    """They are listed as links, and not searched."""
    async with bench(tmp_path) as tools:
        (tools.here / "folder").symlink_to("..")
        (tools.here / "link").symlink_to("../secret")
        (tools.here / "sub").mkdir()
        (tools.here / "sub/own").write_text("my classified")
        assert await tools.good("list_files", pattern="**/*") == "folder@\nlink@\nsub/\nsub/own"
        assert await tools.good("search_files", text="classified") == "sub/own:1: my classified"


def test_a_folder_that_becomes_a_link_while_it_is_walked_leads_nowhere(tmp_path: Path) -> None:
    """No component is looked at first and opened later: swapped back and forth, it is the folder or an error."""
    (tmp_path / "top/real").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mark").touch()
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            os.rename(tmp_path / "top/real", tmp_path / "top/aside")
            os.symlink(tmp_path / "out", tmp_path / "top/real")
            os.unlink(tmp_path / "top/real")
            os.rename(tmp_path / "top/aside", tmp_path / "top/real")

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(3_000):
            with (
                contextlib.suppress(OSError, UsageError),
                folder_beneath(str(tmp_path / "top"), ("real",)) as folder,
            ):
                assert os.listdir(folder) == []
    finally:
        stop.set()
        swapper.join()


async def test_what_is_no_regular_file_is_refused_and_hangs_nobody(tmp_path: Path) -> None:
    """A FIFO without a writer, a socket, a device, a folder."""
    async with bench(tmp_path) as tools:
        os.mkfifo(tools.here / "fifo")
        (tools.here / "folder").mkdir()
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(tools.here / "socket"))
            for name, kind in (("fifo", "a FIFO"), ("socket", "a socket"), ("folder", "a folder")):
                for tool, more in (
                    ("read_file", {}),
                    ("write_file", {"content": "x"}),
                    ("edit_file", {"old": "a", "new": "b"}),
                ):
                    assert kind in await tools.refused(tool, path=name, **more)
            assert await tools.good("search_files", text="x") == "[no line has it]"
        assert "fifo is a FIFO" in await tools.refused("read_file", path="fifo/below")


async def test_a_missing_file_and_one_that_may_not_be_read_say_so(tmp_path: Path) -> None:
    """In the system's words, with the path as it was given."""
    async with bench(tmp_path) as tools:
        assert await tools.refused("read_file", path="no/such") == "no/such: No such file or directory"
        (tools.here / "plain").write_text("")
        assert "plain is a file, not a folder" in await tools.refused("write_file", path="plain/x", content="")


async def test_a_long_file_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is bounded, and says where to go on."""
    monkeypatch.setattr(texts, "MOST", 100)
    async with bench(tmp_path) as tools:
        (tools.here / "long").write_text("".join(f"line {n}\n" for n in range(1, 101)))
        assert await tools.good("read_file", path="long", offset=99, numbers=True) == "99\tline 99\n100\tline 100\n"
        assert (await tools.good("read_file", path="long", limit=1)).endswith(
            "[the file goes on; read on with offset=2]"
        )
        first = await tools.good("read_file", path="long")
        assert len(first) < 200
        assert "line 13\n[the file goes on; read on with offset=14]" in first
        assert "100 lines" in await tools.refused("read_file", path="long", offset=101)
        assert "at least 1" in await tools.refused("read_file", path="long", offset=0)
        (tools.here / "wide").write_text("x" * 1_000 + "\nnext\n")
        assert "line 1 is longer than 100 bytes" in await tools.good("read_file", path="wide")
        assert await tools.good("read_file", path="wide", offset=2) == "next\n"
        (tools.here / "empty").touch()
        assert await tools.good("read_file", path="empty") == "[the file is empty]"


async def test_a_huge_file_is_no_trouble(tmp_path: Path) -> None:
    """A sparse file of 4 GB is read, searched and edited within bounds."""
    async with bench(tmp_path) as tools:
        (tools.here / "huge").write_bytes(b"first\n")
        os.truncate(tools.here / "huge", 4_000_000_000)
        assert "first\n[the file goes on" in await tools.good("read_file", path="huge", limit=1)
        assert "too much to edit" in await tools.refused("edit_file", path="huge", old="first", new="x")
        assert await tools.good("search_files", text="first") == "[no line has it]"


async def test_what_is_not_utf8_can_be_read_and_edited_and_the_rest_of_it_stays(tmp_path: Path) -> None:
    """Bytes stay bytes; a binary file is refused; line ends of Windows stay."""
    async with bench(tmp_path) as tools:
        (tools.here / "latin").write_bytes(b"caf\xe9 \xef\xbf\xbd one\n")
        assert "caf\ufffd \ufffd one\n[what is not UTF-8 is shown as \ufffd, 1 times]" == await tools.good(
            "read_file", path="latin"
        )
        await tools.good("edit_file", path="latin", old="one", new="zwölf")
        assert (tools.here / "latin").read_bytes() == b"caf\xe9 \xef\xbf\xbd zw\xc3\xb6lf\n"
        (tools.here / "windows").write_bytes(b"a\r\nb\r\nc\r\n")
        await tools.good("edit_file", path="windows", old="a\nb\n", new="1\n2\n")
        assert (tools.here / "windows").read_bytes() == b"1\r\n2\r\nc\r\n"
        (tools.here / "binary").write_bytes(b"\x7fELF\0\0")
        assert "not a text file" in await tools.refused("read_file", path="binary")
        assert "surrogate" in await tools.refused("write_file", path="new", content="\ud800")
        assert not (tools.here / "new").exists()


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("absent", "does not have the text"),
        ("", "is empty"),
        ("aa", "more than once, at lines 1, 1, 3"),
        ("\ud800", "surrogate"),
    ],
)
async def test_an_edit_that_is_not_certain_changes_nothing(tmp_path: Path, old: str, words: str) -> None:
    """Absent, empty, or there more than once (overlaps count): the lines are named."""
    async with bench(tmp_path) as tools:
        (tools.here / "file").write_text("aaa\nb\naa\n")
        assert words in await tools.refused("edit_file", path="file", old=old, new="x")
        assert (tools.here / "file").read_text() == "aaa\nb\naa\n"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["a.py", "src/"]),
        ("*.py", ["a.py"]),
        ("**/*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("**", ["a.py", "src/", "src/b.py", "src/deep/", "src/deep/c.py"]),
        ("src/*/c.*", ["src/deep/c.py"]),
        ("src/**/deep/**/c.py", ["src/deep/c.py"]),
        ("**/.*", [".git/", "src/.hidden"]),
        (".git/*", [".git/config"]),
        ("[ab].p?", ["a.py"]),
        ("no*", ["[nothing matches]"]),
    ],
)
async def test_patterns_are_those_of_a_shell(tmp_path: Path, pattern: str, found: list[str]) -> None:
    """Hidden names need a pattern with a dot; ** is any number of folders."""
    async with bench(tmp_path) as tools:
        (tools.here / "src/deep").mkdir(parents=True)
        (tools.here / ".git").mkdir()
        for name in ("a.py", "src/b.py", "src/deep/c.py", ".git/config", "src/.hidden"):
            (tools.here / name).touch()
        assert sorted((await tools.good("list_files", pattern=pattern)).splitlines()) == found


async def test_no_pattern_freezes_us(tmp_path: Path) -> None:
    """One that a backtracking matcher would need years for."""
    async with bench(tmp_path) as tools:
        (tools.here / ("a" * 200)).touch()
        await tools.good("list_files", pattern="*a" * 60 + "b")
        await tools.good("list_files", pattern="**/" * 60 + "b")
        for pattern in ("", "/etc/*", "../*", "a/../b", "x" * 1_001):
            assert "a pattern is relative" in await tools.refused("list_files", pattern=pattern)


async def test_what_is_found_is_bounded_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths, lines, and entries that are walked."""
    monkeypatch.setattr(finding, "FOUND", 3)
    monkeypatch.setattr(finding, "HITS", 2)
    async with bench(tmp_path) as tools:
        for number in range(6):
            (tools.here / str(number)).write_text(f"Line {number}\n")
        assert await tools.good("list_files") == "0\n1\n2\n[only the first 3 are shown; use a narrower pattern]"
        assert await tools.good("search_files", text="line", ignore_case=True) == (
            "0:1: Line 0\n1:1: Line 1\n[only the first 2 lines are shown; search for something rarer]"
        )
        assert await tools.good("search_files", text="line") == "[no line has it]"
        monkeypatch.setattr(finding, "WALKED", 2)
        assert "ended after 2 files" in await tools.good("list_files")


async def test_a_name_that_is_not_utf8_is_listed_in_escapes(tmp_path: Path) -> None:
    """What cannot be said in Unicode does not break the answer."""
    async with bench(tmp_path) as tools:
        os.close(os.open(os.fsencode(tools.here) + b"/caf\xe9", os.O_CREAT))
        assert await tools.good("list_files") == "caf\\xe9"


def test_kinds_say_what_a_policy_needs() -> None:
    """SES-18: reads may overlap, writes may not."""
    kinds = {tool.spec.name: (tool.kind, tool.concurrent, tool.timeout) for tool in file_tools("/w", timeout=7)}
    assert kinds == {
        "read_file": ("read", True, 7),
        "write_file": ("write", False, 7),
        "edit_file": ("write", False, 7),
        "list_files": ("read", True, 7),
        "search_files": ("read", True, 7),
    }
    with pytest.raises(UsageError, match="absolute folder"):
        file_tools("here")
