"""The input ledger under watch: a store that judges every commit, and dies at a commit of choice.

The law: accepted = delivered + cancelled + queued, for each input and at every commit; a delivered input stands in exactly
one message, and no other does (SES-10a). What dies is the process alone: the store outlives it, as a database file does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from concorde_trio import MemoryStore
from concorde_trio._sansio.session_changes import AddInput, AddMessage, SettleInputs
from concorde_trio.errors import StoreError, UsageError
from concorde_trio.messages import InputState


class Crash(StoreError):
    """The process is gone."""


class LedgerStore(MemoryStore):
    """In memory. ``commits`` counts them; ``on_commit(number, changes)`` is awaited before each.

    ``crash_at`` (0: at none) and ``after``: at which commit the process dies, before or after it is made; from then on
    nothing is written until ``revive``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.commits = 0
        self.crash_at = 0
        self.after = False
        self.dead = False
        self.on_commit: Callable[[int, Sequence[Any]], Awaitable[None]] | None = None
        self.accepted: dict[str, AddInput] = {}
        self.settled: dict[str, InputState] = {}
        self.in_messages: Counter[str] = Counter()

    async def apply(self, changes: Sequence[Any]) -> None:
        """See ``SessionStore.apply``."""
        if self.dead:
            raise Crash("the process is gone")
        self.commits += 1
        number = self.commits
        if self.on_commit is not None:
            await self.on_commit(number, changes)
        if number == self.crash_at and not self.after:
            self.dead = True
            raise Crash("before this commit")
        await super().apply(changes)
        self._note(changes)
        if number == self.crash_at:
            self.dead = True
            raise Crash("after this commit")

    def revive(self) -> None:
        """The next process."""
        self.dead, self.crash_at = False, 0

    def _note(self, changes: Sequence[Any]) -> None:
        for change in changes:
            match change:
                case AddInput(input=given):
                    assert given.id not in self.accepted, f"{given.id} was accepted twice"
                    self.accepted[given.id] = change
                case AddMessage(message=message):
                    self.in_messages.update(each.id for each in message.inputs)
                case SettleInputs(ids, state):
                    for each in ids:
                        assert each in self.accepted and each not in self.settled, f"{each} was settled twice"
                        self.settled[each] = state
        delivered = {each for each, state in self.settled.items() if state is InputState.DELIVERED}
        twice = [each for each, times in self.in_messages.items() if times > 1]
        assert not twice, f"{twice} stand in two messages (SES-10a)"
        self.judge_commit(delivered)

    def judge_commit(self, delivered: set[str]) -> None:
        """At every commit an input is in the queue or in the transcript, never in neither or both."""
        assert set(self.in_messages) == delivered, "SES-10a: delivered, and in the transcript, are one thing"

    async def judge(self) -> None:
        """The whole ledger, as it is stored."""
        queued = {each.input.id for each in await self.unsettled_inputs()}
        assert queued == set(self.accepted) - set(self.settled), "accepted = delivered + cancelled + queued (SES-10a)"
        for input_id, change in self.accepted.items():
            stored = await self.input(input_id)
            assert stored is not None and stored.session == change.session
            assert stored.state is self.settled.get(input_id, InputState.QUEUED)
            assert stored.input == change.input, "what was accepted is what is stored"

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[LedgerStore]:
        """The store, whether somebody has it open or not."""
        try:
            async with self.open():
                yield self
        except UsageError:
            yield self
