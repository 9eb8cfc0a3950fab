"""One reply out of a stream: the same however it was cut, progress only where something grew, never a call that is half there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.model_events import (
    CallDelta,
    CallStarted,
    ModelEvent,
    Ping,
    ReasoningDelta,
    ReplyEnd,
    StopReason,
    TextDelta,
    TextSnapshot,
    UsageReport,
)
from concorde_trio._sansio.reply import Reply, ReplyBuilder
from concorde_trio.messages import Input
from concorde_trio.records import Usage
from tests.sansio.session_stage import World

ARGUMENTS = '{"path":"a","content":"xyz"}'


def fed(events: Iterable[ModelEvent]) -> ReplyBuilder:
    builder = ReplyBuilder()
    for event in events:
        builder.feed(event)
    return builder


def reply_of(*events: ModelEvent, reason: StopReason = StopReason.CALLS) -> Reply:
    return fed([*events, ReplyEnd(reason)]).reply()


def call(index: int, arguments: str, call_id: str = "c", name: str = "write") -> list[ModelEvent]:
    return [CallStarted(index, call_id, name), CallDelta(index, arguments)]


# --- splits -------------------------------------------------------------------------------------------------

JSONS = st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=4), max_size=3).map(
    json.dumps
)


@st.composite
def pieces(draw: st.DrawFn, text: str) -> list[str]:
    """The text, cut into any number of pieces, empty ones among them."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[ModelEvent], list[ModelEvent]]:
    """What a reply says in as few events as can be, and the same in pieces, with what means nothing in between."""
    text, calls = draw(st.text(max_size=8)), draw(st.lists(JSONS, max_size=3))
    whole: list[ModelEvent] = [TextDelta(text)]
    lanes: list[list[ModelEvent]] = [[TextDelta(each) for each in draw(pieces(text))]]
    started: list[ModelEvent] = []
    for index, arguments in enumerate(calls):
        whole += [CallStarted(index, f"c{index}", "look", arguments)]
        first, *rest = draw(pieces(arguments))
        started.append(CallStarted(index, f"c{index}", "look", first))
        lanes.append([CallDelta(index, each) for each in rest])
    split = [*started] if draw(st.booleans()) else []
    if not split:
        for index, lane in enumerate(lanes[1:]):
            lane.insert(0, started[index])
            split += lane
        lanes = lanes[:1]
    while any(lanes):  # calls that were all begun may stream at the same time
        lane = draw(st.sampled_from([each for each in lanes if each]))
        split.append(lane.pop(0))
        split += draw(st.lists(st.sampled_from([Ping(), ReasoningDelta("hm"), TextDelta("")]), max_size=1))
    usage = [UsageReport(Usage(input_tokens=1)), UsageReport(Usage(input_tokens=9, output_tokens=3))]
    return [*whole, usage[1], ReplyEnd(provider=[1])], [usage[0], *split, usage[1], ReplyEnd(provider=[1])]


@given(streams())
def test_every_split_of_a_stream_makes_the_same_reply(stream: tuple[list[ModelEvent], list[ModelEvent]]) -> None:
    """SES-13, SES-16: pieces, empty pieces, pings, reasoning and calls that stream side by side make no difference."""
    whole, split = stream
    assert fed(split).reply() == fed(whole).reply()
    assert all(each.refused is None for each in fed(split).reply().calls)


@given(streams(), st.data())
def test_a_stream_that_is_cut_before_its_end_is_no_reply(
    stream: tuple[list[ModelEvent], list[ModelEvent]], data: st.DataObject
) -> None:
    """SES-13, F-18: whatever had come, only the provider's own end makes a reply of it."""
    split = stream[1]
    builder = fed(split[: data.draw(st.integers(0, len(split) - 1))])
    assert not builder.complete
    with pytest.raises(AssertionError):
        builder.reply()


# --- arguments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", list(StopReason))
@pytest.mark.parametrize("cut", range(1, len(ARGUMENTS)))
def test_arguments_that_are_cut_at_any_byte_are_never_a_runnable_call(cut: int, reason: StopReason) -> None:
    """SES-13, F-18: whatever the provider says of the end, the call is there to be answered, and refused."""
    (made,) = reply_of(*call(0, ARGUMENTS[:cut]), reason=reason).calls
    assert made.refused is not None and "not run" in made.refused
    assert made.arguments == "{}" and made.raw == ARGUMENTS[:cut]


@pytest.mark.parametrize("cut", range(len(ARGUMENTS) + 1))
def test_after_a_length_limit_the_last_call_is_taken_for_cut_off(cut: int) -> None:
    """SES-13, F-18: also before its first byte, and also when it looks complete."""
    first, last = reply_of(*call(0, ARGUMENTS, "a"), *call(1, ARGUMENTS[:cut], "b"), reason=StopReason.LENGTH).calls
    assert first.refused is None and first.arguments == ARGUMENTS
    assert last.refused is not None and "length limit" in last.refused


def test_after_a_length_limit_no_call_without_a_byte_of_arguments_is_run() -> None:
    """SES-13, F-18: calls that were all begun first may have been cut before any of their arguments came."""
    events = [CallStarted(0, "a", "wipe"), CallStarted(1, "b", "look"), CallDelta(1, "{")]
    assert [each.refused is None for each in reply_of(*events, reason=StopReason.LENGTH).calls] == [False, False]


def test_a_call_without_arguments_is_a_call_with_none() -> None:
    """SES-13: many providers send nothing for a tool that takes nothing."""
    for arguments in ("", "  \n", "{}"):
        (made,) = reply_of(*call(0, arguments)).calls
        assert made.refused is None and made.arguments == "{}"


@pytest.mark.parametrize(
    "arguments", ["[1]", '"text"', "1", "null", "true", '{"a": NaN}', "{'a': 1}", '{"a": 1} {"b": 2}', "[" * 100_000]
)
def test_arguments_that_are_no_json_object_are_refused_in_words(arguments: str) -> None:
    """SES-9, SES-13: and what came is kept, cut."""
    (made,) = reply_of(*call(0, arguments)).calls
    assert made.refused is not None and made.refused.startswith("its arguments are ")
    assert made.arguments == "{}" and made.raw == arguments[:2_000]


def test_an_id_that_stands_twice_in_one_reply_is_refused_the_second_time() -> None:
    """SES-13: the first is run; an id of another reply does not count."""
    calls = reply_of(*call(0, "{}", "x", "one"), *call(1, "{}", "y", "two"), *call(2, "{}", "x", "three")).calls
    assert [(each.id, each.name, each.refused is None) for each in calls] == [
        ("x", "one", True),
        ("y", "two", True),
        ("x", "three", False),
    ]
    assert reply_of(*call(0, "{}", "x")).calls[0].refused is None


def test_an_index_that_is_used_again_is_a_new_call() -> None:
    """SES-13: some servers count every call as number 0; their arguments are not glued together."""
    calls = reply_of(*call(0, '{"a":1}', "x"), *call(0, '{"b":2}', "y")).calls
    assert [(each.id, each.arguments) for each in calls] == [("x", '{"a":1}'), ("y", '{"b":2}')]


def test_ids_are_never_empty_and_arguments_of_no_call_are_dropped() -> None:
    """SES-9."""
    calls = reply_of(CallDelta(7, "{"), *call(0, "{}", ""), *call(1, "{}", "")).calls
    assert [each.id for each in calls] == ["call_1", "call_2"]
    assert all(each.refused is None for each in calls)


def test_what_no_store_can_hold_is_replaced() -> None:
    """SES-9, SES-17: NUL and lone surrogates come from models now and then."""
    reply = reply_of(TextDelta("a\0b\ud800"), *call(0, '{"a":"\0"}', "i\0", "n\0"))
    assert reply.text == "a\ufffdb\ufffd"
    assert (reply.calls[0].id, reply.calls[0].name) == ("i\ufffd", "n\ufffd")


# --- progress -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "grew"),
    [
        ([TextDelta("a"), TextDelta(""), TextDelta("b")], [True, False, True]),
        ([ReasoningDelta("…"), ReasoningDelta("")], [True, False]),
        ([CallStarted(0, "c", "t"), CallDelta(0, ""), CallDelta(0, "{")], [True, False, True]),
        ([CallDelta(3, "{}")], [False]),
        ([Ping(), UsageReport(Usage(input_tokens=5)), ReplyEnd()], [False, False, False]),
        ([TextSnapshot("a"), TextSnapshot("a"), TextSnapshot("ab"), TextSnapshot("a")], [True, False, True, False]),
        ([TextSnapshot("")], [False]),
    ],
)
def test_only_what_grows_is_progress(events: Sequence[ModelEvent], grew: list[bool]) -> None:
    """LSE-3: text, reasoning, arguments; not a keep-alive, usage alone, or a buffer as it was."""
    builder = ReplyBuilder()
    assert [builder.feed(event) for event in events] == grew


def test_a_snapshot_stands_for_all_the_text_so_far() -> None:
    """LSE-3: the longest counts, whatever a slower poll brings later."""
    builder = fed([TextSnapshot("one"), TextSnapshot("one two"), TextSnapshot("one")])
    assert builder.text == "one two"
    builder.feed(TextDelta("!"))
    builder.feed(ReplyEnd(StopReason.STOP))
    assert builder.reply().text == "one two!"


def test_the_last_usage_counts_whatever_becomes_of_the_reply() -> None:
    """SES-16."""
    builder = fed([UsageReport(Usage(input_tokens=5)), UsageReport(Usage(input_tokens=5, output_tokens=2))])
    assert builder.usage == Usage(input_tokens=5, output_tokens=2) and not builder.complete


class Counted(str):
    """A piece that counts the characters which are copied when it is joined to another text by ``+``."""

    copied = 0

    def __add__(self, other: str) -> str:
        type(self).copied += len(self) + len(other)
        return str.__add__(self, other)

    def __radd__(self, other: str) -> str:
        type(self).copied += len(self) + len(other)
        return other + str(self)


def test_a_long_reply_is_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """LSE-3: while it streams no piece is joined to what came before, and nobody asks for all of it at each piece."""
    reads = 0
    plain = ReplyBuilder.text.fget
    assert plain is not None

    def counting(self: ReplyBuilder) -> str:
        nonlocal reads
        reads += 1
        return plain(self)

    monkeypatch.setattr(ReplyBuilder, "text", property(counting))
    world = World()
    world.machine.submit(Input(id="i", text="hi", at=1.0))
    world.pump()
    ((epoch, start),) = world.requests.items()
    Counted.copied = 0
    for _ in range(2_000):
        assert world.machine.progress(epoch, start.request.purpose, TextDelta(Counted("word ")))
        assert world.machine.take_step() is None
    assert world.machine.progress(epoch, start.request.purpose, CallStarted(0, "a", "look", ""))
    for _ in range(2_000):
        world.machine.progress(epoch, start.request.purpose, CallDelta(0, Counted(" ")))
    world.machine.progress(epoch, start.request.purpose, ReplyEnd(StopReason.STOP))
    world.machine.request_over(epoch, start.request.purpose, None)
    assert Counted.copied == 0 and reads < 10
    world.pump(over=epoch)
    assert len(world.store.messages[1].text) == 10_000
