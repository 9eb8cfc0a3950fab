"""``concorde-trio simulate``: what a person at a terminal gets."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from concorde_trio.cli import main
from tests.cases.files import HERE, signal_cases

CASE = HERE / "signals" / "philosophers.json"


def run(*arguments: str) -> int:
    """The exit status of ``concorde-trio simulate``."""
    try:
        return int(main(["simulate", *arguments]) or 0)
    except SystemExit as left:
        return int(left.code or 0)


def test_it_prints_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    """LCK-2: the philosophers, and nothing else on either stream."""
    assert run(str(CASE)) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == signal_cases()["philosophers"]["expected"]
    assert shown.err == ""


def test_it_draws_the_timeline_where_it_is_told_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An SVG, beside the result."""
    assert run(str(CASE), "--svg", str(tmp_path / "timeline.svg")) == 0
    assert json.loads(capsys.readouterr().out)["start_order"]
    assert ElementTree.parse(tmp_path / "timeline.svg").getroot().get("role") == "img"


def test_a_drawing_that_cannot_be_written_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1, and the name of the file."""
    assert run(str(CASE), "--svg", str(tmp_path / "nowhere" / "timeline.svg")) == 1
    assert "cannot write" in capsys.readouterr().err


def test_a_file_that_is_no_scenario_gets_an_error_that_names_the_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Status 2, and one sentence."""
    file = tmp_path / "case.json"
    file.write_text('{"signals": [{"id": "s", "kind": "k", "at": 0, "prompts": [{"id": "r", "duration": "x"}]}]}')
    assert run(str(file)) == 2
    assert 'signals[0].prompts[0].duration: expected seconds of at least 0, got "x"' in capsys.readouterr().err
