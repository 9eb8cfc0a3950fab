"""What the stores that speak SQL ask of a connection, so that one text of a query or a write serves them all.

The law: ``?`` stands for a parameter, whatever the driver calls it. Rows go in by the statement's name, many at once; how
a database takes many rows in one statement is its own business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Cursor(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""
        ...

    def fetchone(self) -> Any:
        """The next row, None if there is none."""
        ...

    def fetchall(self) -> list[Any]:
        """The rows that are left."""
        ...


class Reads(Protocol):
    """A connection that queries run on. ``begin`` and ``rollback`` around several give all of them one snapshot."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor:
        """Run one statement."""
        ...


class Writes(Reads, Protocol):
    """A connection inside a write transaction, with the statements of its database by name."""

    def execute_named(self, name: str, parameters: Sequence[Any], /) -> Cursor:
        """Run a statement that takes parameters, not rows."""
        ...

    def execute_rows(self, name: str, rows: Sequence[Sequence[Any]], /) -> int:
        """Run a statement over all rows; how many rows of the table it changed."""
        ...

    def select_rows(self, name: str, rows: Sequence[Sequence[Any]], /) -> list[tuple[Any, ...]]:
        """Run a query over all rows; what it found."""
        ...
