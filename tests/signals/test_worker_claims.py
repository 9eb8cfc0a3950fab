"""CLM at the worker's door: which signal is claimed when, and what its handler can and cannot do to it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio.events import HandleBlocked, HandleFailed, SignalClaimed
from concorde_trio.records import PostOutcome, Prompt, Signal, SignalState
from concorde_trio.signals.handlers import SignalHandler
from tests.signals.stage import Stage, run

Clock = trio.testing.MockClock


async def test_signals_are_handled_one_at_a_time_in_order(autojump_clock: Clock, some_seed: int) -> None:
    """CLM-1: the later beside the runs and posts of the earlier."""
    stage = Stage()
    async with stage.serve():
        first = await stage.emit("held", run("R1", 10), handle=2, post=5)
        second = await stage.emit("free", run("R2", 1), handle=3)
        third = await stage.emit("again", run("R3", 1), handle=1)
        await stage.all_settled()
    spans = [(stage.when("handle", each)[0], stage.when("handled", each)[0]) for each in (first, second, third)]
    assert spans == [(0, 2), (2, 5), (5, 6)]
    assert stage.when("start", "R1") == [2]


async def test_an_unknown_kind_fails_its_signal_by_name_and_runs_no_post(autojump_clock: Clock) -> None:
    """CLM-3: and holds nobody up."""
    stage = Stage()
    async with stage.serve() as worker:
        unknown = await worker.emit("mail.recieved")
        known = await stage.emit("held", run("R1"))
        await worker.wait_settled(known)
        record = await worker.wait_settled(unknown)
    assert record.state is SignalState.FAILED and record.claimed_at == 0
    assert "'mail.recieved'" in (record.error or "") and "'held'" in (record.error or "")
    assert stage.noted("post") == [known]


async def test_a_worker_without_handlers_says_that_it_has_none(autojump_clock: Clock) -> None:
    """CLM-3."""
    stage = Stage()
    async with stage.serve(handlers={}) as worker:
        record = await worker.wait_settled(await worker.emit("x"))
    assert "there are handlers for: none" in (record.error or "")


async def test_a_handler_gets_the_signal_and_nothing_else(autojump_clock: Clock) -> None:
    """CLM-4: id, seq, kind, payload, emitted_at."""
    seen: list[Signal] = []
    async with Stage().serve(handlers={"a": seen.append}) as worker:
        await trio.sleep(3)
        signal_id = await worker.emit("a", {"x": None})
        await worker.wait_settled(signal_id)
    assert seen == [Signal(id=signal_id, seq=1, kind="a", payload={"x": None}, emitted_at=3)]


async def test_no_prompts_run_post_with_failed_false(autojump_clock: Clock) -> None:
    """CLM-4: an empty list and None; then the signal is done."""
    stage = Stage()
    handlers = {
        "none": SignalHandler(handle=lambda signal: None, post=stage.post),
        "empty": SignalHandler(handle=lambda signal: [], post=stage.post),
        "free": SignalHandler(handle=lambda signal: ()),
    }
    async with stage.serve(handlers=handlers) as worker:
        for kind in handlers:
            assert (await worker.wait_settled(await worker.emit(kind, {"post": 1}))).state is SignalState.DONE
    assert list(stage.outcomes.values()) == [PostOutcome(failed=False, limited=False, interrupted=False)] * 2


async def _coroutine() -> list[Prompt]:
    return [Prompt(text='["late", 0, "ok"]')]


def _generator() -> Iterator[Prompt]:
    yield Prompt(text='["one", 0, "ok"]')
    yield Prompt(text='["two", 0, "ok"]')


@pytest.mark.parametrize(
    ("handle", "names"),
    [
        (lambda signal: _generator(), ["one", "two"]),
        (lambda signal: tuple(_generator()), ["one", "two"]),
        (lambda signal: {prompt: None for prompt in _generator()}.keys(), ["one", "two"]),
        (lambda signal: _coroutine(), ["late"]),
    ],
    ids=["generator", "tuple", "view", "a plain function that returns a coroutine"],
)
async def test_any_iterable_of_prompts_will_do(autojump_clock: Clock, handle: Any, names: list[str]) -> None:
    """CLM-4."""
    stage = Stage()
    async with stage.serve(handlers={"a": handle}) as worker:
        await worker.wait_settled(await worker.emit("a"))
    assert sorted(stage.noted("start")) == sorted(names)


class Nasty(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def _raise(error: BaseException) -> Any:
    def handle(signal: Signal) -> None:
        raise error

    return handle


BROKEN: dict[str, tuple[Any, str]] = {
    "raises": (_raise(ValueError("no such user")), "ValueError: no such user"),
    "raises nothing to say": (_raise(KeyError()), "KeyError"),
    "raises what cannot be said": (_raise(Nasty()), "Nasty: .*RuntimeError"),
    "raises half a character": (_raise(ValueError("a\ud800b\0c")), "ValueError: a\ufffd+b\ufffdc"),
    "raises a group of groups": (
        _raise(ExceptionGroup("out", [ExceptionGroup("in", [ValueError("the cause")]), OSError("more")])),
        r"ValueError: the cause \(and 1 more\)",
    ),
    "raises what is no Exception": (_raise(asyncio.CancelledError("odd")), "CancelledError: odd"),
    "bare prompt": (lambda signal: Prompt(text="x"), r"bare Prompt; return a list"),
    "string": (lambda signal: "x", "str 'x'"),
    "number": (lambda signal: 7, "int 7, not a list of prompts"),
    "list of strings": (lambda signal: ["x"], "as prompt 0; write"),
    "prompt of NUL": (lambda signal: [Prompt(text="\0")], "NUL"),
    "session of 201": (lambda signal: [Prompt(text="x", session="s" * 201)], "1 to 200"),
    "resource that is no name": (lambda signal: [Prompt(text="x", resources=["a\n"])], "control"),
    "time limit of none": (lambda signal: [Prompt(text="x", time_limit=-1)], "time_limit"),
    "async generator": (lambda signal: _aiter(), "collect its prompts into a list"),
}


async def _aiter() -> Any:
    yield Prompt(text="x")


@pytest.mark.parametrize("repeatable", [False, True])
@pytest.mark.parametrize("broken", BROKEN)
async def test_a_broken_handler_fails_its_own_signal_and_post_runs(
    autojump_clock: Clock, broken: str, repeatable: bool
) -> None:
    """CLM-5: with a message that says what was wrong; no runs; post with failed true; the next signal is handled."""
    stage = Stage()
    handle, says = BROKEN[broken]
    handlers = stage.handlers() | {"broken": SignalHandler(handle=handle, post=stage.post, repeatable=repeatable)}
    async with stage.serve(handlers=handlers) as worker:
        signal_id = await worker.emit("broken", {"post": 0})
        following = await stage.emit("free", run("R1"))
        record = await worker.wait_settled(signal_id)
        assert (await worker.wait_settled(following)).state is SignalState.DONE
    assert record.state is SignalState.FAILED
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(record.error)
    assert stage.outcomes[signal_id] == PostOutcome(failed=True, limited=False, interrupted=False)
    assert [each.signal_id for each in stage.told(HandleFailed)] == [signal_id]  # type: ignore[attr-defined]
    assert set(await stage.states()) == {"R1"}


async def test_a_group_nested_deeper_than_the_stack_fails_its_own_signal(autojump_clock: Clock) -> None:
    """CLM-5: and nothing else."""
    error: Exception = ValueError("at the bottom")
    for _ in range(5_000):
        error = ExceptionGroup("g", [error])
    async with Stage().serve(handlers={"a": _raise(error)}) as worker:
        record = await worker.wait_settled(await worker.emit("a"))
        assert record.error == "ValueError: at the bottom"


@pytest.mark.parametrize("repeatable", [False, True])
async def test_a_handle_that_never_returns_is_cut_off(autojump_clock: Clock, repeatable: bool) -> None:
    """CLM-5: by handle_time_limit, and those behind it go on."""
    stage = Stage()

    async def stuck(signal: Signal) -> None:
        await trio.sleep_forever()

    handlers = stage.handlers() | {"stuck": SignalHandler(handle=stuck, post=stage.post, repeatable=repeatable)}
    async with stage.serve(handlers=handlers, handle_time_limit=7) as worker:
        signal_id = await worker.emit("stuck", {"post": 0})
        following = await stage.emit("again", run("R1"))
        record = await worker.wait_settled(signal_id)
        await worker.wait_settled(following)
    assert (record.settled_at, record.error) == (7, "handle took longer than handle_time_limit, 7 s")
    assert stage.when("start", "R1") == [7] and stage.outcomes[signal_id].failed


async def test_without_a_limit_a_handle_may_take_days(autojump_clock: Clock) -> None:
    """CLM-5: None for none; unless set it is a minute."""
    stage = Stage()
    async with stage.serve(handle_time_limit=None) as worker:
        record = await worker.wait_settled(await stage.emit("held", run("R1"), handle=1e6))
        assert record.state is SignalState.DONE
    async with stage.serve() as worker:
        record = await worker.wait_settled(await stage.emit("held", run("R1"), handle=61))
        assert "60 s" in (record.error or "")


async def test_a_plain_handler_that_blocks_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """CLM-1: it held up everything else, so people must hear of it. (Its blocking is counted by a clock that jumps.)"""
    import time

    clock = iter(range(0, 100_000, 2))
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    stage = Stage()
    async with stage.serve(settle=trio.lowlevel.checkpoint) as worker:
        signal_id = await stage.emit("quick", run("R1", 0))
        await worker.wait_settled(signal_id)
    assert [(each.signal_id, each.kind, each.seconds) for each in stage.told(HandleBlocked)] == [  # type: ignore[attr-defined]
        (signal_id, "quick", 2)
    ]


async def test_what_a_handler_does_to_its_own_values_later_changes_nothing(autojump_clock: Clock) -> None:
    """CLM-4, TAG-3: a context is what it was when it was returned, whoever keeps a hold of it."""
    stage, context = Stage(), {"user": "ann", "tag": "a-tag-of-16-characters"}
    seen: list[Any] = []

    def handle(signal: Signal) -> list[Prompt]:
        return [Prompt(text='["R1", 5, "ok"]', context=context, tag="a-tag-of-16-characters")]

    async with stage.serve(handlers={"a": handle}) as worker:
        signal_id = await worker.emit("a")
        await trio.sleep(1)
        context["user"] = object()  # type: ignore[assignment]
        seen.append(worker.attribute(["a-tag-of-16-characters"]))
        await worker.wait_settled(signal_id)
    assert seen[0].context == {"user": "ann", "tag": "a-tag-of-16-characters"}
    assert (await stage.runs())["R1"].context == {"user": "ann", "tag": "[run tag]"}


async def test_every_claim_is_told_before_its_handle_is_called(autojump_clock: Clock) -> None:
    """CLM-6: a strict claim is committed before handle; a repeatable one with its runs."""
    stage, stored = Stage(), []

    async def look(signal: Signal) -> list[Prompt]:
        record = await stage.store.signal(signal.id)
        assert record is not None
        stored.append((record.state.value, len(stage.told(SignalClaimed))))
        return []

    handlers = {"strict": look, "again": SignalHandler(handle=look, repeatable=True)}
    async with stage.serve(handlers=handlers) as worker:
        for kind in ("strict", "again"):
            await worker.wait_settled(await worker.emit(kind))
    assert stored == [("processing", 1), ("pending", 1)]
