"""Apply: each change does what its docstring says, a batch is whole or not at all, wrong moves are refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
import trio

from concorde_trio._sansio.changes import (
    Change,
    ClaimSignal,
    EndRun,
    FinishRequest,
    InterruptSignal,
    QueueRuns,
    SettleSignal,
    StartPost,
    StartRun,
)
from concorde_trio._sansio.lifecycle import PHASE_TRANSITIONS, RUN_TRANSITIONS, check_run_columns, check_signal_columns
from concorde_trio.errors import StoreError
from concorde_trio.records import RequestKind, Run, RunState, SignalPhase, SignalRecord, SignalState, Usage
from concorde_trio.signals.store import SignalStore
from concorde_trio.testing.store_checks.samples import (
    CLAIMED,
    ENDED,
    QUEUED,
    SETTLED,
    STARTED,
    MakeStore,
    claimed,
    emitted,
    everything,
    in_phase,
    in_run_state,
    new_run,
    opened,
    queued,
)

USAGE = Usage(input_tokens=2**40, output_tokens=7, cached_tokens=3, cost=0.1)
FULL: dict[str, Any] = {
    "resources": ("w", "bud get", "日本"),
    "usage_limit": 2**62,
    "context": {"n": [None, 1.5], "tag": "a-tag-of-16-chars"},
    "tag": "a-tag-of-16-chars",
    "time_limit": 0.1,
}


async def _signal(store: SignalStore, signal_id: str) -> SignalRecord:
    record = await store.signal(signal_id)
    assert record is not None
    check_signal_columns(record)
    return record


async def _run(store: SignalStore, run_id: str) -> Run:
    run = await store.run(run_id)
    assert run is not None
    check_run_columns(run)
    return run


async def _refused(store: SignalStore, *changes: Change) -> None:
    before = await everything(store)
    try:
        await store.apply(changes)
    except StoreError as error:
        assert str(error)
    else:
        raise AssertionError(f"written, though it must not be: {changes}")
    assert await everything(store) == before


async def a_claimed_signal_is_processing_and_handling(make_store: MakeStore) -> None:
    """SIG-4: ClaimSignal, and the signal is pending no more."""
    async with opened(make_store) as store:
        await emitted(store, "s", "t")
        await store.apply([ClaimSignal("s", CLAIMED)])
        record = await _signal(store, "s")
        assert (record.state, record.phase) == (SignalState.PROCESSING, SignalPhase.HANDLING)
        assert (record.claimed_at, record.settled_at, record.error) == (CLAIMED, None, None)
        assert [signal.id for signal in await store.pending(10)] == ["t"]


async def queued_runs_come_back_as_they_were(make_store: MakeStore) -> None:
    """REC-3: QueueRuns stores all that a restart needs; LCK-4: whether they hold."""
    async with opened(make_store) as store:
        await claimed(store, "s", "t", "u")
        runs = (new_run("s", 4, 0, **FULL), new_run("s", 7, 1), new_run("s", 9, 2, session="bob", context=[]))
        await store.apply([QueueRuns("s", runs, holds=True)])
        for run in runs:
            assert await _run(store, run.id) == run
        record = await _signal(store, "s")
        assert (record.state, record.phase, record.error) == (SignalState.PROCESSING, SignalPhase.RUNNING, None)
        assert record.holds
        await store.apply([QueueRuns("t", (), error="handle raised"), QueueRuns("u", ())])
        assert [(await _signal(store, each)).error for each in "tu"] == ["handle raised", None]
        assert [(await _signal(store, each)).holds for each in "tu"] == [False, False]
        assert await store.last_position() == 9


async def a_started_run_is_running(make_store: MakeStore) -> None:
    """RUN-1: StartRun sets the mark and the time; TAG-4: the tag stays."""
    async with opened(make_store) as store:
        run = new_run("s", 1, **FULL)
        await queued(store, "s", run)
        await store.apply([StartRun(run.id, STARTED)])
        assert await _run(store, run.id) == attrs.evolve(run, state=RunState.RUNNING, started_at=STARTED)
        assert await store.tags() == ["a-tag-of-16-chars"]


async def an_ended_run_has_its_outcome_and_no_tag(make_store: MakeStore) -> None:
    """RUN-2, RUN-5, TAG-4: EndRun for each outcome, with the prompt and context that no longer hold the tag."""
    async with opened(make_store) as store:
        for number, state in enumerate((RunState.DONE, RunState.FAILED, RunState.LIMITED, RunState.CANCELLED)):
            error = None if state is RunState.DONE else "why it did not go well"
            run = new_run(f"s{number}", number + 1, **FULL)
            await queued(store, run.signal_id, run)
            await store.apply([StartRun(run.id, STARTED)])
            end = EndRun(run.id, state, ENDED, error, "what it said", USAGE, prompt="do it ***", context='{"n":0}')
            await store.apply([end])
            assert await _run(store, run.id) == attrs.evolve(
                run,
                state=state,
                started_at=STARTED,
                ended_at=ENDED,
                error=error,
                text="what it said",
                usage=USAGE,
                prompt="do it ***",
                context={"n": 0},
                tag=None,
            )
        assert await store.tags() == []


async def an_end_without_more_keeps_what_is_stored(make_store: MakeStore) -> None:
    """RUN-5: no text and no usage are none; an empty text is one; prompt and context stay."""
    async with opened(make_store) as store:
        runs = [new_run("s", number + 1, number, context={"kept": 1}) for number in range(3)]
        await queued(store, "s", *runs)
        await store.apply([StartRun(run.id, STARTED) for run in runs])
        await store.apply(
            [
                EndRun(runs[0].id, RunState.DONE, ENDED),
                EndRun(runs[1].id, RunState.DONE, ENDED, text=""),
                EndRun(runs[2].id, RunState.CANCELLED, ENDED, context="null", usage=Usage()),
            ]
        )
        found = [await _run(store, run.id) for run in runs]
        assert [run.text for run in found] == [None, "", None]
        assert [run.usage for run in found] == [None, None, Usage()]
        assert [run.context for run in found] == [{"kept": 1}, {"kept": 1}, None]
        assert {run.prompt for run in found} == {"do it"}


async def a_run_that_never_started_can_fail_or_be_cancelled(make_store: MakeStore) -> None:
    """RUN-2, TAG-2, TAG-6: and then it has no time of start."""
    async with opened(make_store) as store:
        runs = [new_run("s", number + 1, number, tag="a-tag-of-16-chars") for number in range(2)]
        await queued(store, "s", *runs)
        await store.apply(
            [
                EndRun(runs[0].id, RunState.FAILED, ENDED, "the tag is live on another run"),
                EndRun(runs[1].id, RunState.CANCELLED, ENDED, "cancelled by an operator"),
            ]
        )
        for run in [await _run(store, run.id) for run in runs]:
            assert (run.started_at, run.ended_at, run.tag) == (None, ENDED, None)


async def an_interrupted_signal_keeps_its_state_and_phase(make_store: MakeStore) -> None:
    """REC-4: InterruptSignal in each phase, and it stays interrupted."""
    async with opened(make_store) as store:
        for phase in SignalPhase:
            await in_phase(store, phase, SignalState.PROCESSING, phase)
            await store.apply([InterruptSignal(phase)])
            record = await _signal(store, phase)
            assert (record.state, record.phase, record.interrupted) == (SignalState.PROCESSING, phase, True)
            await store.apply([SettleSignal(phase, SignalState.FAILED, SETTLED, "the worker stopped")])
            assert (await _signal(store, phase)).interrupted


async def a_signal_goes_through_its_phases_and_is_settled(make_store: MakeStore) -> None:
    """SIG-4, CLM-6: StartPost and SettleSignal; a settled one has no phase, and an error exactly if it failed."""
    async with opened(make_store) as store:
        await queued(store, "s", error="handle raised")
        await queued(store, "t")
        await store.apply([StartPost("s", ENDED), StartPost("t", ENDED)])
        record = await _signal(store, "s")
        assert (record.state, record.phase, record.error) == (
            SignalState.PROCESSING,
            SignalPhase.POSTING,
            "handle raised",
        )
        await store.apply(
            [
                SettleSignal("s", SignalState.FAILED, SETTLED, "handle raised; post raised too"),
                SettleSignal("t", SignalState.DONE, SETTLED),
            ]
        )
        failed, done = await _signal(store, "s"), await _signal(store, "t")
        assert (failed.state, failed.error) == (SignalState.FAILED, "handle raised; post raised too")
        assert (done.state, done.error) == (SignalState.DONE, None)
        for record in (failed, done):
            assert (record.phase, record.claimed_at, record.settled_at) == (None, CLAIMED, SETTLED)
        assert await store.unfinished() == []


async def a_batch_is_the_same_as_its_changes_one_by_one(make_store: MakeStore) -> None:
    """LCK-5: any cut of a step's changes into commits leaves the same rows."""
    one, two = new_run("s", 1, **FULL), new_run("s", 2, 1)
    changes: list[Change] = [
        ClaimSignal("s", CLAIMED),
        QueueRuns("s", (one, two), "in part", holds=True),
        ClaimSignal("t", CLAIMED),
        StartRun(one.id, STARTED),
        SettleSignal("t", SignalState.FAILED, SETTLED, "no handler"),
        EndRun(one.id, RunState.LIMITED, ENDED, "limit", "said", USAGE, "prompt", '"context"'),
        EndRun(two.id, RunState.FAILED, ENDED, "bad tag"),
        InterruptSignal("s"),
        StartPost("s", ENDED),
        SettleSignal("s", SignalState.FAILED, SETTLED, "both"),
    ]
    wholes = []
    for cuts in range(1 << (len(changes) - 1)):
        if cuts.bit_count() in (0, 1, len(changes) - 1):
            async with opened(make_store) as store:
                await emitted(store, "s", "t")
                for batch in _cut(changes, cuts):
                    await store.apply(batch)
                wholes.append(await everything(store))
    assert all(whole == wholes[0] for whole in wholes)


def _cut(changes: Sequence[Change], cuts: int) -> Iterable[list[Change]]:
    batch: list[Change] = []
    for number, change in enumerate(changes):
        batch.append(change)
        if cuts >> number & 1:
            yield batch
            batch = []
    yield batch


async def a_step_of_many_signals_is_one_batch(make_store: MakeStore) -> None:
    """CLM-6: hundreds of signals claimed, queued and started in one commit."""
    async with opened(make_store) as store:
        ids = [f"{number:04}" for number in range(700)]
        await emitted(store, *ids)
        changes: list[Change] = []
        for position, each in enumerate(ids, 1):
            changes += [ClaimSignal(each, CLAIMED), QueueRuns(each, (new_run(each, position),))]
            changes.append(StartRun(f"run-{each}-0", STARTED))
        await store.apply(changes)
        found = await store.unfinished()
        assert [each.signal.id for each in found] == ids
        assert {each.runs[0].state for each in found} == {RunState.RUNNING}
        ends: list[Change] = [EndRun(f"run-{each}-0", RunState.DONE, ENDED) for each in ids]
        await store.apply([*ends, *(SettleSignal(each, SignalState.DONE, SETTLED) for each in ids)])
        assert (await store.counts())["signals"] == {"pending": 0, "processing": 0, "done": 700, "failed": 0}


async def a_signal_moves_only_along_its_phases(make_store: MakeStore) -> None:
    """SIG-4: every change in every state and phase is written or refused as the lifecycle says."""
    places = [(SignalState.PENDING, None), *((SignalState.PROCESSING, phase) for phase in SignalPhase)]
    places += [(SignalState.DONE, None), (SignalState.FAILED, None)]
    async with opened(make_store) as store:
        for number, (state, phase) in enumerate(places):
            for what in range(4):
                signal_id = f"{number}-{what}"
                await in_phase(store, signal_id, state, phase)
                change, following = (
                    (ClaimSignal(signal_id, CLAIMED), SignalPhase.HANDLING),
                    (QueueRuns(signal_id, ()), SignalPhase.RUNNING),
                    (StartPost(signal_id, ENDED), SignalPhase.POSTING),
                    (SettleSignal(signal_id, SignalState.DONE, SETTLED), None),
                )[what]
                over = state in (SignalState.DONE, SignalState.FAILED)
                if not over and following in PHASE_TRANSITIONS[phase]:
                    await store.apply([change])
                    assert (await _signal(store, signal_id)).phase is following
                else:
                    await _refused(store, change)


async def a_run_moves_only_along_its_states(make_store: MakeStore) -> None:
    """RUN-2: every change in every state is written or refused as the lifecycle says."""
    async with opened(make_store) as store:
        position = 0
        for state in RunState:
            for becomes in RunState:
                position += 1
                run_id = await in_run_state(store, f"s{position}", position, state)
                error = None if becomes is RunState.DONE else "why"
                change: Change = EndRun(run_id, becomes, ENDED, error)
                if becomes is RunState.RUNNING:
                    change = StartRun(run_id, STARTED)
                if becomes in RUN_TRANSITIONS[state]:
                    await store.apply([change])
                    assert (await _run(store, run_id)).state is becomes
                else:
                    await _refused(store, change)


async def changes_that_contradict_each_other_are_refused(make_store: MakeStore) -> None:
    """LCK-5: the order of a batch counts, and two moves that cannot follow each other write nothing."""
    async with opened(make_store) as store:
        run = new_run("s", 1)
        await queued(store, "s", run)
        await emitted(store, "t")
        start, end = StartRun(run.id, STARTED), EndRun(run.id, RunState.DONE, ENDED)
        settle = SettleSignal("s", SignalState.DONE, SETTLED)
        await _refused(store, end, start)
        await _refused(store, start, start)
        await _refused(store, start, end, end)
        await _refused(store, start, end, start)
        await _refused(store, settle, settle)
        await _refused(store, settle, InterruptSignal("s"))
        await _refused(store, settle, StartPost("s", ENDED))
        await _refused(store, StartPost("s", ENDED), StartPost("s", ENDED))
        await _refused(store, InterruptSignal("s"), QueueRuns("s", ()))
        await _refused(store, QueueRuns("t", ()), ClaimSignal("t", CLAIMED))
        await _refused(store, ClaimSignal("t", CLAIMED), StartPost("t", ENDED))
        await _refused(store, ClaimSignal("t", CLAIMED), ClaimSignal("t", CLAIMED))
        await _refused(store, ClaimSignal("t", CLAIMED), QueueRuns("t", ()), QueueRuns("t", ()))
        await store.apply([InterruptSignal("s"), StartPost("s", ENDED), InterruptSignal("s")])


async def a_batch_with_one_bad_change_writes_nothing(make_store: MakeStore) -> None:
    """RUN-1: on an error nothing of the batch is written, wherever in it the bad one stands."""
    async with opened(make_store) as store:
        run = new_run("s", 1, tag="a-tag-of-16-chars")
        await queued(store, "s", run)
        await emitted(store, "t")
        await store.request(RequestKind.CANCEL_SIGNAL, "s")
        (request,) = await store.requests()
        good: list[Change] = [
            ClaimSignal("t", CLAIMED),
            QueueRuns("t", (new_run("t", 2),)),
            StartRun(run.id, STARTED),
            FinishRequest(request.id),
        ]
        bad: tuple[Change, ...] = (
            ClaimSignal("nobody", CLAIMED),
            StartRun("nobody", STARTED),
            EndRun("nobody", RunState.DONE, ENDED),
            InterruptSignal("nobody"),
            QueueRuns("nobody", ()),
            QueueRuns("s", (new_run("s", 3, 1),)),
            SettleSignal("s", SignalState.DONE, SETTLED, "an error"),
            SettleSignal("s", SignalState.FAILED, SETTLED),
            SettleSignal("s", SignalState.FAILED, SETTLED, ""),
            SettleSignal("s", SignalState.PROCESSING, SETTLED),
            EndRun(run.id, RunState.DONE, ENDED, "an error"),
            EndRun(run.id, RunState.FAILED, ENDED),
            EndRun(run.id, RunState.LIMITED, ENDED, ""),
            EndRun(run.id, RunState.RUNNING, ENDED),
        )
        for change in bad:
            for place in range(len(good) + 1):
                await _refused(store, *good[:place], change, *good[place:])
        await store.apply(good)


async def a_position_is_given_out_once(make_store: MakeStore) -> None:
    """LCK-2: not again, not below, not twice in a batch; run ids and indexes are never doubled."""
    async with opened(make_store) as store:
        await claimed(store, "s", "t", "u")
        await store.apply([QueueRuns("s", (new_run("s", 5),))])
        for position in (5, 4, 0, -1):
            await _refused(store, QueueRuns("t", (new_run("t", position),)))
        await _refused(store, QueueRuns("t", (new_run("t", 7), new_run("t", 6, 1))))
        await _refused(store, QueueRuns("t", (new_run("t", 6), new_run("t", 6, 1))))
        await _refused(store, QueueRuns("t", (new_run("t", 7),)), QueueRuns("u", (new_run("u", 6),)))
        await _refused(store, QueueRuns("t", (new_run("t", 6, id="run-s-0"),)))
        await _refused(store, QueueRuns("t", (new_run("t", 6, id="x"), new_run("t", 7, 1, id="x"))))
        await _refused(store, QueueRuns("t", (new_run("t", 6, id="x"), new_run("t", 7, id="y"))))
        await _refused(store, QueueRuns("t", (new_run("s", 6, 1),)))
        await _refused(store, QueueRuns("t", (new_run("t", 6, state=RunState.RUNNING, started_at=QUEUED),)))
        await store.apply([QueueRuns("t", (new_run("t", 6),)), QueueRuns("u", (new_run("u", 8),))])
        assert await store.last_position() == 8


async def an_apply_of_nothing_does_nothing(make_store: MakeStore) -> None:
    """RUN-1."""
    async with opened(make_store) as store:
        before = await everything(store)
        await store.apply([])
        assert await everything(store) == before


async def a_cancelled_apply_has_written_all_or_nothing(make_store: MakeStore) -> None:
    """RUN-1, STP-3: wherever the cancellation falls; an apply that returned was written."""
    async with opened(make_store) as store:
        for turns in range(10):
            signal_id, run = f"s{turns}", new_run(f"s{turns}", turns + 1)
            await emitted(store, signal_id)
            returned = False
            with trio.CancelScope() as scope:

                async def apply(signal_id: str = signal_id, run: Run = run) -> None:
                    nonlocal returned
                    await store.apply([ClaimSignal(signal_id, CLAIMED), QueueRuns(signal_id, (run,))])
                    returned = True

                async def cancel(scope: trio.CancelScope = scope, turns: int = turns) -> None:
                    for _ in range(turns):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(apply)
                    nursery.start_soon(cancel)
            record, stored = await _signal(store, signal_id), await store.run(run.id)
            assert (record.phase is SignalPhase.RUNNING) == (stored is not None)
            assert (record.state is SignalState.PENDING) == (stored is None)
            assert stored is not None or not returned
