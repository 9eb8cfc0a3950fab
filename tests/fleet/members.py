"""Members of a fleet for tests: several workers of one queue in one Trio program, each with a store and a runtime of its own.

The law: nothing is waited for by time. A member whose lease is to end has it ended by an onlooker's hand, while it knows nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from concorde_trio import FunctionRuntime, Prompt, RunPrompt, Signal, SignalWorker, open_worker
from concorde_trio.records import RunOutcome, SignalRecord
from concorde_trio.stores.postgres.store import PostgresStore
from tests.stores.postgres_server import PostgresServer

SOON = 20.0
LONG = 3600.0
"""Seconds of a lease that nobody waits for."""


def errand(arrived: Signal) -> list[Prompt]:
    """One run: the payload is its session, or ``{"session", "resource"}``."""
    asked: Any = arrived.payload
    if isinstance(asked, str):
        return [Prompt(session=asked, text=asked)]
    return [Prompt(session=asked["session"], text=asked["session"], resources=[asked["resource"]])]


@attrs.define(eq=False)
class Fleet:
    """A queue and its members, by name. ``started`` and ``ended``: (member, session) in the order of what happened."""

    server: PostgresServer
    url: str
    workers: dict[str, SignalWorker] = attrs.field(factory=dict)
    started: list[tuple[str, str]] = attrs.field(factory=list)
    ended: list[tuple[str, str]] = attrs.field(factory=list)
    go_on: dict[str, trio.Event] = attrs.field(factory=dict)
    outcomes: dict[str, RunOutcome] = attrs.field(factory=dict)

    @property
    def schema(self) -> str:
        """Where its tables are."""
        return self.url.rpartition("=")[2]

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """A statement of an onlooker's; ``{}`` is the schema."""
        return self.server.execute(text.replace("{}", self.schema))

    def held(self, session: str) -> trio.Event:
        """Runs of this session go on once this is set."""
        return self.go_on.setdefault(session, trio.Event())

    def runtime(self, member: str) -> FunctionRuntime:
        """Notes what it runs, and waits where the session is held."""

        async def work(prompt: RunPrompt) -> RunOutcome:
            self.started.append((member, prompt.session))
            if prompt.session in self.go_on:
                await self.go_on[prompt.session].wait()
            self.ended.append((member, prompt.session))
            return self.outcomes.get(prompt.session, RunOutcome.ok("done"))

        return FunctionRuntime(work)

    @asynccontextmanager
    async def member(
        self, name: str, *, lease: float = LONG, runtime: Any = None, handlers: Any = None, **options: Any
    ) -> AsyncIterator[SignalWorker]:
        """A member while the block runs."""
        store = PostgresStore(self.url, lease=lease)
        chosen = runtime or self.runtime(name)
        async with open_worker(store, chosen, handlers or {"errand": errand}, **options) as worker:
            self.workers[name] = worker
            yield worker

    async def end_lease(self, pid_or_member: str) -> None:
        """Let a member's lease be over, which the member does not know."""
        await trio.to_thread.run_sync(
            self.sql, f"update {{}}.concorde_leases set until = now() - interval '1 s' where member = '{pid_or_member}'"
        )

    async def executing(self, session: str) -> str:
        """The id of the member that executes a run of this session, once one does."""
        text = (
            "select member from {}.concorde_executions join {}.runs on runs.id = run_id "
            f"where session = '{session}' and member is not null"
        )
        while not (found := await trio.to_thread.run_sync(self.sql, text)):  # noqa: ASYNC110
            await trio.sleep(0.01)
        return str(found[0][0])

    def counted(self) -> Counter[str]:
        """How often a run of each session was started."""
        return Counter(session for _, session in self.started)


async def until(true: Callable[[], bool]) -> None:
    """Wait until this is so."""
    with trio.fail_after(SOON):
        while not true():  # noqa: ASYNC110
            await trio.sleep(0.01)


async def settled(worker: SignalWorker, signal_id: str) -> SignalRecord:
    """What became of a signal, in time."""
    with trio.fail_after(SOON):
        return await worker.wait_settled(signal_id)
