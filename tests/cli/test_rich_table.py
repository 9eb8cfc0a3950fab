"""How a terminal's columns are shared out: what is copied stays whole, what is long gives way."""

from __future__ import annotations

import pytest

from concorde_trio.cli.rich_table import fitted
from concorde_trio.cli.show import Cell, id_cell, name_cell, state_cell, time_cell

COLUMNS = ("ID", "SESSION", "STATE", "WAITED", "LAST")
RUN = "3f1c0a9b7d5e4c2a8f60-1"


def _row(last: Cell, session: str = "ann") -> tuple[Cell, ...]:
    return (id_cell(RUN), name_cell(session), state_cell("cancelled"), time_cell("1m01s+"), last)


def test_only_the_last_column_gives_way_to_a_long_error() -> None:
    """RUN-7: an error may be long; ids, states and times are whole beside it."""
    rows = [_row(Cell("it broke " * 100)), _row(Cell(""))]
    assert fitted(COLUMNS, rows, 76) == [22, 7, 9, 6, 32]
    assert fitted(COLUMNS, rows, 2000) == [22, 7, 9, 6, 900]


def test_a_long_name_folds_when_the_last_column_is_narrow_and_before_an_id_in_it() -> None:
    """CLM-7: a session's name may have 200 characters."""
    assert fitted(COLUMNS, [_row(Cell("x" * 300), "s" * 200)], 76) == [22, 31, 9, 6, 8]
    waits = Cell(f'{RUN} on session "ann"', whole=True)
    assert fitted(COLUMNS, [_row(waits, "s" * 200)], 76) == [22, 17, 9, 6, 22]


@pytest.mark.parametrize("room", [1, 20, 53])
def test_a_terminal_that_is_too_narrow_cuts_no_id(room: int) -> None:
    """RUN-6: somebody will copy it."""
    assert fitted(COLUMNS, [_row(Cell("x" * 300), "s" * 200)], room) == [22, 8, 9, 6, 8]


def test_a_table_without_rows_is_as_wide_as_its_titles() -> None:
    """SRV-2: nothing to list."""
    assert fitted(("ID", "SETTLED IN"), [], 80) == [2, 10]
