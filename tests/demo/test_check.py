"""The demo's check finds what it is there to find: each planted fault is reported, and nothing else."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from concorde_trio.demo.check import check
from concorde_trio.demo.evidence import Asked, Evidence, Line, Spend, read_journal
from tests.demo.evidence import TAG, good_evidence, moved


def faults(evidence: Evidence) -> dict[str, tuple[str, ...]]:
    """What is found, by the name of the check."""
    return {finding.name: finding.faults for finding in check(evidence) if not finding.right}


OVERLAP = "no two runs that share a lock overlapped"
ORDER = "what shares a lock kept its order"
ATTRIBUTED = "every tagged request was attributed to its run"
NOBODY = "no other request was attributed to anybody"
BUDGET = "the budget is what was spent"
BOOKS = "every purchase is in the books"
DONE = "every errand was done once, as it was asked for"
ENDED = "every errand ended as it had to"
LEFT = "no process is left"


def test_a_household_in_order_has_no_faults() -> None:
    """Demo: and everything was looked at."""
    findings = check(good_evidence())
    assert [finding.name for finding in findings if not finding.right] == []
    assert {finding.name for finding in findings} == {
        *(OVERLAP, ORDER, ATTRIBUTED, NOBODY, BUDGET, BOOKS, DONE, ENDED, LEFT)
    }
    assert all(finding.looked_at > 0 for finding in findings)


def test_an_overlap_is_found() -> None:
    """Demo: the last line of a run is after the first line of one that shares a lock with it."""
    evidence = moved(good_evidence(), 5, 5.0, only="finish")
    assert set(faults(evidence)) == {OVERLAP}
    assert any("5 and 6 both had budget" in fault for fault in faults(evidence)[OVERLAP])


def test_a_post_phase_that_does_not_hold_its_locks_is_found() -> None:
    """Demo: the bookkeeper's lines belong to the run."""
    evidence = moved(good_evidence(), 6, 0.35, only="posted")
    assert faults(evidence) == {OVERLAP: ("errands 6 and 7 both had budget, for 250.0 ms",)}


def test_a_child_that_outlives_its_run_is_found() -> None:
    """Demo: a sign of life of any process of an errand counts."""
    evidence = good_evidence()
    late = max(line.at for line in evidence.journal if line.errand == 13) - 1
    beat = Line(at=late, what="beat", errand=9, pid=77)
    assert set(faults(attrs.evolve(evidence, journal=sorted([*evidence.journal, beat], key=lambda line: line.at)))) == {
        OVERLAP
    }


def test_two_runs_of_a_message_may_wait_for_their_bookkeeper_together() -> None:
    """Demo: an ended run is not in the way of its sister, but a running one is."""
    together = attrs.evolve(
        good_evidence(),
        plan=[
            attrs.evolve(message, errands=tuple(attrs.evolve(errand, place="garden") for errand in message.errands))
            if message.kind == "party.planned"
            else message
            for message in good_evidence().plan
        ],
    )
    placed = attrs.evolve(
        together,
        journal=[
            attrs.evolve(line, place="garden") if line.errand in (11, 12) and line.place else line
            for line in together.journal
        ],
    )
    assert faults(placed) == {}
    assert set(faults(moved(placed, 11, 0.3, only="finish"))) == {OVERLAP}


def test_a_swapped_order_is_found() -> None:
    """Demo: who was asked later was served first, although they never met."""
    evidence = moved(good_evidence(), 5, 100.0)
    assert set(faults(evidence)) == {ORDER}
    assert "errand 6 had budget before errand 5, which was asked for earlier" in faults(evidence)[ORDER]


@pytest.mark.parametrize("attributed", [4, None])
def test_a_wrong_attribution_is_found(attributed: int | None) -> None:
    """Demo: to somebody else, or to nobody."""
    evidence = good_evidence()
    wrong = Asked(path="PUT /budget", claims=5, tags=(TAG,), attributed=attributed)
    (fault,) = faults(attrs.evolve(evidence, requests=[*evidence.requests, wrong]))[ATTRIBUTED]
    whom = "nobody" if attributed is None else f"errand {attributed}"
    assert fault == f"PUT /budget came from errand 5, and was attributed to {whom}"


def test_an_agent_that_was_told_to_be_another_is_found() -> None:
    """Demo: the agents' side of the same."""
    evidence = good_evidence()
    journal = [
        attrs.evolve(line, told=1) if (line.what, line.errand) == ("told", 2) else line for line in evidence.journal
    ]
    assert faults(attrs.evolve(evidence, journal=journal)) == {
        ATTRIBUTED: ("errand 2 asked who it was, and was told: errand 1",)
    }


@pytest.mark.parametrize(("claims", "tags"), [(3, ()), (None, (TAG,)), (3, (TAG, TAG)), (None, ())])
def test_a_request_without_one_right_tag_that_is_attributed_is_found(claims: int | None, tags: tuple[str, ...]) -> None:
    """Demo: there is no fallback."""
    evidence = good_evidence()
    wrong = Asked(path="GET /budget", claims=claims, tags=tags, attributed=3)
    assert set(faults(attrs.evolve(evidence, requests=[*evidence.requests, wrong]))) == {NOBODY}


def test_a_lost_update_is_found() -> None:
    """Demo: two have read the same budget, and the later wrote over what the earlier had written."""
    evidence = good_evidence()
    assert set(faults(attrs.evolve(evidence, left=evidence.left + 15))) == {BUDGET, BOOKS}
    (fault,) = faults(attrs.evolve(evidence, left=evidence.left + 15))[BUDGET]
    assert fault.endswith("an update was lost, 15 too much")


def test_a_purchase_under_another_name_is_found() -> None:
    """Demo: the sum is right, and still it was not errand 5 that spent it."""
    evidence = good_evidence()
    ledger = [Spend(errand=6, amount=15) if spend.errand == 5 else spend for spend in evidence.ledger]
    found = faults(attrs.evolve(evidence, ledger=ledger))
    assert set(found) == {BUDGET, BOOKS}
    assert "errand 5 spent 15, and the server has it under no such errand" in found[BUDGET]


@pytest.mark.parametrize(
    "books",
    [
        lambda books: books[:-1],
        lambda books: [books[1], books[0], *books[2:]],
        lambda books: [*books, books[-1]],
        lambda books: [books[0].replace("1. ", "2. ", 1), *books[1:]],
        lambda books: [*books, "coffee"],
    ],
    ids=["lost", "swapped", "twice", "numbered wrong", "scribbled"],
)
def test_books_that_were_written_by_two_at_once_are_found(books: object) -> None:
    """Demo: a line that is missing, or does not follow from the one before it."""
    evidence = good_evidence()
    assert set(faults(attrs.evolve(evidence, books=books(list(evidence.books))))) == {BOOKS}  # type: ignore[operator]


def test_a_run_that_was_started_twice_or_never_is_found() -> None:
    """Demo: at most once, and at least."""
    evidence = good_evidence()
    again = next(line for line in evidence.journal if line.errand == 4)
    assert set(faults(attrs.evolve(evidence, journal=[again, *evidence.journal]))) == {DONE}
    without = [line for line in evidence.journal if line.errand != 4]
    assert DONE in faults(attrs.evolve(evidence, journal=without))
    strange = attrs.evolve(again, errand=99)
    assert faults(attrs.evolve(evidence, journal=[*evidence.journal, strange]))[DONE] == (
        "errand 99 was done, and nobody had asked for it",
    )


@pytest.mark.parametrize("change", [{"session": "bob"}, {"place": "garden"}])
def test_a_run_in_the_wrong_session_or_place_is_found(change: dict[str, str]) -> None:
    """Demo: then its locks would protect nothing."""
    evidence = good_evidence()
    journal = [attrs.evolve(line, **change) if line.errand == 1 else line for line in evidence.journal]
    assert set(faults(attrs.evolve(evidence, journal=journal))) == {DONE}


def test_an_ending_that_was_not_meant_or_is_not_true_is_found() -> None:
    """Demo: what the server says of a run must be what was planned, and what the agent knows."""
    evidence = good_evidence()
    assert faults(attrs.evolve(evidence, ended={**evidence.ended, 1: "failed"})) == {
        ENDED: ("errand 1 had to end as done, and ended as failed",)
    }
    journal = [
        attrs.evolve(line, how="stopped") if line.errand == 2 and line.how else line for line in evidence.journal
    ]
    assert faults(attrs.evolve(evidence, journal=journal)) == {
        ENDED: ("errand 2 is said to be done, and its own last word is stopped",)
    }


def test_a_process_that_is_left_is_found() -> None:
    """Demo: by its number."""
    found = faults(attrs.evolve(good_evidence(), running=["process 7, started for an errand"]))
    assert found == {LEFT: ("process 7, started for an errand",)}


def test_where_there_is_nothing_to_look_at_nothing_is_right() -> None:
    """Demo: no check passes because its evidence is missing."""
    empty = attrs.evolve(
        good_evidence(), plan=(), journal=(), requests=(), ledger=(), books=(), ended={}, left=good_evidence().budget
    )
    assert set(faults(empty)) == {OVERLAP, ORDER, ATTRIBUTED, NOBODY, BUDGET, BOOKS, DONE, ENDED, LEFT}


def test_a_journal_with_a_broken_line_is_refused(tmp_path: Path) -> None:
    """Demo: evidence that cannot be read is none, and the sentence says which line."""
    file = tmp_path / "journal"
    file.write_text(
        '{"at": 2, "what": "start", "errand": 1, "pid": 1}\n{"at": 1, "what": "beat", "errand": 1, "pid": 1}\n'
    )
    assert [line.at for line in read_journal(file)] == [1, 2]
    for broken in ('{"at": 3', "7", '{"at": 3}'):
        file.write_text(f'{{"at": 2, "what": "start", "errand": 1, "pid": 1}}\n{broken}\n')
        with pytest.raises(ValueError, match="line 2 of"):
            read_journal(file)
