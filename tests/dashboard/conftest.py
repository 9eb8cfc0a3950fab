"""A real Chromium, a real server in a process of its own, and a page on which everything that goes wrong is written down."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.house import House
from tests.dashboard.watched_page import WatchedPage

CHROMIUM_PATH = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser, for the tests of one file."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not here: pip install playwright")
    if CHROMIUM_PATH is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM_PATH, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A served house whose database is new."""
    with House(tmp_path) as served:
        yield served


@pytest.fixture
def page(chromium: Any, house: House) -> Iterator[WatchedPage]:
    """The dashboard of the house, logged in by the printed link. At the end nothing may have gone wrong on it."""
    with WatchedPage(chromium) as watched:
        watched.open(house.link)
        yield watched
        watched.check()
