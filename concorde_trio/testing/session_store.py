"""The conformance suite of session stores: the same sentences for every one, and for yours.

``session_store_checks`` maps each sentence to an async function that is given a callable making a fresh store, not yet
open. It is one of signals and sessions at once, which passes ``signal_store_checks`` too. With pytest::

    @pytest.mark.parametrize("check", session_store_checks.values(), ids=session_store_checks.keys())
    async def test_my_store(check):
        await check(MyStore)
"""

from __future__ import annotations

from collections.abc import Mapping

from concorde_trio.testing.sentences import run_all, sentences
from concorde_trio.testing.session_store_checks import commits, ledger, lists, transcripts
from concorde_trio.testing.session_store_checks.samples import Check, MakeStore

session_store_checks: Mapping[str, Check] = sentences(transcripts, ledger, commits, lists)
"""Sentence → async function of ``make_store``. Each docstring begins with the rule it holds to."""


async def check_session_store(make_store: MakeStore) -> None:
    """Run all of them, one after another; the first that fails raises AssertionError, with its name in a note."""
    await run_all(session_store_checks, make_store)
