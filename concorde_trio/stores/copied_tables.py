"""What of a queue a copy takes along: every table that says what happened, and what was ever numbered.

The law: a row is copied as it stands, and compares equal whichever database it came from. What belongs to the place, not to
the queue, stays behind (``LOCAL``); a test compares both lists with the schemas, so no table is forgotten.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import attrs

Row: TypeAlias = tuple[Any, ...]


@attrs.frozen
class CopiedTable:
    """A table: its columns, which of them are booleans, the order in which it is read, and the column that is numbered.

    A number in ``counter`` is never given out twice, though its row was pruned (SIG-3).
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    counter: str | None = None
    booleans: frozenset[str] = frozenset()

    @property
    def columns_sql(self) -> str:
        """The columns, for a statement."""
        return ", ".join(f'"{column}"' for column in self.columns)

    @property
    def select(self) -> str:
        """Every row, in order: texts by their bytes, in both databases."""
        return f"select {self.columns_sql} from {self.name} order by " + ", ".join(f'"{column}"' for column in self.key)

    def alike(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows with booleans as such: SQLite has none of its own."""
        places = [place for place, column in enumerate(self.columns) if column in self.booleans]
        for row in rows:
            if places:
                values = list(row)
                for place in places:
                    values[place] = bool(values[place])
                row = tuple(values)
            yield row


TABLES: tuple[CopiedTable, ...] = (
    CopiedTable(
        "signals",
        (
            *(
                "seq",
                "id",
                "kind",
                "payload",
                "state",
                "phase",
                "emitted_at",
                "claimed_at",
                "settled_at",
                "error",
                "key",
            ),
            *("retry_of", "interrupted", "holds"),
        ),
        key=("seq",),
        counter="seq",
        booleans=frozenset({"interrupted", "holds"}),
    ),
    CopiedTable(
        "runs",
        (
            *("position", "id", "signal_id", "signal_seq", "index", "session", "prompt", "resources", "usage_limit"),
            *("context", "tag", "time_limit", "state", "queued_at", "started_at", "ended_at", "error", "text", "usage"),
        ),
        key=("position",),
    ),
    CopiedTable("concorde_requests", ("id", "kind", "target"), key=("id",), counter="id"),
    CopiedTable(
        "sessions",
        ("name", "created_at", "updated_at", "last_epoch", "last_registration", "usage", "held", "messages"),
        key=("name",),
        booleans=frozenset({"held"}),
    ),
    CopiedTable("messages", ("session", "seq", "role", "at", "covers", "document"), key=("session", "seq")),
    CopiedTable(
        "inputs",
        (
            *("number", "id", "session", "text", "at", "sender", "attachments", "state", "prompt", "signal_id"),
            "settled_at",
        ),
        key=("number",),
        counter="number",
        booleans=frozenset({"prompt"}),
    ),
    CopiedTable(
        "concorde_schedules",
        (
            *(
                "name",
                "kind",
                "payload",
                "cron",
                "zone",
                "at",
                "revision",
                "changed_at",
                "next_at",
                "fired_at",
                "signal_id",
            ),
            *("missed", "missed_at"),
        ),
        key=("name",),
    ),
)
"""In an order in which a row's owner comes before it."""

LOCAL = frozenset(
    {
        "concorde_meta",
        "concorde_writers",
        "concorde_members",
        "concorde_leases",
        "concorde_leader",
        "concorde_executions",
    }
)
"""Tables of the place: its name and its highest position (which is copied by itself), its writers, its fleet.

A run that was offered, or being executed, is pending or running in its own row.
"""


@attrs.define
class Digest:
    """How many rows of a table came by, and a SHA-256 over all of them in order."""

    rows: int = 0
    _hash: Any = attrs.field(factory=hashlib.sha256)

    def over(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Take these in, and give them back."""
        for row in rows:
            self._hash.update(repr(row).encode())
        self.rows += len(rows)
        return rows

    @property
    def text(self) -> str:
        """The digest in hexadecimal digits."""
        text: str = self._hash.hexdigest()
        return text
