"""Moving a stopped queue to another place: every row, every number ever given out, checked before it counts.

The law: while it is read nobody serves or writes the source, and the destination is written in one transaction, which
commits only once what stands there reads like what was read here. So there is a whole copy or none. The source is left as
it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import attrs

from concorde_trio.errors import StoreError
from concorde_trio.stores.copied_tables import TABLES, CopiedTable, Digest, Row

BATCH = 200
"""Rows read and written at once: each may have some megabytes."""

Progress = Callable[[str, int, int], None]
"""Told what is done (``copying signals``, ``verifying signals``), how many rows of it, and of how many."""


class Source(Protocol):
    """A queue that nobody serves or writes, at one moment."""

    def count(self, table: CopiedTable) -> int:
        """How many rows it has."""
        ...

    def rows(self, table: CopiedTable) -> Iterator[list[Row]]:
        """Its rows in order, some at a time, as ``CopiedTable.alike`` gives them."""
        ...

    def highest(self, table: CopiedTable) -> int:
        """The highest number that its counter ever gave out, 0 if none."""
        ...

    def last_position(self) -> int:
        """The highest position that a run ever had, 0 if none."""
        ...


class Destination(Source, Protocol):
    """A place that is being written, in a transaction that commits when its block is left normally."""

    def write(self, table: CopiedTable, batches: Iterator[list[Row]]) -> None:
        """Insert the rows."""
        ...

    def number_from(self, table: CopiedTable, highest: int) -> None:
        """Never give out this number, or a lower one, again."""
        ...

    def place_from(self, position: int) -> None:
        """Never give a run this position, or a lower one, again."""
        ...


class Place(Protocol):
    """Where a queue is or may be. Both raise a StoreError that says what is wrong; QueueTaken if it is served."""

    @property
    def name(self) -> str:
        """How errors call it."""
        ...

    def held_still(self) -> AbstractContextManager[Source]:
        """The queue that is there, while nobody serves or writes it."""
        ...

    def filled(self) -> AbstractContextManager[Destination]:
        """A new queue, or one without rows; on an error it is as it was before."""
        ...


@attrs.frozen
class Copied:
    """What a copy took along: for each table how many rows, and the digest that both places gave."""

    rows: Mapping[str, int]
    digests: Mapping[str, str]


def copy_queue(source: Place, destination: Place, progress: Progress | None = None) -> Copied:
    """Copy a queue that nobody serves to a place where there is none. Blocks its thread; any exception leaves no copy.

    StoreError if the destination has rows already, and if what was written does not read as what was to be written.
    """
    tell = progress or (lambda what, done, of: None)
    with source.held_still() as old, destination.filled() as new:
        _check_empty(destination, new)
        taken = {table.name: Digest() for table in TABLES}
        for table in TABLES:
            new.write(table, _told(old, table, taken[table.name], "copying", tell, old.count(table)))
            if table.counter is not None:
                new.number_from(table, max(old.highest(table), new.highest(table)))
        new.place_from(max(old.last_position(), new.last_position()))
        for table in TABLES:
            written, expected = Digest(), taken[table.name]
            for _ in _told(new, table, written, "verifying", tell, expected.rows):
                pass
            if (written.rows, written.text) != (expected.rows, expected.text):
                raise StoreError(
                    f"the copy was undone: of {expected.rows} rows of {table.name} that were read, {written.rows} read back "
                    f"from {destination.name}, and not the same; please report it"
                )
        return Copied(
            {name: digest.rows for name, digest in taken.items()},
            {name: digest.text for name, digest in taken.items()},
        )


def _check_empty(place: Place, there: Source) -> None:
    found = [f"{count} in {table.name}" for table in TABLES if (count := there.count(table))]
    if found:
        raise StoreError(
            f"{place.name} has a queue with rows already ({', '.join(found)}), and a copy mixes with nothing; name another "
            "file or schema, or empty this one with prune"
        )


def _told(place: Source, table: CopiedTable, digest: Digest, what: str, tell: Progress, of: int) -> Iterator[list[Row]]:
    for batch in place.rows(table):
        digest.over(batch)
        yield batch
        tell(f"{what} {table.name}", digest.rows, of)
