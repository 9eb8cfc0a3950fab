"""A worker whose runs are turns of sessions, on a virtual clock, under judges that no test can forget.

The law: no turn begins or ends outside a run of its session (SES-20), every request has a valid shape (SES-9), and the
ledger of inputs comes out even, however often the process died (SES-10a).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
import trio.testing

from concorde_trio import InProcessRuntime, Prompt, Signal, SignalWorker
from concorde_trio.events import Event, InputSettled, RunEnded, RunStarted, SettleFailed, TurnEnded, TurnStarted
from concorde_trio.failures import alone
from concorde_trio.messages import InputState, Message
from concorde_trio.records import RequestKind, Run, SignalRecord
from concorde_trio.signals.options import WorkerOptions
from concorde_trio.signals.store import RunFilter, SignalFilter
from tests.field.ledger import Crash, LedgerStore
from tests.field.stage import FieldModel

S = "ann"


def about(seconds: float) -> bool:
    """Whether it is that late; what the worker finds together may take it a few virtual milliseconds."""
    return abs(trio.current_time() - seconds) < 0.1


class WorkerStore(LedgerStore):
    """The ledger of a worker's store. Inputs that a prompt stands for are delivered by it, and stand in no message."""

    def judge_commit(self, delivered: set[str]) -> None:
        """What is in a transcript is delivered, and every prompt that is delivered is in one."""
        assert set(self.in_messages) <= delivered, "SES-10a: in the transcript and in the queue"
        prompts = {each for each in delivered if self.accepted[each].prompt}
        assert prompts <= set(self.in_messages), "SES-10a: a prompt was delivered to nobody"


def chat(signal: Signal) -> list[Prompt]:
    """The handler of ``chat``: the payload is a list of prompts' fields."""
    return [Prompt(**{"session": S, **fields}) for fields in signal.payload]


@attrs.define(eq=False)
class Talk:
    """A worker, its sessions, and all that happened: ``events`` has (time, event)."""

    worker: SignalWorker
    runtime: InProcessRuntime
    model: FieldModel
    store: WorkerStore
    events: list[tuple[float, Event]] = attrs.field(factory=list)
    wrong: list[str] = attrs.field(factory=list)
    running: dict[str, str] = attrs.field(factory=dict)
    """The run that each session is in, by its name."""
    turning: set[str] = attrs.field(factory=set)

    def hear(self, event: Event) -> None:
        """Note an event, and judge it."""
        self.events.append((trio.current_time(), event))
        match event:
            case RunStarted():
                if event.session in self.running:
                    self.wrong.append(f"two runs of {event.session}")
                self.running[event.session] = event.run_id
            case RunEnded(started=True):
                self.running.pop(event.session, None)
                if event.session in self.turning:
                    self.wrong.append(f"run {event.run_id} ended in the middle of a turn (SES-21)")
            case TurnStarted():
                self.turning.add(event.session)
                if event.session not in self.running:
                    self.wrong.append(f"a turn of {event.session} began outside a run (SES-20)")
            case TurnEnded():
                self.turning.discard(event.session)
                if event.session not in self.running:
                    self.wrong.append(f"a turn of {event.session} ended outside a run (SES-20)")

    # --- acting -------------------------------------------------------------------------------------------------

    async def chat(self, *prompts: Mapping[str, Any] | str) -> str:
        """Emit a signal that makes these prompts; its id."""
        fields = [{"text": each} if isinstance(each, str) else dict(each) for each in prompts]
        return await self.worker.emit("chat", fields)

    async def settled(self, signal_id: str) -> SignalRecord:
        """Wait for a signal."""
        return await self.worker.wait_settled(signal_id)

    async def say(self, text: str, session: str = S, **more: Any) -> str:
        """Input from outside; its id."""
        receipt = await self.runtime.sessions.submit(session, text, **more)
        assert receipt.accepted, receipt
        return receipt.id

    async def quiet(self) -> None:
        """Until every signal is settled that was emitted, or emitted meanwhile. WrongState when the worker stops before."""
        while left := [each for each in await self.signals() if each.settled_at is None]:
            for each in left:
                await self.settled(each.id)
        await trio.testing.wait_all_tasks_blocked()

    async def die(self) -> None:
        """The process dies, at once; ``talking`` raises Crash."""
        self.store.dead = True
        await self.store.request(RequestKind.CANCEL_RUN, "nobody")
        await trio.sleep_forever()

    # --- looking ------------------------------------------------------------------------------------------------

    async def signals(self) -> list[SignalRecord]:
        """All signals, in seq order."""
        return list(reversed(await self.store.signals(SignalFilter(limit=10_000))))

    async def runs(self) -> list[Run]:
        """All runs, in emission order."""
        return list(reversed(await self.store.runs(RunFilter(limit=10_000))))

    async def messages(self, session: str = S) -> list[Message]:
        """A session's transcript, as it is stored."""
        return await self.store.messages(session, limit=10_000)

    async def texts(self, session: str = S) -> list[str]:
        """The texts of it."""
        return [each.text for each in await self.messages(session)]

    def told(self, *kinds: type[Event]) -> list[Any]:
        """The events of these kinds, in order."""
        return [event for _, event in self.events if isinstance(event, kinds)]

    def state(self, input_id: str) -> InputState:
        """What became of an input, by the ledger."""
        return self.store.settled.get(input_id, InputState.QUEUED)

    async def judge(self) -> None:
        """What holds at the end of every test."""
        assert self.wrong == [] and self.model.wrong == []
        assert not self.told(SettleFailed)
        settled = [event.input_id for event in self.told(InputSettled)]
        assert len(settled) == len(set(settled)), "an input settled twice (SES-10a)"
        await self.store.judge()
        unsettled = {each.id for each in await self.signals() if each.settled_at is None}
        comes: set[str] = set()  # sessions with a run that will come, for what was accepted before its input too
        for each in reversed(await self.store.unsettled_inputs()):
            if each.signal_id in unsettled:
                comes.add(each.session)
            assert each.signal_id in unsettled or (each.signal_id is None and each.session in comes), (
                f"{each.input.id} waits for nothing that will come (SES-20)"
            )


@asynccontextmanager
async def talking(
    model: FieldModel,
    *tools: Any,
    store: WorkerStore | None = None,
    handlers: dict[str, Any] | None = None,
    worker: dict[str, Any] | None = None,
    stop: str = "drain",
    **options: Any,
) -> AsyncIterator[Talk]:
    """A worker that works until the block is left; ``options`` are the runtime's, ``worker`` those of the worker."""
    store = WorkerStore() if store is None else store
    chosen = {"heartbeat": 5.0, "jitter": lambda: 1.0, "wall_clock": trio.current_time, **options}
    runtime = InProcessRuntime(model=model, tools=tools, **chosen)
    bounds: dict[str, Any] = {
        "settle": trio.testing.wait_all_tasks_blocked,
        "wall_clock": trio.current_time,
        "sweep": None,
        **(worker or {}),
    }
    serving = SignalWorker(store, runtime, {"chat": chat, **(handlers or {})}, WorkerOptions(**bounds))
    talk = Talk(serving, runtime, model, store)
    serving.bus.call(talk.hear)
    try:
        async with store.open(), store.own(), trio.open_nursery() as nursery:
            await nursery.start(serving.run)
            yield talk
            serving.stop(stop)
    except BaseExceptionGroup as group:
        # Whoever was in the middle of something when it died is told so, each in words of their own.
        single = alone(group) if group.subgroup(Crash) is None else Crash("the worker is gone")
        if single is None:
            raise
        raise single from None
    finally:
        assert talk.wrong == [] and model.wrong == []
    async with store.opened():
        await talk.judge()
