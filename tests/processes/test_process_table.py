"""Who the descendants of a process are, however the table changes while it is read."""

from __future__ import annotations

import pytest

from concorde_trio.processes import guard

Table = dict[int, tuple[int, int, bool]]
"""By pid: the parent, the start time, whether it lives."""


def looking(monkeypatch: pytest.MonkeyPatch, *tables: Table, gone: frozenset[int] = frozenset()) -> list[int]:
    """The process table at each look in turn, the last for ever; ``gone``: ends between its listing and its look at."""
    looks: list[int] = []

    def table() -> Table:
        return tables[min(len(looks), len(tables)) - 1]

    def pids() -> list[int]:
        looks.append(len(looks) + 1)
        return [*table(), *(gone if len(looks) == 1 else ())]

    monkeypatch.setattr(guard, "_pids", pids)
    monkeypatch.setattr(guard, "_stat", lambda pid: table().get(pid))
    return looks


ROOT: Table = {1: (0, 0, True), 10: (1, 1, True)}
LEADER: Table = {11: (10, 2, False)}


def test_a_process_that_ended_while_the_table_was_read_hides_none_that_it_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SES-8: a shell starts two programs after the table was listed, and ends before it is looked at."""
    before = {**ROOT, **LEADER, 12: (10, 3, False)}
    after = {**before, 13: (10, 4, True), 14: (10, 5, True)}
    looking(monkeypatch, before, after)
    assert guard.descendants(10) == [(13, 4), (14, 5)]


def test_a_table_in_which_nobody_ends_is_read_no_more_often_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-8: once, or once more if somebody has ended before."""
    looks = looking(monkeypatch, {**ROOT, 12: (10, 3, True), 15: (12, 4, True), 16: (1, 4, True)})
    assert guard.descendants(10) == [(12, 3), (15, 4)] and len(looks) == 1
    looks = looking(monkeypatch, {**ROOT, **LEADER, 12: (10, 3, True)})
    assert guard.descendants(10) == [(12, 3)] and len(looks) == 2


def test_children_of_one_that_is_gone_altogether_are_found_where_they_are_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """SES-8: their parent was listed, and is unknown by now."""
    looking(monkeypatch, {**ROOT, 13: (12, 4, True)}, {**ROOT, 13: (10, 4, True)}, gone=frozenset({12}))
    assert guard.descendants(10) == [(13, 4)]


def test_a_table_that_never_comes_to_rest_is_read_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """REC-6: whoever kills looks again anyway."""
    tables = [{**ROOT, 100 + number: (10, 3, False), 12: (10, 3, True)} for number in range(50)]
    looks = looking(monkeypatch, *tables)
    assert guard.descendants(10) == [(12, 3)] and len(looks) == 10
