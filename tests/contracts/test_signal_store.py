"""One suite over all signal stores."""

from __future__ import annotations

import pytest

from concorde_trio.records import SignalRecord
from concorde_trio.stores import MemoryStore
from concorde_trio.testing import check_signal_store, signal_store_checks
from concorde_trio.testing.store_checks.samples import Check, MakeStore


@pytest.mark.parametrize("check", signal_store_checks.values(), ids=signal_store_checks.keys())
async def test_every_store(check: Check, make_store: MakeStore) -> None:
    """SIG, CLM, RUN, TAG, REC, STP: the rule is in the docstring of each check."""
    await check(make_store)


def test_every_check_names_its_rule() -> None:
    """The suite is read by people who write a store."""
    for name, check in signal_store_checks.items():
        assert check.__doc__, name
        assert check.__doc__.split()[0].rstrip(".,:").split("-")[0] in (
            *("SIG", "CLM", "LCK", "RUN", "TAG", "REC", "STP", "SRV", "Q", "The"),
        ), name


async def test_the_suite_as_one_call_names_what_failed() -> None:
    """For whoever has no pytest."""

    class Forgetful(MemoryStore):
        async def pending(self, limit: int) -> list[SignalRecord]:
            return []

    with pytest.raises(AssertionError) as caught:
        await check_signal_store(Forgetful)
    assert caught.value.__notes__ == ["while checking: signals get rising seqs in the order of the calls"]
