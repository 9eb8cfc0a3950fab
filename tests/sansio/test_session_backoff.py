"""How long a session waits before it asks again, and for which failures it asks again at all (SES-11)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.session_backoff import may_pass, pause
from concorde_trio._sansio.session_terms import RequestFailure, SessionSettings

SETTINGS = SessionSettings(backoff=1.0, backoff_cap=60.0)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529])
def test_these_statuses_may_pass(status: int) -> None:
    """SES-11."""
    assert may_pass(RequestFailure("busy", status=status))


@pytest.mark.parametrize("status", [None, 400, 401, 402, 403, 404, 408, 409, 413, 422, 501, 505])
def test_no_other_failure_passes_but_a_failed_connection(status: int | None) -> None:
    """SES-11."""
    assert not may_pass(RequestFailure("no", status=status))
    assert may_pass(RequestFailure("no answer", status=status, connection=True))


@given(
    asked=st.floats(1e-3, 1e9),
    tries=st.integers(1, 10_000),
    jitter=st.floats(0, 1),
)
def test_what_the_provider_asks_for_is_waited_for_exactly(asked: float, tries: int, jitter: float) -> None:
    """SES-11, F-33: no jitter, no cap, no exponent; whether it is too long is for others to say."""
    failure = RequestFailure("busy", status=429, retry_after=asked)
    assert pause(failure, tries, SETTINGS, jitter) == asked


@pytest.mark.parametrize(("tries", "longest"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (60, 60), (10_000, 60)])
def test_else_the_wait_doubles_up_to_the_cap_and_is_at_least_half_of_that(tries: int, longest: float) -> None:
    """SES-11: jitter moves it within the upper half, so that many sessions do not come back together."""
    failure = RequestFailure("busy", status=503)
    waits = [pause(failure, tries, SETTINGS, jitter) for jitter in (0.0, 0.5, 1.0)]
    assert waits == [longest / 2, longest * 0.75, longest]


@given(backoff=st.floats(1e-3, 1e6), cap=st.floats(1e-3, 1e6), tries=st.integers(1, 10_000), jitter=st.floats(0, 1))
def test_no_wait_is_longer_than_the_cap_or_nothing_at_all(
    backoff: float, cap: float, tries: int, jitter: float
) -> None:
    """SES-11: whatever the settings, it is a time that passes."""
    wait = pause(RequestFailure("", connection=True), tries, SessionSettings(backoff=backoff, backoff_cap=cap), jitter)
    assert 0 < wait <= cap and math.isfinite(wait)
