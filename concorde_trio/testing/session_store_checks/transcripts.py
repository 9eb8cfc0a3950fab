"""Rows and messages: what a session's loop writes as it goes, and starts from."""

from __future__ import annotations

from typing import Any

import attrs

from concorde_trio._sansio.session_changes import AddInput, AddMessage
from concorde_trio.messages import CallOutcome, Input, Message, Role, ToolCall
from concorde_trio.records import Usage
from concorde_trio.sessions.store import SessionRecord, StoredSession
from concorde_trio.testing.session_store_checks.samples import (
    AT,
    LAST,
    LATER,
    MakeStore,
    QueueStore,
    given,
    opened,
    refused,
    said,
    save,
    summed,
)

USAGE = Usage(input_tokens=1200, output_tokens=30, cached_tokens=1000, cost=0.1)
WORDS = 'żółć 漢字 🙂 "quoted" \\ back\nline\ttab \\u0000 </end>'


async def a_session_that_is_not_there_is_none(make_store: MakeStore) -> None:
    """SES-17: and has no messages and no inputs; a name that no store could hold is not there either."""
    async with opened(make_store) as store:
        await store.apply([save("bob")])
        for name in ("ann", "", "\ud800", "bo", "BOB"):
            assert await store.load_session(name) is None
            assert await store.session(name) is None
            assert await store.messages(name) == await store.latest_messages(name) == []
            assert await store.unsettled_inputs(name) == []
            assert await store.input(name) is None


async def a_session_is_saved_and_saved_again(make_store: MakeStore) -> None:
    """SES-17, SES-12, SES-16: its row is that of the last save, made at the first."""
    async with opened(make_store) as store:
        await store.apply([save(at=AT, last_epoch=1, last_registration=2, usage=USAGE, held=True)])
        record = SessionRecord(
            name="ann", created_at=AT, updated_at=AT, last_epoch=1, last_registration=2, usage=USAGE, held=True
        )
        assert await store.session("ann") == record
        assert await store.load_session("ann") == StoredSession(record=record, last_seq=0, messages=(), inputs=())
        await store.apply([save(at=LAST, usage=Usage(input_tokens=1)), save(at=LATER, last_epoch=3)])
        assert await store.session("ann") == attrs.evolve(
            record, updated_at=LATER, last_epoch=3, usage=Usage(), held=False
        )


async def the_numbers_of_a_lock_never_go_down(make_store: MakeStore) -> None:
    """LSE-5: an epoch names one hold for the life of the session, whoever saved it last."""
    async with opened(make_store) as store:
        await store.apply([save(last_epoch=7, last_registration=1), save(last_epoch=2, last_registration=9)])
        await store.apply([save(last_epoch=3, last_registration=3)])
        await store.apply([said(1), given("i")])
        record = await _record(store)
        assert (record.last_epoch, record.last_registration) == (7, 9)
        await store.apply([save(last_epoch=2**63 - 1, last_registration=10)])
        record = await _record(store)
        assert (record.last_epoch, record.last_registration) == (2**63 - 1, 10)


async def messages_come_back_equal(make_store: MakeStore) -> None:
    """SES-17: every kind of message, with all that it can say, in the order of their seqs."""
    parts = (
        Input(id="i", text=WORDS, at=LATER, sender="bob", attachments=({"type": "image", "data": "aGk="}, None, 1.5)),
        Input(id="j", text="", at=0.0),
    )
    calls = (
        ToolCall(id="c", name="read", arguments='{"path": "żółć"}'),
        ToolCall(id="c", name="read", refused="twice", raw="{"),
    )
    stored = [
        Message(seq=1, role=Role.USER, text=WORDS, at=AT, inputs=parts),
        Message(
            seq=2, role=Role.ASSISTANT, text="", at=LATER, calls=calls, interrupted=True, model="m",
            provider=[{"signed": WORDS, "deep": [[[{}]]]}, 2**70, 0.1], usage=USAGE,
        ),
        Message(
            seq=3, role=Role.TOOL, text=WORDS * 1000, at=LATER, call_id="c", tool="read",
            outcome=CallOutcome.SUMMARIZED, path="out/c.txt",
        ),
        Message(seq=4, role=Role.SUMMARY, text="in short", at=LAST, covers=0, keeps=(1, 3)),
    ]  # fmt: skip
    async with opened(make_store) as store:
        await store.apply([save(), *(AddMessage("ann", each) for each in stored[::-1])])
        assert await store.messages("ann") == stored
        assert await store.latest_messages("ann") == stored
        loaded = await _loaded(store)
        assert loaded.messages == (stored[3], *stored[:3])
        assert loaded.last_seq == 4


async def what_is_read_is_nobodys_to_change(make_store: MakeStore) -> None:
    """SES-17: a reader, or whoever wrote it, that changes a value changes nothing that is stored."""
    async with opened(make_store) as store:
        provider, attachment = {"a": [1]}, {"b": [2]}
        spoken = Input(id="i", text="", at=AT, attachments=(attachment,))
        await store.apply([said(1, provider=provider), attrs.evolve(given("i"), input=spoken)])
        provider["a"].append(9)
        attachment["b"].append(9)
        for _ in range(2):
            (message,) = await store.messages("ann")
            (stored,) = await store.unsettled_inputs()
            assert message.provider == {"a": [1]}
            assert stored.input.attachments == ({"b": [2]},)
            message.provider["a"].append(9)
            stored.input.attachments[0]["b"].append(9)


async def a_seq_may_be_filled_later_and_is_taken_once(make_store: MakeStore) -> None:
    """SES-9, SES-17: results come in the order in which tools end; a second message of one seq is refused."""
    async with opened(make_store) as store:
        await store.apply([save(), said(1), said(2), said(4, "fourth")])
        assert (await _loaded(store)).last_seq == 4
        await store.apply([said(3, "third"), said(1, session="bob")])
        await refused(store, said(3, "other"), names="message 3 of session 'ann'")
        await refused(store, said(5), said(5), names="message 5 of session 'ann'")
        await refused(store, said(9), said(1, session="bob"), names="message 1 of session 'bob'")
        loaded = await _loaded(store)
        assert [(each.seq, each.text) for each in loaded.messages[2:]] == [(3, "third"), (4, "fourth")]
        assert (loaded.last_seq, loaded.record.messages) == (4, 4)


async def a_session_starts_from_its_latest_summary(make_store: MakeStore) -> None:
    """SES-15: the summary, what it keeps, and what came after what it covers; the rest can still be read."""
    async with opened(make_store) as store:
        await store.apply([save(), *(said(seq) for seq in range(1, 7))])
        assert _seqs(await _loaded(store)) == [1, 2, 3, 4, 5, 6]
        await store.apply([summed(7, covers=4, keeps=(3, 1))])
        assert _seqs(await _loaded(store)) == [7, 1, 3, 5, 6]
        await store.apply([said(8), said(9)])
        assert _seqs(await _loaded(store)) == [7, 1, 3, 5, 6, 8, 9]
        await store.apply([said(11), summed(10, covers=8, keeps=(5,)), said(12)])
        loaded = await _loaded(store)
        assert _seqs(loaded) == [10, 5, 9, 11, 12]
        assert (loaded.last_seq, loaded.record.messages) == (12, 12)
        assert [each.seq for each in await store.messages("ann")] == list(range(1, 13))
        assert await store.load_session("bob") is None


async def a_summary_keeps_what_is_there_and_nothing_twice(make_store: MakeStore) -> None:
    """SES-15: a kept seq that is missing, doubled, or not covered anyway."""
    async with opened(make_store) as store:
        await store.apply([said(1), said(3), said(4), summed(5, covers=3, keeps=(1, 2, 1, 4, 5, 99))])
        assert _seqs(await _loaded(store)) == [5, 1, 4]


async def the_first_change_that_names_a_session_makes_its_row(make_store: MakeStore) -> None:
    """SES-20: an input may be accepted for a session that never ran; what was counted stays when it is saved."""
    async with opened(make_store) as store:
        await store.apply([given("i", at=LATER)])
        await store.apply([said(1, session="bob")])
        assert await store.session("ann") == SessionRecord(name="ann", created_at=LATER, updated_at=LATER, queued=1)
        assert await store.session("bob") == SessionRecord(name="bob", created_at=AT, updated_at=AT, messages=1)
        await store.apply([said(1), save(at=LAST, last_epoch=1), said(2)])
        assert await store.session("ann") == SessionRecord(
            name="ann", created_at=LATER, updated_at=LAST, last_epoch=1, messages=2, queued=1
        )
        await store.apply([said(1, session="cid", at=LAST), save("cid", at=LATER)])
        assert await store.session("cid") == SessionRecord(name="cid", created_at=LAST, updated_at=LATER, messages=1)


async def what_cannot_be_stored_names_its_row(make_store: MakeStore) -> None:
    """SES-17, SES-10a: NUL, lone surrogates, what JSON cannot hold, numbers out of range; nothing is written."""
    nan, of_message = float("nan"), "message 5 of session 'ann'"
    async with opened(make_store) as store:
        await store.apply([save(), said(1)])
        for bad in ("a\0b", "\ud800", "\udfff end"):
            await refused(store, save(bad), names="session ")
            await refused(store, said(5, bad), names=of_message)
            await refused(store, said(5, provider={"x": [bad]}), names=of_message)
            await refused(store, said(5, session=bad), names="message 5")
            await refused(store, given(f"i{bad}"), names="input 'i")
            await refused(store, given("i", session=bad), names="input 'i'")
            await refused(store, given("i", signal_id=bad), names="input 'i'")
            for field in ({"text": bad}, {"sender": bad}, {"attachments": ({"x": bad},)}):
                await refused(store, _said_as(**field), names="input 'i'")
        for provider in (nan, object(), {1: 2}, (1, 2)):
            await refused(store, said(5, provider=[provider]), names=of_message)
            await refused(store, _said_as(attachments=[provider]), names="input 'i'")
        await refused(store, said(5, at=nan), names=of_message)
        await refused(store, given("i", at=nan), names="input 'i'")
        await refused(store, save(at=nan), names="session 'ann'")
        for seq in (0, -1, 2**63):
            await refused(store, said(seq), names=f"message {seq} of session 'ann'")
        for number in (-1, 2**63):
            await refused(store, save(last_epoch=number), names="session 'ann'")
            await refused(store, save(last_registration=number), names="session 'ann'")
        await refused(store, save(usage=Usage(cost=nan)), names="session 'ann'")


async def a_summary_says_what_it_covers_and_nothing_else_does(make_store: MakeStore) -> None:
    """SES-15: one that covers itself, or does not say what, is refused."""
    async with opened(make_store) as store:
        await store.apply([save(), said(1)])
        for bad in (
            said(5, role=Role.SUMMARY),
            said(5, covers=3),
            summed(5, covers=5),
            summed(5, covers=6),
            summed(5, covers=-1),
        ):
            await refused(store, bad, names="message 5 of session 'ann'")


def _said_as(**fields: Any) -> AddInput:
    return attrs.evolve(given("i"), input=attrs.evolve(given("i").input, **fields))


async def _record(store: QueueStore) -> SessionRecord:
    record = await store.session("ann")
    assert record is not None
    return record


async def _loaded(store: QueueStore) -> StoredSession:
    loaded = await store.load_session("ann")
    assert loaded is not None
    assert loaded.record == await store.session("ann")
    return loaded


def _seqs(loaded: StoredSession) -> list[int]:
    return [each.seq for each in loaded.messages]
