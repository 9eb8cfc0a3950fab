"""ScriptedModel: the n-th request gets the n-th reply, on the virtual clock."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing

from concorde_trio import ScriptedModel
from concorde_trio._sansio.model_events import ModelRequest, Ping, Purpose, ReplyEnd, TextDelta
from concorde_trio.errors import InternalError, ModelError, UsageError
from concorde_trio.messages import ToolCall
from concorde_trio.models.scripted import Step
from concorde_trio.testing.model_checks.asking import Heard, asked, hear
from tests.models.talking import conversation, reply, user


async def test_each_request_gets_its_reply_at_its_times(autojump_clock: trio.testing.MockClock) -> None:
    """SES-2: seconds count from the step before; what is past the script's end says so."""
    model = ScriptedModel([[(2, TextDelta("a")), (3, ReplyEnd())], [(1, ModelError("slow down", status=429))]])
    start = trio.current_time()
    times: list[float] = []
    await model.stream(asked("one"), lambda event: times.append(trio.current_time() - start))
    assert times == [2, 5]
    heard = await hear(model, asked("two"))
    assert heard.error.status == 429
    assert trio.current_time() - start == 6
    heard = await hear(model, asked("three"))
    assert "script of 'scripted' is over" in str(heard.error)
    assert [request.messages[0].text for request in model.requests] == ["one", "two", "three"]


async def test_a_reply_without_an_end_stalls_for_ever(autojump_clock: trio.testing.MockClock) -> None:
    """F-01, F-02: until it is cancelled; nothing comes afterwards."""
    model = ScriptedModel([[(0, Ping()), (1, TextDelta("a"))], []])
    for events in ([Ping(), TextDelta("a")], []):
        heard = Heard()
        with trio.move_on_after(1_000_000) as scope:
            await hear(model, into=heard)
        assert scope.cancelled_caught
        assert heard.events == events


async def test_summaries_have_a_script_of_their_own(autojump_clock: trio.testing.MockClock) -> None:
    """SES-14, SES-15: a request of another purpose takes no turn's reply."""
    model = ScriptedModel(
        [[(0, TextDelta("turn")), (0, ReplyEnd())]], summaries=[[(0, TextDelta("summary")), (0, ReplyEnd())]]
    )
    summary = attrs.evolve(asked(), purpose=Purpose.COMPACTION_DRAFT)
    assert (await hear(model, summary)).reply.text == "summary"
    assert (await hear(model)).reply.text == "turn"
    assert "1 summary replies" in str((await hear(model, summary)).error)


async def test_a_function_may_answer_by_what_was_asked(autojump_clock: trio.testing.MockClock) -> None:
    """SES-2: of any purpose."""

    def answer(request: ModelRequest) -> list[Step]:
        return [(1, TextDelta(f"you said {request.messages[-1].text}")), (0, ReplyEnd())]

    assert (await hear(ScriptedModel(answer), asked("hello"))).reply.text == "you said hello"


async def test_a_request_that_is_no_valid_transcript_is_answered_by_an_error() -> None:
    """SES-9: whoever plays a script hears of it at once."""
    model = ScriptedModel([[(0, ReplyEnd())]])
    wrong = conversation(user(1), reply(2, "", ToolCall(id="a", name="t")))
    with pytest.raises(InternalError, match="before the result of 'a'"):
        await model.stream(wrong, lambda event: None)
    assert model.requests == [wrong]


@pytest.mark.parametrize(
    ("replies", "place"),
    [
        ("x", "replies"),
        ([5], r"replies\[0\]"),
        ([[ReplyEnd()]], r"replies\[0\]\[0\]"),
        ([[(0, ReplyEnd())], [(-1, ReplyEnd())]], r"replies\[1\]\[0\]"),
        ([[(0, "text")]], "model event"),
        ([[(float("inf"), ReplyEnd())]], "seconds"),
    ],
)
def test_a_script_that_is_none_is_refused_at_its_place(replies: object, place: str) -> None:
    """Model: where it was written, not at the request."""
    with pytest.raises(UsageError, match=place):
        ScriptedModel(replies)  # type: ignore[arg-type]
