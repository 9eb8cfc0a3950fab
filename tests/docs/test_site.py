"""The documentation as a site: it builds offline without a warning, and every page and public name is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import concorde_trio
import concorde_trio.errors
import concorde_trio.testing
from docs.site.build import DOCS, SETTINGS, SiteError, build, make, navigation, pages, stage
from docs.site.linking import link_names, outside_code, unlink_outside
from tests.docs.pages import links

HERE = "reference/"
MADE = {"changelog.md"}


def test_every_page_is_in_the_navigation_once() -> None:
    """Docs: a page that no navigation leads to is read by nobody (docs/site/zensical.toml has it)."""
    written = [path for path in navigation() if not path.startswith(HERE) and path not in MADE]
    there = [page.relative_to(DOCS).as_posix() for page in pages()]
    assert sorted(written) == sorted(there), "write the page into nav of docs/site/zensical.toml"


def test_the_start_page_links_to_every_page() -> None:
    """Docs: who reads it in the repository has docs/README.md for a navigation."""
    start = DOCS / "README.md"
    led_to = {link.partition("#")[0] for link in links(start)}
    missing = {page.relative_to(DOCS).as_posix() for page in pages() if page != start} - led_to
    assert not missing, "write the page into the table of docs/README.md"


def test_lists_begin_after_an_empty_line() -> None:
    """Docs: the site's Markdown takes a list that follows a sentence at once for a part of the sentence."""
    wrong = []
    for page in pages():
        for code, piece in outside_code(page.read_text(encoding="utf-8")):
            if not code:
                wrong += [
                    (page.name, found)
                    for found in re.findall(r"^(?![ \-|]|\d+\.).+\n(- .*|1\. .*)", piece, re.MULTILINE)
                ]
    assert not wrong


def test_links_that_lead_out_of_the_docs_are_words_in_the_site() -> None:
    """Docs: the site has no sources; the changelog is a page of it."""
    text = (
        "[a test](../tests/x.py), [changes](../CHANGELOG.md#new), [running](running.md), [Trio](https://trio.example)"
    )
    assert unlink_outside(text, Path("page.md")) == (
        "a test, [changes](changelog.md), [running](running.md), [Trio](https://trio.example)"
    )


def test_the_first_mention_of_a_public_name_is_a_link() -> None:
    """Docs: not in headings, code or other links, and not again."""
    text = "# `Prompt`\n\n`Prompt` and `Prompt` and `prompt`\n\n```python\n`Prompt`\n```\n"
    linked = link_names(text, Path("how-to/page.md"), {"Prompt": "reference/signals.md#Prompt"})
    assert linked == text.replace("\n`Prompt` and", "\n[`Prompt`](../reference/signals.md#Prompt) and", 1)


def test_a_folder_that_is_no_site_is_left_alone(tmp_path: Path) -> None:
    """Docs: a slip in the folder's name removes nothing."""
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(SiteError, match="is no site"):
        build(tmp_path)
    assert (tmp_path / "mine.txt").exists()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built; a warning would have failed it."""
    folder = tmp_path_factory.mktemp("built") / "site"
    assert build(folder) == folder / "index.html"
    return folder


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_has_every_public_name(site: Path) -> None:
    """Docs: each exported name, exception and part of the testing package has an anchor; events, documents and routes do."""
    anchors = {
        anchor
        for page in (site / "reference").glob("*.html")
        for anchor in re.findall(r'<h[23] id="([^"]+)"', page.read_text(encoding="utf-8"))
    }
    errors = {name for name, value in vars(concorde_trio.errors).items() if isinstance(value, type)}
    assert not {*concorde_trio.__all__, *concorde_trio.testing.__all__, *errors} - anchors
    assert {"Gateway.run", "Prompt", "serve", "simulate", "RunStarted", "SignalDocument", "list_signals"} <= anchors


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault", ["[a page](gone.md)", "[a place](README.md#gone)", "<img src='https://x.example/y.png'>"]
)
def test_a_site_with_a_fault_is_not_built(fault: str, tmp_path: Path) -> None:
    """Docs: a page or a place that is not there, or something that another host has, ends the build with its name."""
    settings = SETTINGS.read_text(encoding="utf-8")
    settings = re.sub(r"^nav = .*?^\]", 'nav = [{ "Start" = "README.md" }]', settings, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "zensical.toml").write_text(settings, encoding="utf-8")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "README.md").write_text(f"# Start\n\n{fault}\n", encoding="utf-8")
    with pytest.raises(SiteError, match=r"gone|x\.example"):
        make(tmp_path)


@pytest.mark.slow
def test_what_is_staged_is_the_same_each_time(tmp_path: Path) -> None:
    """Docs: no address of an object, no order of a set, no time of day is in it."""
    for name in ("one", "two"):
        stage(tmp_path / name)
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert files
    assert all((tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes() for path in files)
    # An address would be the same within one process.
    assert not [path for path in files if path.suffix == ".md" and " at 0x" in (tmp_path / "one" / path).read_text()]
