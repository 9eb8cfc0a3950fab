"""What happened is found by the time at which it happened, however that is written."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.client.client import _seconds
from concorde_trio.server.values import Moment


@given(st.floats(0, 4e9))
def test_the_time_of_something_leaves_it_in(at: float) -> None:
    """SRV-2: rounded up by a part of a microsecond, ``since`` left out the very thing that it was read from."""
    read = Moment().read
    written, dated = _seconds(at), datetime.fromtimestamp(at, UTC).isoformat()
    assert at - 1e-9 <= read("since", written) <= at
    assert at - 2e-6 <= read("since", dated) <= at
