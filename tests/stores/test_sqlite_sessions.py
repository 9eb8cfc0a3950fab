"""Sessions in a SQLite file: several in one commit, a bad one alone, and files of the version before."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from concorde_trio._sansio.changes import Change, ClaimSignal, EndRun, QueueRuns, StartRun
from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs, SessionChange, SettleInputs
from concorde_trio.errors import StoreError
from concorde_trio.messages import InputState
from concorde_trio.records import RunState
from concorde_trio.stores import SqliteStore, sqlite_connection
from concorde_trio.stores.sqlite_sql import migrations
from concorde_trio.testing.session_store_checks.samples import AT, LATER, all_of, given, said, save, summed
from concorde_trio.testing.store_checks.samples import everything, new_run, new_signal
from tests.stores.test_sqlite_writer import Gate

Changes = Sequence[Change | SessionChange]


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A gate before the commits of this test."""
    return Gate(monkeypatch)


async def in_one_commit(store: SqliteStore, gate: Gate, *works: Changes) -> list[str | None]:
    """Apply each, all in one commit; the error of each, None if it was written."""
    errors: list[str | None] = [None] * len(works)

    async def apply(number: int) -> None:
        try:
            await store.apply(works[number])
        except StoreError as error:
            errors[number] = str(error)

    gate.open.clear()
    gate.reached.clear()
    gate.sizes.clear()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.apply, ())
        await gate.wait_reached()
        for number in range(len(works)):
            nursery.start_soon(apply, number)
            await trio.testing.wait_all_tasks_blocked()
        gate.texts.clear()
        gate.open.set()
    assert gate.sizes == [1, len(works)]
    return errors


def verbs(gate: Gate) -> list[str]:
    """The statements of the last commit by their first words and tables."""
    last = max(number for number, text in enumerate(gate.texts) if text.startswith("begin"))
    return [" ".join(text.split()[:3]) for text in gate.texts[last:] if not text.startswith("--")]


async def test_a_commit_of_many_sessions_has_one_statement_for_each_kind_of_row(tmp_path: Path, gate: Gate) -> None:
    """SES-1, REC-5: thirty sessions that each write a message and settle an input cost what one costs."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        names = [f"s{number}" for number in range(30)]
        await store.apply([change for name in names for change in (save(name), given(f"i {name}", name))])
        works: list[Changes] = [
            (
                save(name, at=LATER),
                said(1, session=name),
                SettleInputs((f"i {name}",), InputState.DELIVERED, LATER),
                given(f"j {name}", name),
                EmitSignals((new_signal(f"signal {name}"),)),
                LinkInputs((f"j {name}",), f"signal {name}"),
            )
            for name in names
        ]
        assert await in_one_commit(store, gate, *works) == [None] * 30
        assert verbs(gate) == [
            "begin immediate",
            "insert into signals",
            "update sessions set",
            "insert into messages",
            "insert into inputs",
            "update inputs set",
            "commit",
        ]
        assert [each.id for each in await store.pending(100)] == [f"signal {name}" for name in names]
        for name in names:
            record = await store.session(name)
            assert record is not None
            assert (record.messages, record.queued, record.updated_at) == (1, 1, LATER)


@pytest.mark.parametrize(
    ("bad", "names"),
    [
        ((save("bad"), said(1, session="bad"), said(1, session="taken")), "message 1 of session 'taken'"),
        ((said(1, session="bad"), given("taken", "bad")), "input 'taken'"),
        ((save("bad"), SettleInputs(("nobody",), InputState.DELIVERED, AT)), "'nobody'"),
        ((save("bad"), EmitSignals((new_signal("taken"),))), "'taken'"),
        ((save("bad"), ClaimSignal("nobody", AT)), "'nobody'"),
        ((save("good 1", at=LATER), given("new 1", "bad")), "input 'new 1'"),
    ],
)
async def test_one_bad_row_fails_its_own_work_alone(tmp_path: Path, gate: Gate, bad: Changes, names: str) -> None:
    """REC-5: of three in one commit; the error names the row, and nothing of the bad one is written."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        await store.emit([new_signal("taken")])
        await store.apply([said(1, session="taken"), given("taken", "taken")])
        good: list[Changes] = [
            (save(f"good {number}"), said(1, session=f"good {number}"), given(f"new {number}", f"good {number}"))
            for number in (1, 2)
        ]
        first, error, last = await in_one_commit(store, gate, good[0], bad, good[1])
        assert first is last is None
        assert error is not None
        assert names in error
        assert await store.session("bad") is None
        for number in (1, 2):
            record = await store.session(f"good {number}")
            assert record is not None
            assert (record.messages, record.queued, record.updated_at) == (1, 1, AT)


async def test_works_of_one_commit_that_build_on_each_other_are_written_in_order(tmp_path: Path, gate: Gate) -> None:
    """SES-10a: what one accepts, the next links, and the next delivers; delivered again is refused."""
    store = SqliteStore(tmp_path / "q.db")
    async with store.open():
        errors = await in_one_commit(
            store,
            gate,
            (save(at=AT, last_epoch=4), given("i")),
            (LinkInputs(("i",), "s"), save(at=LATER, last_epoch=2)),
            (said(1), SettleInputs(("i",), InputState.DELIVERED, LATER)),
        )
        assert errors == [None] * 3
        stored, record = await store.input("i"), await store.session("ann")
        assert stored is not None
        assert record is not None
        assert (stored.state, stored.signal_id) == (InputState.DELIVERED, "s")
        assert (record.updated_at, record.last_epoch, record.messages, record.queued) == (LATER, 4, 1, 0)
        settle = SettleInputs(("j",), InputState.CANCELLED, LATER)
        errors = await in_one_commit(store, gate, (given("j"),), (settle,), (said(2), settle), (said(3),))
        assert [each is None for each in errors] == [True, True, False, True]
        assert [each.seq for each in await store.messages("ann")] == [1, 3]


def only_version_1(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From now on a store is as the first version made it; call what is returned to end that."""
    first = migrations()[:1]
    with_patch = monkeypatch.context()
    patch = with_patch.__enter__()
    patch.setattr(sqlite_connection, "migrations", lambda: first)
    return lambda: with_patch.__exit__(None, None, None)


def version_of(path: Path) -> int:
    connection = sqlite3.connect(path)
    version: int = connection.execute("select schema_version from concorde_meta").fetchone()[0]
    connection.close()
    return version


@pytest.mark.parametrize("by", ["open", "emit_sync"])
async def test_a_file_of_the_first_version_is_brought_up_to_date_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """SES-17, REC-3: signals and runs are what they were, and sessions can be kept beside them."""
    store = SqliteStore(tmp_path / "q.db")
    ended = only_version_1(monkeypatch)
    async with store.open():
        await store.emit([new_signal("s", key="K"), new_signal("t")])
        run, waits = new_run("s", 1, session="ann", tag="a-tag-of-16-chars"), new_run("s", 2, 1)
        await store.apply([ClaimSignal("s", AT), QueueRuns("s", (run, waits), holds=True), StartRun(run.id, AT)])
        await store.apply([EndRun(run.id, RunState.FAILED, LATER, "why")])
        before = await everything(store)
    assert version_of(store.path) == 1
    ended()
    if by == "emit_sync":
        assert store.emit_sync([new_signal("x", key="K")]) == ["s"]
        assert version_of(store.path) == migrations()[-1][0]
    async with store.open():
        assert await everything(store) == before
        assert version_of(store.path) == migrations()[-1][0]
        await store.apply([save(), said(1), given("i"), summed(2, covers=1), EndRun(waits.id, RunState.CANCELLED, AT)])
        after = await all_of(store)
    async with store.open():
        assert await all_of(store) == after


@pytest.mark.parametrize(
    "theirs", ["create table messages (x)", "create table Sessions (x)", "create view inputs as select 1"]
)
async def test_a_name_that_is_somebody_elses_is_refused_and_the_file_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theirs: str
) -> None:
    """SIG-2: an application keeps its tables beside the queue's; two of one name cannot be, and it is told which."""
    store = SqliteStore(tmp_path / "q.db")
    ended = only_version_1(monkeypatch)
    async with store.open(), store.transaction() as tx:
        await tx.execute(theirs)
    ended()
    name = theirs.split()[2]
    with pytest.raises(StoreError, match=rf"a (table|view) '{name}' that this package did not make; rename it"):
        async with store.open():
            pass
    with pytest.raises(StoreError, match=f"'{name}'"):
        store.emit_sync([new_signal()])
    assert version_of(store.path) == 1
    connection = sqlite3.connect(store.path)
    ours = {"sessions", "messages", "inputs"}
    assert {each.lower() for (each,) in connection.execute("select name from sqlite_schema")} & ours == {name.lower()}
    connection.close()
