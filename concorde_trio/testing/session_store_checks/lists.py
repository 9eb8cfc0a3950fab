"""Lists of sessions and messages, page by page, and what prune removes."""

from __future__ import annotations

from concorde_trio._sansio.changes import EndRun, SettleSignal, StartRun
from concorde_trio._sansio.session_changes import SettleInputs
from concorde_trio.messages import InputState
from concorde_trio.records import RunState, SignalState
from concorde_trio.sessions.store import SessionFilter
from concorde_trio.signals.store import Pruned
from concorde_trio.testing.session_store_checks.samples import (
    LATER,
    MakeStore,
    QueueStore,
    all_of,
    given,
    opened,
    said,
    save,
    summed,
)
from concorde_trio.testing.store_checks.samples import new_run, queued, settled


async def sessions_are_listed_from_the_most_recently_updated(make_store: MakeStore) -> None:
    """SRV-2: those of one time by name downwards, in the order of characters; a cursor goes on where a page ended."""
    async with opened(make_store) as store:
        names = ["a", "B", "ż", "漢", "🙂", "ab"]
        await store.apply([save(name, at=5.0) for name in names])
        await store.apply([save("newest", at=9.0), save("oldest", at=1.0)])
        order = ["newest", *sorted(names, reverse=True), "oldest"]
        assert await _names(store, SessionFilter()) == order
        for limit in (1, 2, 3, 8):
            seen: list[str] = []
            before = None
            while page := await store.sessions(SessionFilter(before=before, limit=limit)):
                assert len(page) <= limit
                seen += [each.name for each in page]
                before = (page[-1].updated_at, page[-1].name)
            assert seen == order
        await store.apply([save("oldest", at=10.0)])
        assert await _names(store, SessionFilter(limit=2)) == ["oldest", "newest"]
        assert await _names(store, SessionFilter(limit=0)) == []


async def sessions_are_found_by_how_their_names_begin(make_store: MakeStore) -> None:
    """SRV-2: as written: what is a pattern elsewhere is a character here."""
    async with opened(make_store) as store:
        await store.apply([save(name, at=1.0) for name in ("run_1", "runs", "a%b", "ab", "a_b", "A%", "żółw", "żó")])
        for prefix, found in {
            "": ["żółw", "żó", "runs", "run_1", "ab", "a_b", "a%b", "A%"],
            "run": ["runs", "run_1"],
            "run_": ["run_1"],
            "a%": ["a%b"],
            "żół": ["żółw"],
            "\ud800": [],
            "nobody": [],
        }.items():
            assert await _names(store, SessionFilter(prefix=prefix)) == found, prefix
        assert await _names(store, SessionFilter(prefix="a", before=(1.0, "ab"), limit=1)) == ["a_b"]


async def a_list_has_what_is_counted(make_store: MakeStore) -> None:
    """SRV-2: messages, compacted ones too, and queued inputs, those that became signals too."""
    async with opened(make_store) as store:
        await store.apply([said(1), said(2), summed(3, covers=2), given("i"), given("j", signal_id="s"), given("k")])
        await store.apply([SettleInputs(("k",), InputState.CANCELLED, LATER), save("bob")])
        found = {each.name: each for each in await store.sessions(SessionFilter())}
        assert (found["ann"].messages, found["ann"].queued) == (3, 2)
        assert (found["bob"].messages, found["bob"].queued) == (0, 0)
        for name, record in found.items():
            assert await store.session(name) == record


async def messages_are_read_by_pages(make_store: MakeStore) -> None:
    """SRV-2: forward from a seq, or the last ones; of this session only."""
    async with opened(make_store) as store:
        await store.apply([said(seq) for seq in (1, 2, 3, 5, 8, 13)])
        await store.apply([said(seq, session="bob") for seq in (1, 4)])
        assert await _seqs(store, after=0, limit=2) == [1, 2]
        assert await _seqs(store, after=2, limit=2) == [3, 5]
        assert await _seqs(store, after=3) == [5, 8, 13]
        assert await _seqs(store, after=6, limit=50) == [8, 13]
        assert await _seqs(store, after=13) == []
        assert await _seqs(store, after=2**70) == []
        assert await _seqs(store, limit=0) == []
        assert [each.seq for each in await store.latest_messages("ann", limit=3)] == [5, 8, 13]
        assert [each.seq for each in await store.latest_messages("ann", limit=50)] == [1, 2, 3, 5, 8, 13]
        assert await store.latest_messages("ann", limit=0) == []
        for before, limit, seqs in ((8, 2, [3, 5]), (9, 2, [5, 8]), (3, 50, [1, 2]), (1, 50, []), (2**70, 1, [13])):
            assert [each.seq for each in await store.latest_messages("ann", before=before, limit=limit)] == seqs
        await store.apply([said(seq) for seq in range(20, 100)])
        assert len(await store.messages("ann")) == len(await store.latest_messages("ann")) == 50


async def prune_removes_old_sessions_with_all_they_have(make_store: MakeStore) -> None:
    """STP-5: by the time of their last save; a name or an id that is gone can be used anew."""
    async with opened(make_store) as store:
        await store.apply([save("old", at=10.0, last_epoch=4), said(1, session="old"), given("i", "old")])
        await store.apply([SettleInputs(("i",), InputState.DELIVERED, LATER)])
        await store.apply([save("young", at=30.0), said(1, session="young"), given("j", "young")])
        assert await store.prune_sessions(10.0) == 0
        assert await store.prune_sessions(20.0) == 1
        assert [await store.session("old"), await store.load_session("old"), await store.input("i")] == [None] * 3
        assert await store.messages("old") == []
        young = await all_of(store)
        assert [each.name for each in young["sessions"]] == ["young"]
        assert await store.prune_sessions(20.0) == 0
        assert await all_of(store) == young
        await store.apply([save("old", at=40.0), said(1, session="old"), given("i", "old")])
        again = await store.session("old")
        assert again is not None
        assert (again.created_at, again.last_epoch, again.messages, again.queued) == (40.0, 0, 1, 1)


async def prune_leaves_a_session_with_queued_input(make_store: MakeStore) -> None:
    """STP-5, SES-10a: whether its loop has it or a signal."""
    async with opened(make_store) as store:
        await store.apply([save("a", at=1.0), given("i", "a", at=1.0), save("b", at=1.0)])
        await store.apply([given("j", "b", at=1.0, signal_id="s")])
        assert await store.prune_sessions(1e12) == 0
        await store.apply([SettleInputs(("j",), InputState.CANCELLED, LATER)])
        assert await store.prune_sessions(1e12) == 1
        assert await _names(store, SessionFilter()) == ["a"]


async def prune_leaves_a_session_whose_run_has_not_ended(make_store: MakeStore) -> None:
    """STP-5: waiting or running; one that has ended holds nothing."""
    async with opened(make_store) as store:
        one, two = new_run("s", 1, session="waits"), new_run("s", 2, 1, session="runs")
        await queued(store, "s", one, two)
        await store.apply([StartRun(two.id, LATER), *(save(name, at=1.0) for name in ("waits", "runs", "free"))])
        assert await store.prune_sessions(1e12) == 1
        assert await _names(store, SessionFilter()) == ["waits", "runs"]
        await store.apply([EndRun(two.id, RunState.DONE, LATER)])
        assert await store.prune_sessions(1e12) == 1
        await store.apply([EndRun(one.id, RunState.CANCELLED, LATER)])
        await store.apply([SettleSignal("s", SignalState.FAILED, LATER, "cancelled")])
        assert await store.prune_sessions(1e12) == 1


async def prune_takes_the_oldest_and_not_more_than_it_may(make_store: MakeStore) -> None:
    """STP-5: a bounded batch; those that stay do not stand in the way of those that go."""
    async with opened(make_store) as store:
        await store.apply([save(f"s{number:03}", at=float(number)) for number in range(150)])
        await store.apply([given(f"i{number}", f"s{number:03}", at=0.0) for number in range(5)])
        assert await store.prune_sessions(120.0, limit=3) == 3
        assert (await _names(store, SessionFilter(limit=200)))[-6:] == ["s008", "s004", "s003", "s002", "s001", "s000"]
        assert await store.prune_sessions(120.0, limit=0) == 0
        assert await store.prune_sessions(120.0) == 112
        assert len(await _names(store, SessionFilter(limit=200))) == 35


async def prune_of_signals_takes_old_sessions_too(make_store: MakeStore) -> None:
    """STP-5: one time for all; a session whose signals are gone in the same breath goes with them."""
    async with opened(make_store) as store:
        await settled(store, "old", 10.0, (new_run("old", 1, session="ann"),))
        await store.apply([save("ann", at=10.0), save("bob", at=30.0)])
        await store.apply([save(f"s{number}", at=1.0) for number in range(130)])
        assert await store.prune(20.0) == Pruned(signals=1, runs=1, sessions=131)
        assert await store.prune(20.0) == Pruned(signals=0, runs=0, sessions=0)
        assert await _names(store, SessionFilter()) == ["bob"]


async def _names(store: QueueStore, where: SessionFilter) -> list[str]:
    return [each.name for each in await store.sessions(where)]


async def _seqs(store: QueueStore, *, after: int = 0, limit: int = 50) -> list[int]:
    return [each.seq for each in await store.messages("ann", after=after, limit=limit)]
