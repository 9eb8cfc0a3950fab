"""The dashboard beside the demo: the household as a person sees it who starts ``concorde-trio demo`` and opens its link."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.watched_page import WatchedPage

pytestmark = pytest.mark.slow


@pytest.fixture
def link(tmp_path: Path) -> Iterator[str]:
    """The printed link of a demo that goes on serving at its end."""
    command = [sys.executable, "-m", "concorde_trio", "demo", "--keep", "--svg", str(tmp_path / "drawing.svg")]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    assert demo.stdout is not None
    try:
        for line in demo.stdout:
            if found := re.search(r"in a browser: (\S+)", line):
                break
        else:
            raise AssertionError("the demo printed no link")
        rest = threading.Thread(target=demo.stdout.read)
        rest.start()
        yield found[1]
    finally:
        demo.terminate()
        demo.wait(30)
    rest.join()
    demo.stdout.close()


def test_the_household_is_watched_from_its_first_to_its_last_errand(chromium: Any, link: str) -> None:
    """Demo: who holds up whom, the held and post phases, the failure and the limit; at the end nothing is stuck."""
    with WatchedPage(chromium) as page:
        page.open(link)
        page.until_text("#stuck", "holds up")
        page.page.hover(".chip[data-run] >> nth=0")
        page.page.wait_for_selector("#card:not([hidden])")
        assert "the root of this chain" in page.page.inner_text("#card")
        page.page.wait_for_selector('.bar[data-phase="post"]')
        page.until_text("#stuck", "Nothing is stuck")
        page.show("signals")
        page.until("() => document.querySelectorAll('#panel-signals .badge[data-phase=done]').length >= 9")
        page.show("runs")
        states = set(page.texts("#panel-runs .badge"))
        assert {"done", "failed", "limited"} <= states
        page.check()
