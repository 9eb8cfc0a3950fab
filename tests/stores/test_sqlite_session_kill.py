"""A process killed between, or in, the commits of its sessions: what it was told is there, and whole steps only."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import trio

from concorde_trio.messages import InputState
from concorde_trio.stores import SqliteStore

pytestmark = pytest.mark.slow

STEPS = """
import itertools, sys, trio
from concorde_trio._sansio.session_changes import EmitSignals, LinkInputs, SettleInputs
from concorde_trio.messages import InputState
from concorde_trio.stores import SqliteStore
from concorde_trio.testing.session_store_checks.samples import given, said, save
from concorde_trio.testing.store_checks.samples import new_signal

store, life = SqliteStore(sys.argv[1]), sys.argv[2]

async def live(session):
    loaded = await store.load_session(session)
    seq = loaded.last_seq if loaded else 0
    for number in itertools.count():
        one, two = f"{session} {life} {number} a", f"{session} {life} {number} b"
        await store.apply([save(session, last_epoch=seq), given(one, session), given(two, session)])
        print("accepted", one, two, sep=",", flush=True)
        seq += 1
        await store.apply([
            said(seq, one, session),
            SettleInputs((one,), InputState.DELIVERED, 1.0),
            EmitSignals((new_signal("signal " + two),)),
            LinkInputs((two,), "signal " + two),
            save(session, last_epoch=seq),
        ])
        print("delivered", one, session, seq, sep=",", flush=True)

async def main():
    async with store.open(), trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(live, f"s{number}")

trio.run(main)
"""


async def check(store: SqliteStore, told: list[list[str]]) -> None:
    """All that it was told of is there."""
    async with store.open():
        for word, input_id, *rest in told:
            for each in (input_id,) if word == "delivered" else (input_id, *rest):
                stored = await store.input(each)
                assert stored is not None, f"{each} was accepted and is lost"
            if word == "delivered":
                session, seq = rest[0], int(rest[1])
                (message,) = await store.messages(session, after=seq - 1, limit=1)
                assert (message.seq, message.text) == (seq, input_id)
                record = await store.session(session)
                assert record is not None
                assert record.last_epoch >= seq


def test_a_process_killed_at_any_moment_leaves_whole_steps(tmp_path: Path) -> None:
    """SES-10a, SES-17, LSE-5: all it was told of, each input in the queue or in the transcript, no number lower; 12 kills."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    store = SqliteStore(tmp_path / "q.db")
    told: list[list[str]] = []
    for life in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", STEPS, str(store.path), str(life)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        told.append(process.stdout.readline().strip().split(","))
        killer = threading.Timer(chance.random() * 0.1, process.kill)
        killer.start()
        told += [line.strip().split(",") for line in process.stdout if line.endswith("\n")]
        killer.join()
        process.communicate()
    trio.run(check, store, told)
    connection = sqlite3.connect(store.path)
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    assert connection.execute("pragma foreign_key_check").fetchall() == []
    said = connection.execute("select document ->> 'text' from messages").fetchall()
    delivered = connection.execute("select id from inputs where state = ?", (InputState.DELIVERED.value,)).fetchall()
    assert sorted(said) == sorted(delivered)
    signals = connection.execute("select id from signals").fetchall()
    assert sorted(signals) == sorted(connection.execute("select signal_id from inputs where signal_id is not null"))
    pairs = connection.execute(
        "select count(*) from inputs where id like '% a' or id like '% b' group by substr(id, 1, length(id) - 2)"
    )
    assert {count for (count,) in pairs} == {2}
    assert connection.execute("select max(seq) - count(*) from messages group by session").fetchall() == [(0,)] * 5
    connection.close()
