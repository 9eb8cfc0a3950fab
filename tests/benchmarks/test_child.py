"""A suite in a process of its own: what it is asked, what it says, and how a broken one is told of."""

from __future__ import annotations

import gc
import io
import json
import time
from pathlib import Path

import pytest

from benchmarks import catalog, child, profiling, running
from benchmarks.bench import Bench, Skipped
from benchmarks.running import Asked
from tests.benchmarks.fakes import figure


def asked(**other: object) -> dict[str, object]:
    return {"suite": "fake", "quick": True, "seed": 5, "folder": None, "only": [], "profile": None} | other


def test_a_suite_says_how_far_it_is_and_then_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks: lines of JSON; what was measured before a part was skipped is kept."""

    def suite(bench: Bench):  # type: ignore[no-untyped-def]
        assert (bench.quick, bench.seed) == (True, 5)
        bench.in_turns("a phase", {"one": lambda: 1.0}, 2)
        yield figure()
        raise Skipped("the rest: not here")

    monkeypatch.setattr(gc, "collect", lambda: 0)  # of this process's garbage it would take seconds
    monkeypatch.setattr(catalog.Entry, "load", lambda entry: suite)
    monkeypatch.setitem(catalog.SUITES, "fake", catalog.Entry("nowhere:suite", "a fake"))
    out = io.StringIO()
    child.measure(asked(), out)  # type: ignore[arg-type]
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[-2] == {"phase": "a phase", "done": 3, "of": 3}
    found = lines[-1]["found"]
    assert found["broke"] is None
    assert found["skipped"] == ["the rest: not here"]
    assert [each["name"] for each in found["figures"]] == ["fake"]


def test_what_was_measured_before_a_suite_broke_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks: a long measurement is not lost by its last part."""

    def suite(bench: Bench):  # type: ignore[no-untyped-def]
        yield figure()
        raise ValueError("the last part")

    monkeypatch.setattr(catalog.Entry, "load", lambda entry: suite)
    monkeypatch.setitem(catalog.SUITES, "fake", catalog.Entry("nowhere:suite", "a fake"))
    out = io.StringIO()
    child.measure(asked(), out)  # type: ignore[arg-type]
    found = json.loads(out.getvalue())["found"]
    assert "ValueError: the last part" in found["broke"]
    assert len(found["figures"]) == 1


@pytest.mark.slow
def test_a_suite_that_breaks_is_told_of_in_its_own_words(tmp_path: Path) -> None:
    """Benchmarks: the traceback's end, and the next suite is measured."""
    told: list[str] = []

    class Watcher:
        def begins(self, suite: str) -> None:
            told.append(suite)

        def step(self, suite: str, phase: str, done: int, of: int) -> None:
            raise AssertionError

        def ends(self, suite: str, measured: running.Measured) -> None:
            told.append(f"{suite} over")

    found = running.run(["no such suite", "nor this"], Asked(folder=tmp_path), Watcher())
    assert told == ["no such suite", "no such suite over", "nor this", "nor this over"]
    assert "KeyError: 'no such suite'" in (found["no such suite"].broke or "")


def test_a_profile_names_the_functions_where_the_time_goes(tmp_path: Path) -> None:
    """Benchmarks: --profile writes a file for people and one for tools."""

    def spend() -> None:
        until = time.process_time() + 0.01
        while time.process_time() < until:
            pass

    with profiling.profiled(str(tmp_path / "where"), "fake"):
        spend()
    assert "(spend)" in (tmp_path / "where" / "fake.txt").read_text()
    assert (tmp_path / "where" / "fake.prof").stat().st_size
    with profiling.profiled(None, "fake"):
        spend()


@pytest.mark.slow
def test_a_suite_that_is_interrupted_ends_what_it_has_started(tmp_path: Path) -> None:
    """Benchmarks: Ctrl-C leaves no process and no database behind."""

    class Impatient:
        def begins(self, suite: str) -> None:
            pass

        def step(self, suite: str, phase: str, done: int, of: int) -> None:
            raise KeyboardInterrupt

        def ends(self, suite: str, measured: running.Measured) -> None:
            raise AssertionError

    with pytest.raises(KeyboardInterrupt):
        running.run(["release"], Asked(folder=tmp_path), Impatient())
    assert list(tmp_path.iterdir()) == []
