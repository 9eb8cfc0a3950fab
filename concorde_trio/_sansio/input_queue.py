"""One session's inbox: the order of inputs, their receipts, and what several that waited become.

The law: inputs leave in the order they came, and every accepted one is at any moment exactly one of queued, delivered or
cancelled (SES-10a): accepted = delivered + cancelled + queued. Nothing is accepted twice under one id, and nothing that
was accepted is refused later. When input can run is not known here: the session's loop asks for it then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import attrs

from concorde_trio.errors import InputConflict, InternalError, UsageError, WrongState
from concorde_trio.messages import Input, InputState

HEADER = "[Multiple inputs received while processing:]"
"""The first line of a message that several inputs became (SES-10)."""
SEPARATOR = "---"
"""The line between two of them."""
BOUND = 1000
"""Inputs that may wait, unless set."""


@attrs.frozen
class Receipt:
    """What the sender of an input is told (SES-10a). ``reason``: why it was rejected, for a person; else None."""

    id: str
    state: Literal["accepted", "rejected"]
    reason: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the input will end as delivered or cancelled; one that was rejected has had no effect."""
        return self.state == "accepted"


@attrs.frozen
class Delivery:
    """The inputs that go into the conversation as one message: in order, each with its sender, time and attachments."""

    inputs: tuple[Input, ...]

    @property
    def text(self) -> str:
        """What the message says (SES-10): a single input verbatim, several under a header, with lines between them."""
        if len(self.inputs) == 1:
            return self.inputs[0].text
        return f"{HEADER}\n" + f"\n{SEPARATOR}\n".join(each.text for each in self.inputs)

    @property
    def attachments(self) -> tuple[Any, ...]:
        """Those of all its inputs, in order."""
        return tuple(attachment for each in self.inputs for attachment in each.attachments)


@attrs.frozen(kw_only=True)
class Ledger:
    """How many inputs were accepted, and what became of them: accepted = delivered + cancelled + queued (SES-10a)."""

    accepted: int
    delivered: int
    cancelled: int
    queued: int


class InputQueue:
    """The inputs that wait in one session, and the receipts of those it knows. No I/O, no clock, no randomness.

    ``bound``: how many may wait (SES-10). Settled inputs are known, so that their ids are recognised, until
    ``forget``; whoever forgets asks the stored ledger about an unknown id and gives it back by ``restore``.
    """

    __slots__ = ("_bound", "_delivered", "_held", "_known", "_queued", "_settled")

    def __init__(self, *, bound: int = BOUND) -> None:
        if type(bound) is not int or bound < 1:
            raise UsageError(f"the bound of an input queue must be a whole number of at least 1, not {bound!r:.80}")
        self._bound = bound
        self._known: dict[str, Input] = {}  # queued and settled
        self._queued: dict[str, Input] = {}  # in order
        self._settled: dict[str, InputState] = {}
        self._delivered = 0
        self._held = False

    # --- coming in ------------------------------------------------------------------------------------------

    def answer(self, given: Input, *, beside: int = 0) -> Receipt | None:
        """What ``submit`` would answer without accepting anything: the first receipt, or a rejection; else None.

        None means that ``submit`` accepts it: the moment to store it, if nothing else comes between the two.
        InputConflict: as ``submit``. ``beside``: how many wait elsewhere and count for the bound.
        """
        known = self._known.get(given.id)
        if known is not None:
            if known.text != given.text or known.attachments != given.attachments:
                raise conflict(given.id)
            return Receipt(given.id, "accepted")
        if (waiting := len(self._queued) + beside) >= self._bound:
            return Receipt(
                given.id,
                "rejected",
                f"{waiting} inputs wait in this session, and its queue holds {self._bound}; submit it again, "
                f"under the same id, when some of them have been delivered",
            )
        return None

    def submit(self, given: Input) -> Receipt:
        """Take the last place in the queue, if there is one; the receipt says so (SES-10a).

        An id that was accepted before gives its first receipt again and changes nothing, whoever sends it and whenever;
        with other text or attachments it is an InputConflict. A rejected input leaves no trace, so it may come again.
        Anything new that comes, though it be rejected, ends a ``hold`` (SES-12).
        """
        receipt = self.answer(given)
        if receipt is None:
            self._known[given.id] = self._queued[given.id] = given
            receipt = Receipt(given.id, "accepted")
        elif receipt.accepted:
            return receipt
        self._held = False
        return receipt

    def restore(self, given: Input, state: InputState = InputState.QUEUED, *, before: str | None = None) -> None:
        """An input that was accepted before, as it is stored: queued ones in their order, before anything is submitted.

        ``before``: the queued input that came after it, if it is not to be the last. The bound refuses none of them.
        WrongState if the id is known.
        """
        state = InputState(state)
        if given.id in self._known:
            raise WrongState(f"input {given.id!r:.80} is known already, as {self.state(given.id)}; restore it once")
        self._known[given.id] = self._queued[given.id] = given
        if before is not None and before in self._queued:
            ids = list(self._queued)
            for later in ids[ids.index(before) : -1]:
                self._queued[later] = self._queued.pop(later)
        if state is not InputState.QUEUED:
            self._settle([given], state)

    # --- going out ------------------------------------------------------------------------------------------

    def ready(self) -> Delivery | None:
        """What ``drain`` would deliver: all that is queued, as one message; None if nothing is, or it is held.

        Nothing changes: the moment to store the message, while its inputs are still in the queue.
        """
        return None if self._held or not self._queued else Delivery(tuple(self._queued.values()))

    def drain(self, seen: Delivery | None = None) -> Delivery | None:
        """Everything queued is delivered, as one message (SES-10); None if nothing is queued, or it is held.

        With ``seen``, what ``ready`` gave, exactly that is delivered, and what came later stays queued; None, and
        nothing changes, if it is not what stands first in the queue any more.
        """
        delivery = self.ready()
        if delivery is None:
            return None
        if seen is not None:
            first = delivery.inputs[: len(seen.inputs)]
            if not first or len(first) < len(seen.inputs) or any(a is not b for a, b in zip(first, seen.inputs)):
                return None
            delivery = seen
        self._settle(delivery.inputs, InputState.DELIVERED)
        return delivery

    def cancel(self, input_id: str) -> Input | None:
        """The input is cancelled, by its sender: that input; None, and nothing changes, if it is not queued."""
        given = self._queued.get(input_id)
        if given is not None:
            self._settle([given], InputState.CANCELLED)
        return given

    def cancel_all(self) -> tuple[Input, ...]:
        """Everything queued is cancelled, with its session: the inputs, in order."""
        inputs = tuple(self._queued.values())
        self._settle(inputs, InputState.CANCELLED)
        return inputs

    # --- waiting for a person (SES-12, hold_queue) ----------------------------------------------------------

    def hold(self) -> bool:
        """What is queued waits for the next submit or ``resume``. False if nothing is queued, so nothing is held."""
        self._held = bool(self._queued)
        return self._held

    def resume(self) -> bool:
        """What was held may be delivered again: a run began, or somebody asked. False if nothing was held."""
        held, self._held = self._held, False
        return held

    @property
    def held(self) -> bool:
        """Whether what is queued waits for a person; it needs no timer then (SES-10b)."""
        return self._held

    # --- what is known --------------------------------------------------------------------------------------

    def state(self, input_id: str) -> InputState | None:
        """What became of an accepted input; None for an id that is not known."""
        return InputState.QUEUED if input_id in self._queued else self._settled.get(input_id)

    def forget(self, input_ids: Iterable[str]) -> None:
        """These settled inputs are told by the stored ledger from now on. WrongState, and none is, if one is not."""
        if isinstance(input_ids, str):
            raise UsageError(f"forget takes ids, not one string: write [{input_ids!r:.80}]")
        ids = dict.fromkeys(input_ids)
        for input_id in ids:
            if input_id not in self._settled:
                state = self.state(input_id) or "not known"
                raise WrongState(f"input {input_id!r:.80} is {state}; only settled inputs are forgotten")
        for input_id in ids:
            del self._known[input_id]
            self._delivered -= self._settled.pop(input_id) is InputState.DELIVERED

    @property
    def ledger(self) -> Ledger:
        """The counts of all inputs that are known."""
        return Ledger(
            accepted=len(self._known),
            delivered=self._delivered,
            cancelled=len(self._settled) - self._delivered,
            queued=len(self._queued),
        )

    def __len__(self) -> int:
        """How many inputs are queued, held ones included."""
        return len(self._queued)

    def __iter__(self) -> Iterator[Input]:
        """The queued inputs, in order."""
        return iter(self._queued.values())

    # --- inside ---------------------------------------------------------------------------------------------

    def _settle(self, inputs: Iterable[Input], state: InputState) -> None:
        """The one way out of the queue."""
        for given in inputs:
            if self._queued.pop(given.id, None) is None:
                raise InternalError(f"input {given.id!r:.80} was settled twice")
            self._settled[given.id] = state
            self._delivered += state is InputState.DELIVERED
        if not self._queued:
            self._held = False


def conflict(input_id: str, how: str = "with other text or attachments") -> InputConflict:
    """What is raised for an id that comes again with something else; ``how`` it was the first time."""
    return InputConflict(
        f"input {input_id!r:.80} was submitted before, {how}; an id names one input for ever: repeat it as it was, or submit "
        f"the new one under an id of its own"
    )
