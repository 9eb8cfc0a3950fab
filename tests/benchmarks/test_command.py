"""``python -m benchmarks``: what it is asked, what it shows, and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import pytest

from benchmarks import __main__ as command
from benchmarks import machine, page, results
from benchmarks.catalog import SUITES
from benchmarks.peers.catalog import PEERS
from benchmarks.running import Asked, Measured, Watcher
from tests.benchmarks.fakes import MACHINE, figure

Ran = list[tuple[list[str], Asked]]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> tuple[Ran, Callable[[Measured], None]]:
    """What was asked for, and how to say what each suite finds."""
    asked: Ran = []
    gives = [Measured(figures=(figure(bound=5.0),))]

    def run(suites: Sequence[str], how: Asked, watcher: Watcher) -> dict[str, Measured]:
        asked.append((list(suites), how))
        for suite in suites:
            watcher.begins(suite)
            watcher.step(suite, "a phase", 1, 2)
            watcher.ends(suite, gives[-1])
        return dict.fromkeys(suites, gives[-1])

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(machine, "describe", lambda folder=None: MACHINE)
    monkeypatch.setattr(machine, "commit", lambda: "abc")
    return asked, gives.append


def test_everything_is_measured_unless_suites_are_named(ran: tuple[Ran, Callable[[Measured], None]]) -> None:
    """Benchmarks: no words, suites, or peers, of which each means the suite of peers with these only."""
    asked, _ = ran
    assert command.main([]) == 0
    assert command.main(["strict", "runs", "--quick", "--seed", "3"]) == 0
    assert command.main(["huey", "serial"]) == 0
    assert asked == [
        (list(SUITES), Asked()),
        (["strict", "runs"], Asked(quick=True, seed=3)),
        (["peers"], Asked(only=("huey", "serial"))),
    ]


def test_a_goal_that_was_missed_is_named_and_decides_only_when_it_is_a_ratio(
    ran: tuple[Ran, Callable[[Measured], None]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Benchmarks: no absolute number decides a verdict."""
    _, gives = ran
    gives(Measured(figures=(figure(bound=50.0),)))
    assert command.main(["strict"]) == 0
    assert command.main(["strict", "--check"]) == 1
    said = capsys.readouterr()
    assert "missed: strict: fake: a share: 11 of 50, NOT MET" in said.err
    assert "a limit: 22 (0.5 times)" in said.out
    gives(Measured(figures=(figure(bound=50.0, absolute=True),)))
    assert command.main(["strict", "--check"]) == 0
    assert "not met on this machine" in capsys.readouterr().err


def test_a_suite_that_breaks_is_told_with_its_words_and_the_status_is_2(
    ran: tuple[Ran, Callable[[Measured], None]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Benchmarks: what was not measured is not passed over."""
    _, gives = ran
    gives(Measured(broke="ValueError: [no] such thing"))
    assert command.main(["strict"]) == 2
    said = capsys.readouterr()
    assert "ValueError: [no] such thing" in said.out
    assert "broke: strict" in said.err


def test_a_result_is_kept_and_compared_with(
    ran: tuple[Ran, Callable[[Measured], None]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Benchmarks: --json and --against; - for standard output and nothing else on it."""
    _, gives = ran
    kept = tmp_path / "kept.json"
    assert command.main(["strict", "--json", str(kept), "--plots", str(tmp_path / "plots")]) == 0
    assert results.read(kept).figures()["strict", "fake"].value == 11.0
    gives(Measured(figures=(figure([20.0, 22.0, 24.0]),)))
    assert command.main(["strict", "runs", "--against", str(kept)]) == 0
    said = capsys.readouterr().out
    assert "2 of what is beside it" in said
    assert "better" in said
    assert "new" in said
    assert command.main(["strict", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["commit"] == "abc"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing"], "no such suite or peer: nothing; there are: lock-table"),
        (["--against", "nowhere.json"], "cannot read nowhere.json"),
        (["--json", "nowhere/result.json"], "there is no folder nowhere"),
        (["--publish", "strict"], "--publish measures everything"),
        (["--folder", "nowhere"], "nowhere is no folder"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_measured(
    words: list[str],
    says: str,
    ran: tuple[Ran, Callable[[Measured], None]],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Benchmarks: nobody waits for twelve minutes to hear of a spelling."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        command.main(words)
    assert exit_.value.code == 2
    assert says in capsys.readouterr().err
    assert ran[0] == []


def test_the_list_names_every_suite_and_peer(capsys: pytest.CaptureFixture[str]) -> None:
    """Benchmarks: --list."""
    assert command.main(["--list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in [*SUITES, *PEERS])


def test_the_help_shows_examples_that_are_accepted() -> None:
    """Benchmarks: every example of --help is taken by the command."""
    lines = [line.split("   ")[0].split()[3:] for line in command.EXAMPLES.splitlines()[1:]]
    assert len(lines) > 5
    for words in lines:
        asked = command.parser().parse_args(words)
        assert set(asked.names) <= {*SUITES, *PEERS}


def test_what_is_published_is_the_result_the_page_and_the_charts(
    ran: tuple[Ran, Callable[[Measured], None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Benchmarks: one command writes all three; nothing if a suite broke."""
    _, gives = ran
    monkeypatch.setattr(results, "KEPT", tmp_path / "results" / "kept.json")
    monkeypatch.setattr(command, "_short", str)
    monkeypatch.setattr(page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(page, "CHARTS", tmp_path / "charts")
    page.PAGE.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    assert command.main(["--publish"]) == 0
    text = page.PAGE.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| fake | 11 /s | 10 to 12 | a limit: 22 (0.5 times) | a share: 11 of 5, met |" in text
    assert text == page.with_figures(text, results.read(results.KEPT))
    gives(Measured(broke="no"))
    assert command.main(["--publish"]) == 2
    assert page.PAGE.read_text() == text


def test_the_table_says_how_each_peer_was_run_and_what_it_lacks(
    ran: tuple[Ran, Callable[[Measured], None]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Benchmarks: a rate without what was not done for it would be half of the truth."""
    _, gives = ran
    facts = {
        "lacks": "any order",
        "version": "9.9",
        "how": "one thread",
        "fsync": "each",
        "order": "broken 3 times in 10",
    }
    gives(Measured(figures=(attrs.evolve(figure(name="huey: jobs"), facts=facts),)))
    assert command.main(["huey"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "broken 3 times" in said
    assert "9.9" in said
    assert "any order" in said
