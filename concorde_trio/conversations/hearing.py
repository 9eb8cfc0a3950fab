"""What other processes wrote into the ledger of a session, told to its loop (SES-20).

The law: it is read by the loop itself, between two events, so that all that the loop has accepted is stored, and nothing of
it is out of date when it is used.
"""

from __future__ import annotations

from concorde_trio.sessions.loop import SessionLoop
from concorde_trio.sessions.store import SessionStore


async def hear(store: SessionStore, loop: SessionLoop) -> None:
    """Have the machine know every input that waits, in the order in which they were accepted (SES-10)."""
    waiting = await store.unsettled_inputs(loop.name)
    loop.machine.heard((each.input, each.signal_id) for each in waiting)


async def hear_all(store: SessionStore, loop: SessionLoop) -> None:
    """The same at the begin of a run, and whether the session was pruned while it was idle (STP-5)."""
    await loop.forget_pruned()
    await hear(store, loop)
