"""The leader's side of runs that members of a fleet execute: what became of them, for the driver's next step.

The law: a run that may not start any more is taken back before it is decided about; where it was taken already, that is found out
first. What the driver finds is what is stored, whatever it heard of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.reports import Inbox, StopMode, Taken
from concorde_trio.signals.fleet import FoundRuns, Leadership, by_member


class Offers:
    """What one driver has offered."""

    def __init__(self, lead: Leadership) -> None:
        self.lead = lead
        self._heard: list[Taken] = []
        self._over = self._all = False

    def heard(self, word: str, about: Any = None) -> None:
        """A member tells what it did; or something may have been missed."""
        if word == "taken":
            self._heard.append(about)
        elif word == "over":
            self._over = True
        elif word in ("gap", "leader"):
            self._all = True

    def due(self, core: Dispatcher) -> bool:
        """Whether there is something to look at."""
        return bool(self._over or self._all or self._heard or self._unwanted(core, Inbox()))

    async def adopt(self) -> dict[str, str]:
        """Runs that members execute, by member, when nothing is offered any more: a new leader begins with these."""
        await self.lead.recall()
        self._over = True
        return dict(by_member(await self.lead.look()))

    async def look(self, core: Dispatcher, inbox: Inbox) -> None:
        """Put into ``inbox`` what became of runs, and take back those that may not start any more."""
        found = FoundRuns()
        if self._all:
            self._all = self._over = False
            found = await self.lead.look()
        elif self._over:
            self._over = False
            found = await self.lead.over()
            self._over = len(found.over) >= MANY
        unwanted = self._unwanted(core, inbox)
        if unwanted:
            recalled = await self.lead.recall(unwanted)
            inbox.recalled += sorted(recalled & unwanted)
            if unwanted - recalled:
                found = await self.lead.look()
        heard, self._heard = self._heard, []
        over = [taken for taken, _ in found.over]
        inbox.taken += _new([*heard, *found.taken, *over, *found.lost], core, set(inbox.recalled))
        ended = {run_id for run_id, _ in inbox.ends}
        inbox.ends += [
            (taken.run_id, outcome) for taken, outcome in found.over if taken.run_id in core.runs.keys() - ended
        ]
        inbox.lost += [taken.run_id for taken in found.lost if taken.run_id in core.runs]

    def _unwanted(self, core: Dispatcher, inbox: Inbox) -> set[str]:
        if core.stop_mode is not None and core.stop_mode is not StopMode.DRAIN:
            return set(core.offered)
        targets = {cancel.target for cancel in inbox.cancels}
        return (
            {run_id for run_id in core.offered if targets & {run_id, core.runs[run_id].run.signal_id}}
            if targets
            else set()
        )


MANY = 500
"""So many outcomes found at once may not be all of them."""


def _new(found: Iterable[Taken], core: Dispatcher, recalled: set[str]) -> list[Taken]:
    """Each run that was not known to be taken, once."""
    return list(
        {each.run_id: each for each in found if each.run_id in core.offered and each.run_id not in recalled}.values()
    )
