"""The conformance suite of signal stores: the same sentences for every one, and for yours.

``signal_store_checks`` maps each sentence to an async function that is given a callable making a fresh store, not yet
open. With pytest::

    @pytest.mark.parametrize("check", signal_store_checks.values(), ids=signal_store_checks.keys())
    async def test_my_store(check):
        await check(MyStore)
"""

from __future__ import annotations

from collections.abc import Mapping

from concorde_trio.testing.sentences import run_all, sentences
from concorde_trio.testing.store_checks import changing, emitting, reading, together
from concorde_trio.testing.store_checks.samples import Check, MakeStore

signal_store_checks: Mapping[str, Check] = sentences(emitting, changing, reading, together)
"""Sentence → async function of ``make_store``. Each docstring begins with the rule it holds to."""


async def check_signal_store(make_store: MakeStore) -> None:
    """Run all of them, one after another; the first that fails raises AssertionError, with its name in a note."""
    await run_all(signal_store_checks, make_store)
