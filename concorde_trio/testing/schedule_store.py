"""The conformance suite of schedule stores: the same sentences for every one, and for yours.

``schedule_store_checks`` maps each sentence to an async function that is given a callable making a fresh store, not yet
open. It is one of signals and schedules at once, which passes ``signal_store_checks`` too.
"""

from __future__ import annotations

from collections.abc import Mapping

from concorde_trio.testing.schedule_store_checks import rows
from concorde_trio.testing.schedule_store_checks.rows import Check, MakeStore
from concorde_trio.testing.sentences import run_all, sentences

schedule_store_checks: Mapping[str, Check] = sentences(rows)
"""Sentence → async function of ``make_store``. Each docstring begins with the rule it holds to."""


async def check_schedule_store(make_store: MakeStore) -> None:
    """Run all of them, one after another; the first that fails raises AssertionError, with its name in a note."""
    await run_all(schedule_store_checks, make_store)
