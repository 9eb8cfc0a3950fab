"""An input from a process that does not serve the queue: a row of the ledger and its signal in one commit (SES-20).

The law: whoever takes the queue up finds the input as if its own worker had accepted it. Nothing else is changed from
outside: the session's transcript and lock belong to its loop.
"""

from __future__ import annotations

import attrs

from concorde_trio._sansio.input_queue import BOUND, Receipt
from concorde_trio._sansio.session_changes import AddInput, EmitSignals
from concorde_trio.conversations.session_input import signal_for
from concorde_trio.errors import StoreError
from concorde_trio.messages import Input, InputState
from concorde_trio.records import check_name
from concorde_trio.sessions.inputs import first_receipt
from concorde_trio.sessions.store import SessionStore, StoredInput


@attrs.frozen(kw_only=True)
class Sent:
    """An input's receipt, and what is known of it: ``signal_id``, the signal that it became, None if a run took it as it was.

    ``again``: it was known before. ``state``: what has become of it.
    """

    receipt: Receipt
    signal_id: str | None = None
    again: bool = False
    state: InputState = InputState.QUEUED

    def as_json(self, session: str) -> dict[str, object]:
        """What the sender is told."""
        return {
            "id": self.receipt.id,
            "session": session,
            "state": self.receipt.state,
            "reason": self.receipt.reason,
            "input": str(self.state),
            "signal_id": self.signal_id,
            "again": self.again,
        }


async def submit_from_outside(store: SessionStore, session: str, given: Input, *, bound: int = BOUND) -> Sent:
    """Accept an input for a session that this process does not serve; the next worker, or the running one, takes it.

    InputConflict if the id names another input. ``bound``: how many may wait in the session. InvalidName for no name.
    """
    check_name(session, "session")
    known = await store.input(given.id)
    if known is not None:
        return known_input(known, session, given)
    waiting = len(await store.unsettled_inputs(session))
    if waiting >= bound:
        reason = (
            f"{waiting} inputs wait in this session, and its queue holds {bound}; send it again when some are delivered"
        )
        return Sent(receipt=Receipt(given.id, "rejected", reason))
    new = signal_for(session, given)
    try:
        await store.apply([EmitSignals((new,)), AddInput(session=session, input=given, signal_id=new.id)])
    except StoreError as error:
        refused = error
    else:
        return Sent(receipt=Receipt(given.id, "accepted"), signal_id=new.id)
    known = await store.input(given.id)  # somebody else may have sent the same id at the same time
    if known is None:
        raise refused
    return known_input(known, session, given)


def known_input(known: StoredInput, session: str, given: Input) -> Sent:
    """The first receipt again (SES-10a); InputConflict if it was another input."""
    receipt = first_receipt(known, session, given)
    return Sent(receipt=receipt, signal_id=known.signal_id, again=True, state=known.state)
