"""Whose turn it is to write: who came while another wrote goes before that one's next time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from concorde_trio.stores.sqlite_place import Place
from concorde_trio.stores.sqlite_turnstile import Turnstile


@pytest.fixture
def turnstiles(tmp_path: Path) -> Iterator[list[Turnstile]]:
    """Three writers of one file."""
    made = [Turnstile(Place(tmp_path / "q.db")) for _ in range(3)]
    yield made
    for each in made:
        each.close()


def test_one_writer_is_inside(turnstiles: list[Turnstile]) -> None:
    """REC-5: the others step no further than to be next, and entering again is being inside."""
    one, two, three = turnstiles
    assert one.try_enter()
    assert one.try_enter()
    assert not two.try_enter()
    assert two.has_turn
    assert not three.try_enter()
    assert not three.has_turn


def test_a_writer_that_is_always_busy_stands_behind_who_came_meanwhile(turnstiles: list[Turnstile]) -> None:
    """SIG-6: its next time comes after the other's, however quick it is."""
    busy, other, _ = turnstiles
    for _ in range(5):
        assert busy.try_enter()
        assert not other.try_enter()
        busy.leave()
        assert not busy.try_enter()
        assert other.try_enter()
        assert not busy.try_enter()
        other.leave()


def test_who_leaves_or_dies_lets_the_next_one_go(turnstiles: list[Turnstile]) -> None:
    """SIG-6: a place in the line that is given up, by leaving or by the end of its process, stops nobody."""
    one, two, three = turnstiles
    assert one.try_enter()
    assert not two.try_enter()
    two.leave()
    assert not three.try_enter()
    assert three.has_turn
    one.leave()
    assert three.try_enter()
    three.leave()
    assert two.try_enter()
