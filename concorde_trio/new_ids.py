"""Ids of signals: they grow with time, so that what is stored together stands together in a database's indexes.

The law: an id names, and never orders (SIG-3): clocks differ, and are set back. With random ids every new row would go to another
page of each index, and the longer the history, the more of them each commit would have to read and write.
"""

from __future__ import annotations

import time
from random import SystemRandom

_random_bits = SystemRandom().getrandbits

_CHANCE = 56
"""Bits of chance beside the milliseconds: two processes that emit in the same one do not meet."""
_STEP = 32
"""The same between two ids of one process in one millisecond, or while its clock stands or goes back."""

_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_PAIRS = [first + second for first in _DIGITS for second in _DIGITS]

_last = 0


def new_id() -> str:
    """20 digits of base 32: the milliseconds since 1970, and chance. Higher than the one that this thread got before."""
    global _last
    made = int(time.time() * 1e3) << _CHANCE | _random_bits(_CHANCE)
    if made <= _last:
        made = _last + 1 + _random_bits(_STEP)
    _last = made
    return "".join([_PAIRS[made >> shift & 1023] for shift in range(90, -1, -10)])
