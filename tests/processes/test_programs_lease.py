"""The lease itself, without a program: what its holder and its guards know of it at each moment."""

from __future__ import annotations

import math
import time

from concorde_trio.processes.programs_lease import ProgramsLease

SOON = 3600.0
"""Seconds that no test takes."""


def test_a_lease_is_over_until_it_is_renewed_and_once_its_time_has_come() -> None:
    """REC-6: nothing is started under a lease that nobody has confirmed, or no more."""
    lease = ProgramsLease()
    assert lease.is_over
    lease.renew(time.monotonic())
    assert lease.is_over
    lease.renew(time.monotonic() + SOON)
    assert not lease.is_over


def test_a_lease_never_goes_backwards_and_a_guard_hears_of_what_moved_it_alone() -> None:
    """REC-6: confirmations overtake each other, and the earlier of two says nothing new."""
    lease = ProgramsLease()
    told: list[float] = []
    begun = time.monotonic()
    with lease.told(told.append):
        for until in (begun + SOON, begun - 1, begun + SOON, -math.inf, begun + 2 * SOON):
            lease.renew(until)
        assert lease.until == begun + 2 * SOON
        assert not lease.is_over
    lease.renew(begun + 3 * SOON)
    assert told == [begun + SOON, begun + 2 * SOON]
