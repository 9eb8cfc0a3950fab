"""The demo's check finds what it is there to find: each planted fault is reported, and nothing else."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from concorde_trio.demo.check import check
from concorde_trio.demo.errands import files_after
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
HEARD = "what was said meanwhile was heard once, in order"
FILES = "the files say what was done"
LEFT = "no process is left"


def test_a_household_in_order_has_no_faults() -> None:
    """Demo: and everything was looked at."""
    findings = check(good_evidence())
    assert [finding.name for finding in findings if not finding.right] == []
    assert {finding.name for finding in findings} == {
        *(OVERLAP, ORDER, ATTRIBUTED, NOBODY, BUDGET, BOOKS, DONE, HEARD, FILES, ENDED, LEFT)
    }
    assert all(finding.looked_at > 0 and not finding.not_checked for finding in findings)


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
    placed = attrs.evolve(together, files=files_after(together.plan))
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
    assert "errand 5 spent 34, and the server has it under no such errand" in found[BUDGET]


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
    again = next(line for line in evidence.journal if line.errand == 4 and line.what == "start")
    assert set(faults(attrs.evolve(evidence, journal=[again, *evidence.journal]))) == {DONE}
    without = [line for line in evidence.journal if line.errand != 4]
    assert DONE in faults(attrs.evolve(evidence, journal=without))
    strange = attrs.evolve(again, errand=99)
    assert faults(attrs.evolve(evidence, journal=[*evidence.journal, strange]))[DONE] == (
        "errand 99 was done, and nobody had asked for it",
    )


def test_a_run_in_the_wrong_session_is_found() -> None:
    """Demo: then its locks would protect nothing."""
    evidence = good_evidence()
    journal = [
        attrs.evolve(line, session="bob") if line.errand == 5 and line.session else line for line in evidence.journal
    ]
    assert set(faults(attrs.evolve(evidence, journal=journal))) == {DONE}


@pytest.mark.parametrize("change", ["lost", "twice", "swapped"])
def test_something_said_meanwhile_that_was_lost_repeated_or_reordered_is_found(change: str) -> None:
    """SES-10: by what the model was sent."""
    evidence = good_evidence()
    (line,) = (line for line in evidence.journal if line.what == "heard")
    head, *parts = str(line.text).replace("\n---\n", "\n", 1).split("\n")
    texts = {"lost": parts[:1], "twice": [*parts, parts[0]], "swapped": parts[::-1]}[change]
    other = attrs.evolve(line, text=head + "\n" + "\n---\n".join(texts))
    journal = [other if each is line else each for each in evidence.journal]
    assert set(faults(attrs.evolve(evidence, journal=journal))) == {HEARD}


def test_what_was_said_meanwhile_may_be_heard_in_two_messages() -> None:
    """SES-10: it is one message only if both waited."""
    evidence = good_evidence()
    (line,) = (line for line in evidence.journal if line.what == "heard")
    one, other = str(line.text).split("\n", 1)[1].split("\n---\n")
    place = evidence.journal.index(line)
    journal = [*evidence.journal]
    journal[place : place + 1] = [attrs.evolve(line, text=one), attrs.evolve(line, text=other)]
    assert faults(attrs.evolve(evidence, journal=journal)) == {}


@pytest.mark.parametrize("change", [{"garden/diary.txt": "nothing\n"}, {"kitchen/novel.txt": "And then.\n"}])
def test_a_file_that_says_something_else_is_found(change: dict[str, str]) -> None:
    """Demo: two who add to one file at once lose a line."""
    evidence = good_evidence()
    assert set(faults(attrs.evolve(evidence, files={**evidence.files, **change}))) == {FILES}
    gone = {path: text for path, text in evidence.files.items() if path != "garden/diary.txt"}
    assert faults(attrs.evolve(evidence, files=gone)) == {FILES: ("garden/diary.txt is gone",)}


def test_an_ending_that_was_not_meant_or_is_not_true_is_found() -> None:
    """Demo: what the server says of a run must be what was planned, and what its model did."""
    evidence = good_evidence()
    assert faults(attrs.evolve(evidence, ended={**evidence.ended, 1: "failed"})) == {
        ENDED: ("errand 1 had to end as done, and ended as failed",)
    }
    journal = [
        attrs.evolve(line, what="broke") if line.errand == 2 and line.what == "finish" else line
        for line in evidence.journal
    ]
    assert faults(attrs.evolve(evidence, journal=journal)) == {
        ENDED: ("errand 2 is said to be done, and its model gave 0 answers",)
    }


def test_a_process_that_is_left_is_found() -> None:
    """Demo: by its number."""
    found = faults(attrs.evolve(good_evidence(), running=["process 7, started for an errand"]))
    assert found == {LEFT: ("process 7, started for an errand",)}


def test_where_there_is_nothing_to_look_at_nothing_is_right() -> None:
    """Demo: no check passes because its evidence is missing."""
    empty = attrs.evolve(
        good_evidence(),
        plan=(),
        journal=(),
        requests=(),
        ledger=(),
        books=(),
        ended={},
        left=good_evidence().budget,
        files=files_after(()),
    )
    assert set(faults(empty)) == {OVERLAP, ORDER, ATTRIBUTED, NOBODY, BUDGET, BOOKS, DONE, HEARD, ENDED, LEFT}


# --- a real model -----------------------------------------------------------------------------------------------------


def real(evidence: Evidence) -> Evidence:
    """The same, of a model that may do what it likes."""
    return attrs.evolve(evidence, scripted=False)


def not_checked(evidence: Evidence) -> set[str]:
    """The checks that say that they could not look at everything."""
    return {finding.name for finding in check(evidence) if finding.not_checked}


def test_a_real_model_that_does_as_it_is_asked_is_checked_as_a_script_is() -> None:
    """Demo: nothing is left out then."""
    assert faults(real(good_evidence())) == {}
    assert not_checked(real(good_evidence())) == set()


def test_what_a_real_model_did_otherwise_is_not_a_fault_and_is_said() -> None:
    """Demo: it spent nothing, wrote another list, and gave no answer; the finding says which, and why."""
    evidence = good_evidence()
    journal = [line for line in evidence.journal if (line.errand, line.what) != (6, "spent")]
    other = attrs.evolve(
        real(evidence),
        journal=journal,
        ledger=[spend for spend in evidence.ledger if spend.errand != 6],
        books=[],
        left=evidence.left + 18,
        ended={**evidence.ended, 6: "failed"},
        files={**evidence.files, "kitchen/shopping.txt": "beer\n"},
    )
    assert faults(other) == {}
    assert not_checked(other) == {DONE, BOOKS, FILES, ENDED}
    said = [words for finding in check(other) for words in finding.not_checked]
    assert any("errand 6 had to spend [18], and spent []" in words for words in said)
    assert "errand 6 ended as failed, maybe while it spent" in said


def test_a_real_model_that_does_nothing_leaves_nothing_to_check() -> None:
    """Demo: that is said, and nothing is called right."""
    evidence = good_evidence()
    idle = attrs.evolve(
        real(evidence), journal=[], requests=[], ledger=[], books=[], left=evidence.budget, files={}, ended={}
    )
    assert faults(idle) == {}
    assert not_checked(idle) == {finding.name for finding in check(idle)}


def test_locks_attribution_of_nobody_and_processes_are_checked_whatever_a_model_does() -> None:
    """LCK-2, TAG-3, REC-6: these promises hold for every model."""
    evidence = real(good_evidence())
    assert set(faults(moved(evidence, 5, 5.0, only="finish"))) == {OVERLAP}
    assert set(faults(moved(evidence, 5, 100.0))) == {ORDER}
    assert set(faults(attrs.evolve(evidence, running=["process 7"]))) == {LEFT}
    wrong = Asked(path="GET /budget", claims=None, tags=(TAG, TAG), attributed=3)
    assert set(faults(attrs.evolve(evidence, requests=[*evidence.requests, wrong]))) == {NOBODY}
    assert set(faults(attrs.evolve(evidence, left=evidence.left + 15))) == {BUDGET, BOOKS}


def test_a_program_under_another_errands_number_proves_no_overlap() -> None:
    """Demo: a real model may type a wrong number; its program's lines say nothing about locks then."""
    evidence = real(good_evidence())
    late = max(line.at for line in evidence.journal if line.errand == 13)
    lines = [Line(at=late, what="began", errand=5, pid=77), Line(at=late, what="told", errand=5, told=13, pid=77)]
    found = attrs.evolve(evidence, journal=[*evidence.journal, *lines])
    assert faults(found) == {}
    assert ATTRIBUTED in not_checked(found)


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


def test_an_errand_that_was_never_begun_held_nothing() -> None:
    """LCK-4: its bookkeeper may be told of it while another has the budget; that is no overlap."""
    evidence = real(good_evidence())
    busy = next(line.at for line in evidence.journal if line.errand == 5 and line.what == "spent")
    rest = [line for line in evidence.journal if line.errand != 6]
    told = [Line(at=busy + number, what=what, errand=6, pid=1) for number, what in enumerate(("post", "posted"), 1)]
    journal = sorted([*rest, *told], key=lambda line: line.at)
    found = attrs.evolve(evidence, journal=journal, ended={**evidence.ended, 6: "cancelled"})
    assert OVERLAP not in faults(found) and ORDER not in faults(found)
