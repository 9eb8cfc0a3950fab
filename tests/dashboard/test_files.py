"""The files of the page, read: what they refer to is there, and nothing in them could make a script or a style of a text."""

from __future__ import annotations

import re
from pathlib import Path

import httpx2
import pytest

from concorde_trio.server.access import Access
from concorde_trio.server.home import HEADERS, TYPES
from tests.server.house import open_house
from tests.structure.tree import PACKAGE

FOLDER = PACKAGE / "server" / "dashboard"
SCRIPTS = sorted(FOLDER.glob("*.js"))
PARSES = (
    r"innerHTML|outerHTML|insertAdjacentHTML|setHTML|createContextualFragment|DOMParser|document\.write|\beval\b|new Function"
    r"|srcdoc\s*=|javascript:|\.cssText|setTimeout\(\s*[\"'`]"
)


def test_the_page_is_some_small_files_that_say_what_they_are_for() -> None:
    """Files: no script is over 500 lines, each begins with what it is for, and no other kind of file is there."""
    assert {path.suffix for path in FOLDER.iterdir() if path.is_file()} == {".html", *TYPES}
    for path in SCRIPTS:
        text = path.read_text(encoding="utf-8")
        assert text.startswith("// ")
        assert text.count("\n") <= 500


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_makes_anything_but_text_of_a_text(path: Path) -> None:
    """The dashboard: no parser of HTML, no code or style out of a string, no address of another host."""
    text = path.read_text(encoding="utf-8")
    assert re.findall(PARSES, text) == []
    assert re.findall(r"https?://", text) == []


def test_the_page_has_no_script_or_style_in_it_and_all_that_it_refers_to_is_there() -> None:
    """The dashboard: no build step, no outside host; every import, script, style and picture is a file beside it."""
    html = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"<script(?![^>]* src=)|<style|\son\w+=|\sstyle=|https?://", html) == []
    referred = re.findall(r'(?:src|href)="dashboard/([^"]+)"', html)
    for path in SCRIPTS:
        referred += re.findall(r'from "\./([^"]+)"', path.read_text(encoding="utf-8"))
    here = {path.name for path in FOLDER.iterdir()} - {"index.html"}
    assert set(referred) == here


async def test_the_page_and_its_files_are_served_without_a_token_and_under_its_policy() -> None:
    """SRV-6: they hold nothing of anybody's; what is none of them is not there."""
    async with open_house() as house:
        for path in (
            "/",
            "/dashboard",
            *(f"/dashboard/{each.name}" for each in FOLDER.iterdir() if each.suffix in TYPES),
        ):
            answer = await house.agent.get(path)
            assert answer.status_code == 200, path
            assert answer.headers["content-security-policy"] == HEADERS["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            kind = TYPES.get(f".{path.rpartition('.')[2]}", "text/html; charset=utf-8")
            assert answer.headers["content-type"] == kind
        for path in ("index.html", "..%2Fhome.py", "nothing.js", "__init__.py", "%2e%2e/%2e%2e"):
            assert (await house.agent.get(f"/dashboard/{path}")).status_code == 404


async def test_beyond_loopback_the_page_is_there_for_who_has_no_token_yet() -> None:
    """SRV-6: it has the form to log in, so it needs none itself; what it shows does."""
    access = Access.on("0.0.0.0", operator_token="operator-token-0123", agent_token="agent-token-01234567")
    async with open_house(access=access) as house, httpx2.AsyncClient(base_url=house.url) as anybody:
        for path in ("/", "/dashboard", "/dashboard/app.js"):
            assert (await anybody.get(path)).status_code == 200
        for path in ("/snapshot", "/events", "/runs"):
            assert (await anybody.get(path)).status_code == 401


def test_its_policy_allows_its_own_files_and_nothing_else() -> None:
    """The dashboard: by default nothing; no inline code, no frame around it, no text as HTML."""
    policy = dict(each.strip().partition(" ")[::2] for each in HEADERS["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert {policy[name] for name in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
    assert {policy[name] for name in ("base-uri", "form-action", "frame-ancestors", "trusted-types")} == {"'none'"}
    assert policy["require-trusted-types-for"] == "'script'"
