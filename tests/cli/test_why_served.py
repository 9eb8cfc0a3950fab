"""``why`` and ``top`` of a running gateway, where a session's input waits behind other work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import Command
from tests.cli.watched_house import House

pytestmark = pytest.mark.slow


@pytest.fixture
def house(here: Path) -> Iterator[House]:
    """A gateway on ``concorde.db`` in the current folder."""
    made = House(here)
    made.start()
    yield made
    made.stop()


def test_a_session_is_told_with_its_run_and_the_chain_of_its_input(here: Path, house: House, command: Command) -> None:
    """SES-12a, SES-20, LCK-7: the input's run, everybody before it, and the root; a session at work tells its holds."""
    first = command("emit", "message", json.dumps([["ann", "stall", ["till"]], ["bob", "hello", ["till"]]])).out.strip()
    while command("top", "--json").json["sessions"] == []:
        pass
    receipt = command("send", "bob", "are you there?", "--json").json
    waiting = f"{receipt['signal_id']}-1"
    while command("runs", waiting).status:
        pass
    done = command("why", "bob")
    told = done.out.splitlines()
    assert (done.status, done.err) == (0, "")
    assert told[0].startswith(f'session "bob" waits for lock: run {waiting} waits for run {first}-2 on session "bob"')
    chain = told[told.index("  the chain:") + 1 : -1]
    assert [line.split()[1] for line in chain] == [waiting, f"{first}-2", f"{first}-1"]
    assert told[-1].startswith(f"  root: run {first}-1 of signal {first} (running since ")
    found = command("why", "bob", "--json").json
    assert [link["run_id"] for link in found["chain"]] == [waiting, f"{first}-2", f"{first}-1"]
    assert found["lock"]["root"]["run_id"] == f"{first}-1"
    at_work = command("why", "ann").out.splitlines()
    assert at_work[0].startswith('session "ann" waits for model') and " left" in at_work[0]
    assert at_work[1] == f"  in run {first}-1 of signal {first}" and at_work[2].startswith("  held by llm for ")


def test_one_picture_of_a_gateway_has_what_its_sessions_wait_on(here: Path, house: House, command: Command) -> None:
    """SRV-4, SES-12a: and with --direct what the rows say."""
    first = command("emit", "message", '[["ann", "stall", []]]').out.strip()
    while command("top", "--json").json["sessions"] == []:
        pass
    told = command("top").out.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in told[2:] if line}
    assert told[0] == "worker running" and rows[f"{first}-1"][0] == "running"
    assert rows["ann"][0] == "model" and rows["ann"][3:6] == ["llm", rows["ann"][2], "left;"]
    direct = command("top", "--direct", "--json").json
    assert direct["worker"]["status"] == "unasked" and direct["id"] is None
    assert [(run["id"], run["state"]) for run in direct["runs"]] == [(f"{first}-1", "running")]
