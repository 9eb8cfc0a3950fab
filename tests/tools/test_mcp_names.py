"""How the tools of an MCP server are called, and what is kept out of texts about it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio import McpServer
from concorde_trio.errors import UsageError
from concorde_trio.tools.mcp_masking import Mask, shown_url, url_secrets
from concorde_trio.tools.mcp_names import ToolNames


@given(st.lists(st.lists(st.text(min_size=1, max_size=80))))
def test_names_are_what_providers_take_and_stay_a_tools_own(lists: list[list[str]]) -> None:
    """At most 64 characters of A-Z, a-z, 0-9, _ and -; never two tools with one name; never another name for a tool."""
    names = ToolNames("server")
    given: dict[str, str] = {}
    for tools in lists:
        names.give(tools)
        for tool in tools:
            assert names.of(tool) == given.setdefault(tool, names.of(tool))
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", names.of(tool))
    assert len(set(given.values())) == len(given)


def test_a_tool_whose_name_fits_keeps_it_whatever_stands_before_it() -> None:
    """A foreign name must not take the name of a plain one."""
    names = ToolNames("files")
    names.give(["read.file", "read_file"])
    assert names.of("read_file") == "files__read_file"
    assert re.fullmatch(r"files__read_file_[0-9a-f]{8}", names.of("read.file"))


def test_keys_are_replaced_by_their_names_and_ordinary_words_are_not() -> None:
    """A whole header, the key within it, and a short secret; a short value that is no secret stays."""
    mask = Mask({"Authorization": "Bearer abcdefgh", "PIN_TOKEN": "7a", "DEBUG": "1"})
    assert mask("Bearer abcdefgh, abcdefgh, 7a, 1") == "[Authorization], [Authorization], [PIN_TOKEN], 1"


def test_a_url_is_shown_without_its_query() -> None:
    """The query may hold a key."""
    url = "https://host:8/mcp?api_key=abcdefgh&x=1"
    assert shown_url(url) == "https://host:8/mcp"
    assert Mask(url_secrets(url))("at ?api_key=abcdefgh") == "at ?api_key=[api_key]"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: McpServer.stdio(["x"], name="a b"), "NAME__TOOL"),
        (lambda: McpServer.stdio([], name="a"), "argv is a list"),
        (lambda: McpServer.stdio(["x"], name="a", cwd="here"), "absolute folder"),
        (lambda: McpServer.stdio(["x"], name="a", inherit="PATH"), "list of names"),
        (lambda: McpServer.stdio(["x"], name="a", timeout=0), "timeout"),
        (lambda: McpServer.stdio(["x"], name="a", connect_timeout=None), "connect_timeout"),  # type: ignore[arg-type]
        (lambda: McpServer.stdio(["x"], name="a", kinds={"t": "danger"}), "read, write"),  # type: ignore[dict-item]
        (lambda: McpServer.http("localhost:80", name="a"), "http://"),
        (lambda: McpServer.http("http://u:p@host/mcp", name="a"), "in headers"),
        (lambda: McpServer.http("http://h", name="a", headers={"A": "b\r\nC: d"}), "control characters"),
    ],
)
def test_what_can_never_be_right_is_refused_where_it_is_written(make: object, words: str) -> None:
    """A UsageError says what was expected."""
    with pytest.raises(UsageError, match=re.escape(words)):
        make()  # type: ignore[operator]


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra to install stands in the error."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=re.escape("pip install 'concorde-trio[mcp]'")):
        McpServer.stdio(["x"], name="a")


def test_before_it_runs_a_server_has_no_tools() -> None:
    """And it says that it was not started."""
    server = McpServer.stdio(["x"], name="a")
    assert server.tools() == ()
    assert "not started" in server.status()
