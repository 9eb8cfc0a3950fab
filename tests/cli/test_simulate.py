"""``simulate FILE``: one JSON object on stdout, a picture on the side, and errors that name the field."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.running import Command

SCENARIO = {
    "signals": [
        {"id": "s1", "kind": "task", "at": 0, "prompts": [{"id": "r1", "session": "[red]\x1b", "duration": 2.5}]},
        {"id": "s2", "kind": "task", "at": 1, "prompts": [{"id": "r2", "session": "[red]\x1b", "duration": 1}]},
    ]
}
CASES = Path(__file__).parents[1] / "cases"
PHILOSOPHERS = CASES / "signals" / "philosophers.json"
STALLED = CASES / "sessions" / "stalled-stream.json"


def test_a_scenario_gives_one_json_object_from_a_file_and_from_stdin(command: Command, here: Path) -> None:
    """LCK-2, as the scenario's times say it."""
    text = json.dumps(SCENARIO).replace("\\u001b", "")
    (here / "case.json").write_text(text)
    done = command("simulate", "case.json")
    assert (done.status, done.err) == (0, "")
    assert done.json["start_order"] == ["r1", "r2"]
    assert done.json["runs"]["r2"] == {"state": "done", "queued": 1.0, "started": 2.5, "ended": 3.5}
    assert command("simulate", "-", stdin=text).out == done.out == command("simulate", "case.json", "--json").out


def test_a_case_of_the_rules_is_played_as_expected(command: Command) -> None:
    """LCK-2."""
    expected = json.loads(PHILOSOPHERS.read_text())["expected"]
    found = command("simulate", str(PHILOSOPHERS)).json
    for run, fields in expected["runs"].items():
        assert found["runs"][run] == fields


def test_the_timeline_is_drawn_where_it_was_asked_for(command: Command, here: Path) -> None:
    """Lanes by session, as a picture that every viewer can read."""
    done = command("simulate", str(PHILOSOPHERS), "--svg", "out.svg")
    assert done.status == 0 and done.json["runs"]
    root = ElementTree.parse(here / "out.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    about = json.loads(PHILOSOPHERS.read_text())["about"]
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None and title.text == about.splitlines()[0]


def test_a_scenario_of_a_session_is_played_too(command: Command) -> None:
    """SES-5: one JSON object, and nothing of the failed turn on stderr."""
    done = command("simulate", str(STALLED))
    assert (done.status, done.err) == (0, "")
    assert done.json["expired"] == [{"kind": "llm", "epoch": 1, "waited": 300, "reason": "progress", "at": 301}]


def test_only_signals_are_drawn(command: Command, here: Path) -> None:
    """A timeline is of runs; a session has none. Nothing is played or written."""
    done = command("simulate", str(STALLED), "--svg", "out.svg")
    assert "--svg draws scenarios of signals only" in done.sentence() and done.status == 2
    assert not (here / "out.svg").exists()


@pytest.mark.parametrize("about", [None, 3, " \n", {}])
def test_a_timeline_of_which_nothing_is_said_is_named_after_its_file(
    command: Command, here: Path, about: object
) -> None:
    """A picture says what it is of."""
    (here / "case.json").write_text(json.dumps({"signals": [], "about": about}))
    assert command("simulate", "case.json", "--svg", "out.svg").status == 0
    assert ">case</title>" in (here / "out.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[]", "object"),
        ("{}", "signals"),
        ('{"signals": 3}', "signals"),
        ('{"signals": [{"id": "a"}]}', "signals[0].kind"),
        ('{"signals": [{"id": "a", "kind": "k", "at": 0, "prompts": [{"id": "r", "duration": -1}]}]}', "duration"),
        ('{"signals": [], "stop": {"at": 1, "mode": "now"}}', "stop.mode"),
        ('{"signals": [}', "line 1, column 14"),
        ("", "line 1, column 1"),
        ('{"inputs": []}', "model"),
        ('{"inputs": [], "model": [], "signals": []}', "inputs"),
        ('{"inputs": [], "model": [[[0, {"txt": "a"}]]]}', "model[0][0][1].txt"),
    ],
)
def test_what_is_no_scenario_names_the_field(command: Command, text: str, what: str) -> None:
    """A file that is no scenario gets an error that names the field, exit status 2."""
    done = command("simulate", "-", stdin=text)
    assert what in done.sentence() and done.status == 2


def test_a_file_that_cannot_be_read_or_written_is_one_sentence(command: Command, here: Path) -> None:
    """Misuse and failure."""
    (here / "latin.json").write_bytes(b'{"about": "\xe4"}')
    done = command("simulate", "latin.json")
    assert "latin.json is not UTF-8 at byte 11" in done.sentence() and done.status == 2
    done = command("simulate", str(PHILOSOPHERS), "--svg", "missing/out.svg")
    assert "missing/out.svg" in done.sentence() and done.status == 1
