"""The conformance suite of signal stores: the same sentences for every one, and for yours.

``signal_store_checks`` maps each sentence to an async function that is given a callable making a fresh store, not yet
open. With pytest::

    @pytest.mark.parametrize("check", signal_store_checks.values(), ids=signal_store_checks.keys())
    async def test_my_store(check):
        await check(MyStore)
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from concorde_trio.testing.store_checks import changing, emitting, reading, together
from concorde_trio.testing.store_checks.samples import Check, MakeStore


def _checks(module: ModuleType) -> dict[str, Check]:
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.iscoroutinefunction(function) and function.__module__ == module.__name__ and name[0] != "_"
    }


signal_store_checks: Mapping[str, Check] = MappingProxyType(
    _checks(emitting) | _checks(changing) | _checks(reading) | _checks(together)
)
"""Sentence → async function of ``make_store``. Each docstring begins with the rule it holds to."""


async def check_signal_store(make_store: MakeStore) -> None:
    """Run all of them, one after another; the first that fails raises AssertionError, with its name in a note."""
    for name, check in signal_store_checks.items():
        try:
            await check(make_store)
        except BaseException as error:
            error.add_note(f"while checking: {name.replace('_', ' ')}")
            raise
