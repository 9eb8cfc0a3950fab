"""One suite over all session stores."""

from __future__ import annotations

import pytest

from concorde_trio.sessions.store import StoredInput
from concorde_trio.stores import MemoryStore
from concorde_trio.testing import check_session_store, session_store_checks
from concorde_trio.testing.session_store_checks.samples import Check, MakeStore


@pytest.mark.parametrize("check", session_store_checks.values(), ids=session_store_checks.keys())
async def test_every_store(check: Check, make_store: MakeStore) -> None:
    """SES, LSE, SIG, SRV, STP, REC: the rule is in the docstring of each check."""
    await check(make_store)


def test_every_check_names_its_rule() -> None:
    """The suite is read by people who write a store."""
    for name, check in session_store_checks.items():
        assert check.__doc__, name
        assert check.__doc__.split()[0].rstrip(".,:").split("-")[0] in ("SES", "LSE", "SIG", "SRV", "STP", "REC"), name


async def test_the_suite_as_one_call_names_what_failed() -> None:
    """For whoever has no pytest."""

    class Forgetful(MemoryStore):
        async def input(self, input_id: str) -> StoredInput | None:
            return None

    with pytest.raises(AssertionError) as caught:
        await check_session_store(Forgetful)
    assert caught.value.__notes__ == ["while checking: an input is given back as it was accepted"]
