"""Reads: orders, filters, limits and cursors; counts; pruning."""

from __future__ import annotations

import attrs

from concorde_trio._sansio.changes import ClaimSignal, EndRun, FinishRequest, QueueRuns, SettleSignal, StartRun
from concorde_trio.records import RequestKind, RunState, SignalState
from concorde_trio.signals.store import Pruned, RunFilter, SignalFilter
from concorde_trio.testing.store_checks.samples import (
    CLAIMED,
    ENDED,
    SETTLED,
    STARTED,
    MakeStore,
    claimed,
    emitted,
    everything,
    in_run_state,
    new_run,
    new_signal,
    opened,
    queued,
    settled,
)


async def pending_gives_the_first_unclaimed(make_store: MakeStore) -> None:
    """CLM-1: in seq order, at most as many as asked for, whatever was claimed out of order."""
    async with opened(make_store) as store:
        ids = [f"{number:02}" for number in range(40)]
        await emitted(store, *ids)
        assert [signal.id for signal in await store.pending(3)] == ids[:3]
        assert await store.pending(0) == []
        for each in (ids[1], ids[0], ids[20], ids[39]):
            await store.apply([ClaimSignal(each, CLAIMED)])
        left = [each for each in ids if each not in (ids[1], ids[0], ids[20], ids[39])]
        assert [signal.id for signal in await store.pending(100)] == left
        assert [signal.id for signal in await store.pending(20)] == left[:20]


async def unfinished_gives_the_order_of_the_claims(make_store: MakeStore) -> None:
    """REC-3: by the position of the first run, then those that have none by seq; runs in prompt order."""
    async with opened(make_store) as store:
        await emitted(store, "a", "b", "c", "d", "e", "f")
        await store.apply([ClaimSignal(each, CLAIMED) for each in "abcdef"])
        await store.apply([QueueRuns("d", (new_run("d", 1, 1), new_run("d", 2, 0)))])
        await store.apply([QueueRuns("b", (new_run("b", 3),)), QueueRuns("e", ())])
        await store.apply([QueueRuns("c", (new_run("c", 4),)), SettleSignal("f", SignalState.DONE, SETTLED)])
        found = await store.unfinished()
        assert [each.signal.id for each in found] == ["d", "b", "c", "a", "e"]
        assert [run.index for run in found[0].runs] == [0, 1]
        assert found[0].signal == await store.signal("d")
        assert found[1].runs == (await store.run("run-b-0"),)
        assert found[-1].runs == ()


async def signals_are_listed_newest_first(make_store: MakeStore) -> None:
    """SRV-2: by kind, by state, below a seq, as many as asked for."""
    async with opened(make_store) as store:
        await store.emit([new_signal(f"{number}", kind=f"k{number % 2}") for number in range(10)])
        await store.apply([ClaimSignal("3", CLAIMED), ClaimSignal("4", CLAIMED), ClaimSignal("5", CLAIMED)])
        await store.apply([SettleSignal("4", SignalState.DONE, SETTLED)])
        await store.apply([SettleSignal("5", SignalState.FAILED, SETTLED, "why")])

        async def ids(where: SignalFilter) -> str:
            return "".join(signal.id for signal in await store.signals(where))

        assert await ids(SignalFilter()) == "9876543210"
        assert await ids(SignalFilter(limit=3)) == "987"
        assert await ids(SignalFilter(kind="k1")) == "97531"
        assert await ids(SignalFilter(kind="nothing")) == ""
        assert await ids(SignalFilter(state=SignalState.PENDING)) == "9876210"
        assert await ids(SignalFilter(state=SignalState.PROCESSING)) == "3"
        assert await ids(SignalFilter(state=SignalState.DONE)) == "4"
        assert await ids(SignalFilter(state=SignalState.FAILED)) == "5"
        assert await ids(SignalFilter(kind="k0", state=SignalState.PENDING, limit=2)) == "86"
        last = (await store.signals(SignalFilter(limit=3)))[-1]
        assert await ids(SignalFilter(before=last.seq, limit=3)) == "654"
        assert await ids(SignalFilter(before=last.seq, kind="k0", state=SignalState.PENDING)) == "620"
        assert (await store.signals(SignalFilter(limit=1)))[0] == await store.signal("9")


async def lists_begin_at_a_time(make_store: MakeStore) -> None:
    """SRV-2: since: what was emitted, or queued, then or later; runs by the kind of their signals, too."""
    async with opened(make_store) as store:
        new = [new_signal(f"{at}", kind=f"k{at % 2}") for at in range(5)]
        await store.emit([attrs.evolve(each, emitted_at=float(at)) for at, each in enumerate(new)])
        for signal_id in "12":
            await store.apply([ClaimSignal(signal_id, CLAIMED)])
            await store.apply([QueueRuns(signal_id, (new_run(signal_id, int(signal_id), queued_at=7.5),))])
        await store.apply([ClaimSignal("3", CLAIMED)])
        await store.apply([QueueRuns("3", (new_run("3", 3, queued_at=8.5),))])

        async def ids(where: SignalFilter) -> str:
            return "".join(signal.id for signal in await store.signals(where))

        async def runs(where: RunFilter) -> list[int]:
            return [run.position for run in await store.runs(where)]

        assert await ids(SignalFilter(since=2.0)) == "432"
        assert await ids(SignalFilter(since=2.5, kind="k0", limit=9)) == "4"
        assert await ids(SignalFilter(since=5.0)) == await ids(SignalFilter(since=1e300)) == ""
        assert await ids(SignalFilter(since=-1.0)) == "43210"
        assert await runs(RunFilter(since=7.5)) == [3, 2, 1]
        assert await runs(RunFilter(since=8.0)) == [3]
        assert await runs(RunFilter(since=9.0)) == []
        assert await runs(RunFilter(kind="k1")) == [3, 1]
        assert await runs(RunFilter(kind="k1", since=7.0, before=3)) == [1]
        assert await runs(RunFilter(kind="k9")) == await runs(RunFilter(kind="\ud800")) == []


async def runs_are_listed_newest_first(make_store: MakeStore) -> None:
    """SRV-2: by signal, session, resource and state, below a position, as many as asked for."""
    async with opened(make_store) as store:
        await claimed(store, "s", "t")
        for signal_id, first in (("s", 1), ("t", 5)):
            runs = tuple(
                new_run(
                    signal_id,
                    first + number,
                    number,
                    session="ann" if number % 2 else "bob",
                    resources=("w",) if number == 3 else ("w2", "x"),
                )
                for number in range(4)
            )
            await store.apply([QueueRuns(signal_id, runs)])
        await store.apply([StartRun("run-s-0", STARTED), StartRun("run-t-1", STARTED)])
        await store.apply([EndRun("run-s-0", RunState.FAILED, ENDED, "why")])

        async def positions(where: RunFilter) -> list[int]:
            return [run.position for run in await store.runs(where)]

        assert await positions(RunFilter()) == [8, 7, 6, 5, 4, 3, 2, 1]
        assert await positions(RunFilter(limit=2)) == [8, 7]
        assert await positions(RunFilter(signal_id="s")) == [4, 3, 2, 1]
        assert await positions(RunFilter(signal_id="nobody")) == []
        assert await positions(RunFilter(session="ann")) == [8, 6, 4, 2]
        assert await positions(RunFilter(resource="w")) == [8, 4]
        assert await positions(RunFilter(state=RunState.RUNNING)) == [6]
        assert await positions(RunFilter(state=RunState.FAILED)) == [1]
        assert await positions(RunFilter(state=RunState.PENDING, limit=3)) == [8, 7, 5]
        assert await positions(RunFilter(before=5, limit=2)) == [4, 3]
        assert await positions(RunFilter(signal_id="t", session="bob", before=7, resource="x")) == [5]
        assert (await store.runs(RunFilter(limit=1)))[0] == await store.run("run-t-3")


async def an_unknown_id_is_none(make_store: MakeStore) -> None:
    """SRV-5: reads raise for nothing that a client can send."""
    async with opened(make_store) as store:
        await emitted(store, "s")
        for each in ("", "nobody", "S", "s ", "'; drop table signals; --", "\ud800", "x" * 10_000, "s\0"):
            assert await store.signal(each) is None
            assert await store.run(each) is None
            assert await store.runs(RunFilter(signal_id=each)) == []
            assert await store.runs(RunFilter(session=each)) == []
            assert await store.runs(RunFilter(resource=each)) == []
            assert await store.signals(SignalFilter(kind=each)) == []


async def tags_are_those_of_runs_that_have_not_ended(make_store: MakeStore) -> None:
    """TAG-4: what must be masked: waiting and running; erased with the end."""
    async with opened(make_store) as store:
        runs = [new_run("s", number + 1, number, tag=f"tag-number-{number}-of-run") for number in range(3)]
        await queued(store, "s", *runs, new_run("s", 9, 3))
        await store.apply([StartRun(runs[0].id, STARTED), StartRun(runs[1].id, STARTED)])
        await store.apply([EndRun(runs[0].id, RunState.DONE, ENDED)])
        assert sorted(await store.tags()) == ["tag-number-1-of-run", "tag-number-2-of-run"]


async def counts_say_how_many_are_in_each_state(make_store: MakeStore) -> None:
    """SRV-7: none is 0."""
    async with opened(make_store) as store:
        counts = await store.counts()
        assert counts == {
            "signals": {"pending": 0, "processing": 0, "done": 0, "failed": 0},
            "runs": {"pending": 0, "running": 0, "done": 0, "failed": 0, "limited": 0, "cancelled": 0},
        }
        for position, state in enumerate([*RunState, RunState.DONE, RunState.PENDING], 1):
            await in_run_state(store, f"s{position}", position, state)
        await emitted(store, "p", "q", "r")
        await store.apply([SettleSignal("s1", SignalState.FAILED, SETTLED, "why")])
        await store.apply([SettleSignal("s2", SignalState.DONE, SETTLED)])
        assert await store.counts() == {
            "signals": {"pending": 3, "processing": 6, "done": 1, "failed": 1},
            "runs": {"pending": 2, "running": 1, "done": 2, "failed": 1, "limited": 1, "cancelled": 1},
        }


async def requests_wait_until_they_are_finished(make_store: MakeStore) -> None:
    """RUN-6: oldest first, ids never used again, finishing twice does nothing."""
    async with opened(make_store) as store:
        await store.request(RequestKind.CANCEL_RUN, "run-1")
        await store.request(RequestKind.CANCEL_SIGNAL, "signal-1")
        await store.request(RequestKind.CANCEL_RUN, "run-1")
        found = await store.requests()
        assert [(each.kind, each.target) for each in found] == [
            (RequestKind.CANCEL_RUN, "run-1"),
            (RequestKind.CANCEL_SIGNAL, "signal-1"),
            (RequestKind.CANCEL_RUN, "run-1"),
        ]
        await store.apply([FinishRequest(found[0].id), FinishRequest(found[2].id)])
        assert await store.requests() == [found[1]]
        await store.apply([FinishRequest(found[0].id)])
        await store.apply([FinishRequest(found[1].id)])
        await store.request(RequestKind.CANCEL_RUN, "run-2")
        (last,) = await store.requests()
        assert last.id > found[2].id


async def prune_removes_what_was_settled_before(make_store: MakeStore) -> None:
    """STP-5: with its runs, and nothing unsettled or younger."""
    async with opened(make_store) as store:
        await settled(store, "old", 100.0, (new_run("old", 1), new_run("old", 2, 1)))
        await settled(store, "older", 99.0, (new_run("older", 3),))
        await settled(store, "young", 200.0, (new_run("young", 4),))
        await queued(store, "live", new_run("live", 5))
        await emitted(store, "waiting")
        assert await store.prune(99.0) == Pruned(signals=0, runs=0)
        assert await store.prune(150.0) == Pruned(signals=2, runs=3)
        assert {signal.id for signal in await store.signals(SignalFilter())} == {"young", "live", "waiting"}
        assert {run.id for run in await store.runs(RunFilter())} == {"run-young-0", "run-live-0"}
        assert await store.run("run-old-0") is None
        assert await store.runs(RunFilter(signal_id="old")) == []
        assert await store.prune(1e12) == Pruned(signals=1, runs=1)
        assert (await store.counts())["signals"] == {"pending": 1, "processing": 1, "done": 0, "failed": 0}


async def prune_gives_back_no_seq_and_no_position(make_store: MakeStore) -> None:
    """SIG-3, LCK-2: numbers of rows that are gone are not used again; a key is."""
    async with opened(make_store) as store:
        await store.emit([new_signal("one", key="K")])
        (first,) = await store.pending(1)
        await store.apply([ClaimSignal("one", CLAIMED), QueueRuns("one", (new_run("one", 7),))])
        await store.apply([EndRun("run-one-0", RunState.FAILED, ENDED, "why")])
        await store.apply([SettleSignal("one", SignalState.FAILED, SETTLED, "why")])
        assert await store.prune(1e12) == Pruned(signals=1, runs=1)
        assert await store.last_position() == 7
        assert await store.emit([new_signal("two", key="K")]) == ["two"]
        (second,) = await store.pending(1)
        assert second.seq > first.seq


async def prune_of_thousands_leaves_the_rest(make_store: MakeStore) -> None:
    """STP-5: more than one commit's worth."""
    async with opened(make_store) as store:
        ids = [f"{number:04}" for number in range(1200)]
        await emitted(store, *ids, "left")
        await store.apply([ClaimSignal(each, CLAIMED) for each in ids])
        await store.apply([SettleSignal(each, SignalState.DONE, SETTLED) for each in ids])
        assert await store.prune(SETTLED + 1) == Pruned(signals=1200, runs=0)
        assert [signal.id for signal in (await everything(store))["signals"]] == ["left"]


async def locks_can_be_derived_from_run_rows(make_store: MakeStore) -> None:
    """Q-11, LCK-4: who holds or waits for what is in the rows of unfinished signals, and nowhere else."""
    async with opened(make_store) as store:
        await claimed(store, "s", "t")
        runs = (new_run("s", 1, resources=("w",)), new_run("s", 2, 1, session="bob"))
        await store.apply([QueueRuns("s", runs, holds=True), QueueRuns("t", (new_run("t", 3, resources=("w",)),))])
        await store.apply([StartRun("run-s-0", STARTED), StartRun("run-s-1", STARTED)])
        await store.apply([EndRun("run-s-0", RunState.DONE, ENDED)])
        derived = {
            (run.session, run.resources): run.state if each.signal.holds or run.ended_at is None else "released"
            for each in await store.unfinished()
            for run in each.runs
        }
        assert derived == {("ann", ("w",)): RunState.PENDING, ("bob", ()): RunState.RUNNING}
        assert [(run.id, run.state) for each in await store.unfinished() for run in each.runs] == [
            ("run-s-0", RunState.DONE),
            ("run-s-1", RunState.RUNNING),
            ("run-t-0", RunState.PENDING),
        ]
        await store.apply([EndRun("run-s-1", RunState.DONE, ENDED), SettleSignal("s", SignalState.DONE, SETTLED)])
        assert [each.signal.id for each in await store.unfinished()] == ["t"]
