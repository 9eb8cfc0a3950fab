"""The demo's household served for real: real programs, real requests, a real queue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest
import trio

from concorde_trio.demo import household as module
from concorde_trio.demo.check import check
from concorde_trio.demo.errands import BUDGET, Errand, Message, all_errands
from concorde_trio.demo.evidence import Evidence, read_files, read_journal
from concorde_trio.demo.household import Household
from concorde_trio.demo.page import add_timeline
from concorde_trio.demo.people import People
from concorde_trio.records import Prompt, Signal

pytestmark = pytest.mark.slow


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Household]:
    """A household that is served while the block runs."""
    household = Household(folder)
    add_timeline(household, {})
    async with trio.open_nursery() as nursery:
        await nursery.start(household.gateway.run)
        yield household
        household.gateway.stop("cancel")


async def played(household: Household, messages: Sequence[Message]) -> Evidence:
    """Send these messages, wait for all, and gather the evidence."""
    gateway = household.gateway
    signals: list[str] = []
    await People(str(gateway.url), gateway.access.operator_token).send(
        messages, lambda message, signal_id: signals.append(signal_id)
    )
    for signal_id in signals:
        await gateway.wait_settled(signal_id)
    return Evidence(
        plan=messages,
        journal=read_journal(household.journal),
        requests=list(household.requests),
        budget=BUDGET,
        left=household.left,
        ledger=household.ledger,
        books=household.books.read_text().splitlines(),
        ended={errand.number: "done" for errand in all_errands(messages)},
        running=(),
        files=read_files(household.rooms),
    )


def purchases(count: int) -> list[Message]:
    """As many purchases, each in a session of its own, all at once."""
    return [
        Message(
            person="ann",
            kind="shopping.asked",
            about="buy",
            text="Buy something.",
            errands=(Errand(number=number, session=None, budget=True, steps=("spend 10 on something",)),),
            pause=0.0,
        )
        for number in range(1, count + 1)
    ]


async def test_the_budget_is_right_because_of_its_lock(tmp_path: Path) -> None:
    """LCK-2, LCK-4: three read, wait and write, in turn; so does the bookkeeper."""
    async with serving(tmp_path) as household:
        evidence = await played(household, purchases(3))
    faults = {finding.name: finding.faults for finding in check(evidence) if finding.faults}
    assert faults == {"what was said meanwhile was heard once, in order": ("there was no message to look at",)}
    assert household.left == BUDGET - 30


async def test_without_the_lock_the_check_finds_it_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Demo: the same three without any resource; the budget is wrong, and the check says so."""
    make = module.make_prompt

    def without_locks(signal: Signal, part: dict[str, Any]) -> Prompt:
        return attrs.evolve(make(signal, part), resources=())

    monkeypatch.setattr(module, "make_prompt", without_locks)
    async with serving(tmp_path) as household:
        evidence = await played(household, purchases(3))
    faults = {finding.name: finding.faults for finding in check(evidence)}
    assert faults["no two runs that share a lock overlapped"]
    assert faults["the budget is what was spent"]
    assert faults["every purchase is in the books"]
    assert not faults["every tagged request was attributed to its run"]


async def test_who_is_no_run_spends_nothing(tmp_path: Path) -> None:
    """TAG-3: without a live tag there is no run, and without a run no money."""
    async with serving(tmp_path) as household, httpx2.AsyncClient(base_url=str(household.gateway.url)) as client:
        claims: list[dict[str, str | bytes]] = [
            {"demo-errand": "1"},
            {"demo-errand": b"\xb2"},
            {"demo-errand": "9" * 5000},
        ]
        for headers in ({}, {"concorde-run-tag": "never-given-to-anybody"}, *claims):
            answer = await client.put("/budget", json={"left": 0, "spent": 250}, headers=headers)
            assert answer.status_code == 403
            assert "send your run tag" in answer.json()["detail"]
        assert (await client.get("/budget")).json() == {"left": BUDGET}
        assert {asked.attributed for asked in household.requests} == {None}
        assert [asked.claims for asked in household.requests] == [None, None, 1, None, None, None]


async def test_what_is_said_to_a_session_has_that_persons_place_and_nobodys_errand(tmp_path: Path) -> None:
    """SES-20: it becomes a run with the resources of session_resources; its requests are no errand's."""
    async with serving(tmp_path) as household:
        gateway = household.gateway
        receipt = await gateway.sessions.submit("ann", "look at the budget")
        stored = await gateway.sessions.store.input(receipt.id)
        assert stored is not None and stored.signal_id is not None
        record = await gateway.wait_settled(stored.signal_id)
        run = await gateway.store.run(f"{record.id}-1")
        assert run is not None
        assert (run.state, run.resources, run.text) == ("done", ("kitchen",), f"There are {BUDGET} left in the budget.")
        assert "errand 0" not in household.journal.read_text()
        (asked,) = household.requests
        assert (asked.claims, asked.attributed) == (0, None)  # nobody gave it a tag


async def test_the_timeline_shows_no_prompt(tmp_path: Path) -> None:
    """SRV-6: whoever looks at it needs no token, so nothing secret is on it."""
    async with serving(tmp_path) as household, httpx2.AsyncClient(base_url=str(household.gateway.url)) as client:
        await played(household, purchases(1))
        drawing = await client.get("/timeline.svg")
        assert drawing.headers["content-type"] == "image/svg+xml"
        assert drawing.text.startswith("<svg")
        assert "Buy something" not in drawing.text


@pytest.mark.parametrize("kind", ["message.received", "question.asked", "shopping.asked"])
async def test_a_message_that_is_none_fails_with_the_words_for_it(tmp_path: Path, kind: str) -> None:
    """CLM-5: with --keep, people try things."""
    async with serving(tmp_path) as household:
        for payload in (None, 7, [], {}, {"text": 3}, {"text": "x", "parts": [3]}, {"text": "x", "parts": 3}):
            record = await household.gateway.wait_settled(await household.gateway.emit(kind, payload))
            assert record.state == "failed"
            assert record.error is not None
            assert "a message is {" in record.error


async def test_a_message_of_a_few_words_is_answered(tmp_path: Path) -> None:
    """CLM-4: text alone is enough, whoever says it."""
    async with serving(tmp_path) as household:
        gateway = household.gateway
        for kind in ("message.received", "question.asked", "shopping.asked"):
            record = await gateway.wait_settled(await gateway.emit(kind, {"text": "Hello {there} {{ you }}?"}))
            assert (record.state, record.error) == ("done", None)
