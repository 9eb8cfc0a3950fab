"""What every test gets: a bound in time, Hypothesis profiles, seeds for Trio's scheduler.

The law of this file: it adds and never takes. A hung test fails in its own words after a minute of real time,
where pytest-timeout (pyproject.toml) would end the whole process.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("concorde_trio.testing")

TEST_SECONDS = 60
SLOW_TEST_SECONDS = 240
"""What one coroutine test may take on the real clock; ``@pytest.mark.timeout(n)`` says otherwise."""

SLOW_FILE = re.compile(r"^pytestmark = \[?pytest\.mark\.slow\b", re.MULTILINE)

settings.register_profile("fast", max_examples=40, derandomize=True, deadline=None, print_blob=True)
# The examples of "fast" are the same at every run: what fails, fails because of a change. `make soak` finds new ones.
settings.register_profile("default", max_examples=200, deadline=None, print_blob=True)
settings.register_profile(
    "soak", max_examples=5000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Of the fast tests, leave a file unread that has slow ones only: reading them all takes seconds."""
    if config.getoption("markexpr") != "not slow" or collection_path.suffix != ".py":
        return None
    return True if SLOW_FILE.search(collection_path.read_text(encoding="utf-8")) else None


def _bounded(function: Any, seconds: float) -> Any:
    @functools.wraps(function)
    async def test(*arguments: Any, **fixtures: Any) -> None:
        if isinstance(trio.lowlevel.current_clock(), trio.testing.MockClock):
            # Its seconds are not ours: a test may well sleep through a virtual day.
            await function(*arguments, **fixtures)
            return
        with trio.fail_after(seconds):
            await function(*arguments, **fixtures)

    return test


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bound every coroutine test, those under Hypothesis included (each example by itself)."""
    bounded: dict[int, Any] = {}
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        marker = item.get_closest_marker("timeout")
        seconds = SLOW_TEST_SECONDS if item.get_closest_marker("slow") else TEST_SECONDS
        if marker is not None and marker.args:
            seconds = marker.args[0]
        hypothesis = getattr(item.obj, "hypothesis", None)
        if hypothesis is not None:
            if id(hypothesis) not in bounded and inspect.iscoroutinefunction(hypothesis.inner_test):
                bounded[id(hypothesis)] = hypothesis.inner_test = _bounded(hypothesis.inner_test, seconds)
        elif inspect.iscoroutinefunction(item.obj):
            item.obj = _bounded(item.obj, seconds)


@pytest.fixture(params=range(20))
def scheduler_seed(request: pytest.FixtureRequest) -> Iterator[int]:
    """Twenty orders in which Trio wakes tasks that become ready together, each the same at every run (LCK-5)."""
    scheduler = trio._core._run._r
    state = scheduler.getstate()
    scheduler.seed(request.param)
    yield request.param
    scheduler.setstate(state)
