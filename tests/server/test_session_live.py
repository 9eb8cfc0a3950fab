"""Watching a session over HTTP: what it streams, what it waits for, and what is never let through."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import trio

from concorde_trio._sansio.model_events import ReasoningDelta, ReplyEnd, TextDelta, TextSnapshot
from concorde_trio.errors import ModelError
from concorde_trio.server import session_live
from tests.server.session_house import SessionHouse, open_session_house, watching

pytestmark = pytest.mark.slow

TAG = 'tag-"with\\odd/signs%<&>'
MASK = "[run tag]"


@pytest.fixture
async def house() -> AsyncIterator[SessionHouse]:
    """A served worker with sessions."""
    async with open_session_house() as opened:
        yield opened


async def test_a_turn_is_seen_from_its_input_to_its_end(house: SessionHouse) -> None:
    """SES-12a: text and reasoning as they grow, calls with arguments, results, and what is waited for."""
    async with watching(house, "ann") as live:
        await house.say("ann", "do it", sender="Ann")
        accepted = await live.until("InputAccepted")
        assert (accepted["text"], accepted["sender"]) == ("do it", "Ann")
        await live.until("TurnStarted")
        await live.until("waiting_on")
        await house.model.give(
            "ann", ReasoningDelta("I think, "), ReasoningDelta("so"), TextDelta("Let me "), TextDelta("see.")
        )
        await house.model.call("ann", "call-1", {"path": "x"})
        started = await live.until("CallStarted")
        assert (started["tool"], started["arguments"]) == ("work", '{"path": "x"}')
        assert (live.text("reasoning"), live.text()) == ("I think, so", "Let me see.")
        assert ("calling", {"call_id": "call-1", "tool": "work"}) in live.seen
        waiting = await live.until("waiting_on")
        assert waiting["waiting_on"]["on"] == "tool" and waiting["waiting_on"]["left"] > 0
        house.tool.give("the result")
        assert (await live.until("CallEnded"))["text"] == "the result"
        await house.model.answer("ann", " It is done.")
        assert (await live.until("TurnEnded"))["outcome"] == "ok"
        assert live.text() == "Let me see. It is done."
        assert (await live.until("waiting_on"))["waiting_on"]["on"] == "input"


async def test_a_text_that_is_polled_is_told_as_it_grows(house: SessionHouse) -> None:
    """LSE-3: a snapshot is the whole text; what is new of it is shown, and one that begins anew is said to."""
    async with watching(house, "ann") as live:
        await house.say("ann", "hello")
        await house.model.give("ann", TextSnapshot("one "), TextSnapshot("one two "), TextSnapshot("new"), ReplyEnd())
        await live.until("TurnEnded")
        said = [(name, document) for name, document in live.seen if name in ("text", "dropped")]
        assert [document.get("text") for _, document in said] == ["one ", "two ", None, "new"]


async def test_a_reply_that_failed_is_said_to_be_dropped(house: SessionHouse) -> None:
    """SES-11: who watches learns that what was said does not count, and when it is tried again."""
    async with watching(house, "ann") as live:
        await house.say("ann", "hello")
        await house.model.give("ann", TextDelta("half"), ModelError("overloaded", status=529, retry_after="30"))
        failed = await live.until("ModelFailed")
        assert failed["error"] == "overloaded" and failed["retry_in"] == 30
        assert live.text() == "half"
        assert (await live.until("waiting_on"))["waiting_on"]["on"] == "backoff"


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
async def test_a_live_tag_is_masked_however_its_text_is_cut(house: SessionHouse, size: int) -> None:
    """TAG-4: over the borders of pieces, in text, reasoning, arguments, results and transcripts alike."""
    await house.worker.emit("prompts", [{"text": f"Send {TAG} along.", "session": "ann", "tag": TAG}])
    await house.model.until_asked("ann")
    said = f"I send {TAG}, and {TAG}{TAG} too: {json.dumps(TAG)}"
    async with watching(house, "ann") as live:
        for kind in (ReasoningDelta, TextDelta):
            await house.model.give("ann", *[kind(said[at : at + size]) for at in range(0, len(said), size)])
        await house.model.call("ann", f"call {TAG}", {"header": TAG})
        await live.until("CallStarted")
        house.tool.give(f"sent {TAG}")
        await live.until("CallEnded")
        assert live.text() == f'I send {MASK}, and {MASK}{MASK} too: "{MASK}"'
        assert live.text("reasoning") == live.text()
        for path in ("/sessions", "/sessions/ann", "/sessions/ann/messages"):
            answer = await house.operator.get(path)
            assert answer.status_code == 200
            assert TAG not in answer.text and json.dumps(TAG)[1:-1] not in answer.text
            live.seen.append((path, answer.json()))
        assert TAG not in "".join(strings(live.seen))


def strings(value: object) -> list[str]:
    """Every string in a value, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [each for pair in value.items() for one in pair for each in strings(one)]
    return [each for one in value for each in strings(one)] if isinstance(value, list | tuple) else []


async def test_two_who_watch_see_the_same_and_one_that_left_is_forgotten(house: SessionHouse) -> None:
    """SES-19: a session that somebody watches stays in memory, and no longer."""
    async with watching(house, "ann") as first:
        async with watching(house, "ann") as second:
            await house.say("ann", "hello")
            await house.model.answer("ann", "hi there")
            for live in (first, second):
                await live.until("TurnEnded")
                assert live.text() == "hi there"
        loop = house.harness.loaded("ann")
        assert loop is not None
        assert loop.watchers
    while loop.watchers:
        await trio.sleep(0.01)


async def test_a_reader_that_does_not_keep_up_is_cut_off_and_told(
    house: SessionHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SRV-4: never waited for; the session goes on."""
    monkeypatch.setattr(session_live, "BUFFER", 3)
    async with watching(house, "ann") as live:
        await house.say("ann", "hello")
        # More than the system takes for a client that does not read, which this one does not until all of it is given.
        await house.model.give("ann", *[TextDelta("word " * 4_000) for _ in range(600)], ReplyEnd())
        await house.until("ann", run=None, on="input")
        end = await live.until("end")
        assert "too slow" in end["reason"]
        assert await live.next() is None
    assert (await house.get("sessions", "ann", "messages"))["messages"][-1]["text"] == "word " * 4_000 * 600


async def test_a_stop_of_the_server_ends_a_stream_as_a_whole(house: SessionHouse) -> None:
    """SRV-4, STP-4: server_closing ends it, though its session works on."""
    async with watching(house, "ann") as live:
        await house.say("ann", "hello")
        await live.until("ModelRequested")
        house.closing.set()
        while await live.next() is not None:
            pass


async def test_the_end_of_its_worker_ends_a_stream_and_says_so() -> None:
    """SES-17: the session is closed, its turn interrupted; who watches is told."""
    async with open_session_house() as house, watching(house, "ann") as live:
        await house.say("ann", "hello")
        await house.model.until_asked("ann")
        house.worker.stop("cancel")
        assert (await live.until("TurnEnded"))["outcome"] == "interrupted"
        assert (await live.until("end"))["reason"] == "the session was closed"
