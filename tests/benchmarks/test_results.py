"""A result is kept, read again, and compared with an earlier one."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import pytest

from benchmarks import results
from benchmarks.comparison import caution, changes, compare
from benchmarks.figures import Figure, Point
from concorde_trio.errors import UsageError
from tests.benchmarks.fakes import MACHINE, figure, result


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Benchmarks: every value of every round, with machine, versions, commit and seed."""
    kept = result(figure(bound=5.0, point=Point(chart="c", line="l", x=10)), figure(name="other", beside=None))
    file = tmp_path / "result.json"
    file.write_text(results.to_text(kept), encoding="utf-8")
    assert results.read(file) == kept
    assert json.loads(file.read_text())["suites"]["fake"]["figures"][0]["values"] == [10.0, 11.0, 12.0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no result"),
        ("[]", "no result"),
        ("{}", "no result"),
        ('{"format": 1}', "measure anew"),
        ('{"format": 2, "at": "now"}', "no result"),
        (results.to_text(result(figure())).replace('"unit": "/s",', ""), "no result"),
    ],
)
def test_a_file_that_is_no_result_is_refused_with_its_name(text: str, says: str, tmp_path: Path) -> None:
    """Benchmarks: --against says what was expected and what to do."""
    file = tmp_path / "some.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=f"some.json.*{says}"):
        results.read(file)
    with pytest.raises(UsageError, match=r"cannot read .*nothing\.json"):
        results.read(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    ("now", "then", "verdict", "ratio"),
    [
        (figure([10, 11, 12]), figure([5, 5.5, 6], beside=[20, 22, 24]), "better", 2.0),
        (figure([5, 5.5, 6], beside=[20, 22, 24]), figure([10, 11, 12]), "worse", 0.5),
        (figure([10, 11, 12], better="lower"), figure([5, 5.5, 6], better="lower"), "worse", 2.0),
        (figure([10, 11, 12], beside=None), figure([9, 10, 11], beside=None), "within the spread", 1.1),
        # Twice as fast on a machine that is twice as fast is as fast.
        (figure([10, 11, 12], beside=[20, 22, 24]), figure([5, 5.5, 6], beside=[10, 11, 12]), "within the spread", 2.0),
    ],
)
def test_a_change_counts_only_outside_of_the_spread(now: Figure, then: Figure, verdict: str, ratio: float) -> None:
    """Benchmarks: compared as a share of what stands beside it, where both have that."""
    change = compare(now, then)
    assert change is not None
    assert change.verdict == verdict
    assert change.ratio == pytest.approx(ratio)
    assert (change.relative is None) == (now.beside == ())


def test_a_result_says_when_others_were_at_work() -> None:
    """Benchmarks: on a busy machine figures say more of the others."""
    quiet = result(figure())
    suite = attrs.evolve(quiet.suites["fake"], load=(9.0, 1.0))
    assert quiet.busy() is None
    assert attrs.evolve(quiet, suites={"fake": suite}).busy() == (
        "Others were at work meanwhile: the load was up to 9 on 2 cores."
    )


def test_only_what_both_results_have_is_compared() -> None:
    """Benchmarks: a new figure, one that is gone, and one in another unit have no ratio."""
    now = result(figure(name="both"), figure(name="new"))
    then = result(figure(name="both"), figure(name="gone"))
    assert set(changes(now, then)) == {("fake", "both")}
    assert compare(figure(), attrs.evolve(figure(), unit="s")) is None


def test_a_comparison_says_what_makes_it_doubtful() -> None:
    """Benchmarks: another machine, another number of rounds."""
    other = result(figure(), quick=True, machine={**MACHINE, "processor": "another"})
    said = " ".join(caution(result(figure()), other))
    assert "processor differ" in said
    assert "--quick" in said
    assert caution(result(figure()), result(figure())) == []
