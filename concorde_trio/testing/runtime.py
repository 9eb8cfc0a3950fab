"""What every Runtime must do (RUN-3 to RUN-6), as a check that people who write one run in their tests.

It raises AssertionError with a sentence that names the rule. It takes as long as the runtime's own runs take.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable

import trio

from concorde_trio.failures import alone
from concorde_trio.records import RunOutcome, RunPrompt, RunState
from concorde_trio.signals.runtime import OpenableRuntime, Runtime, RuntimeContext

NAMES = (
    "ann",
    "Ann",
    "../../x",
    "-rf",
    "--help",
    "a/b",
    ".",
    "..",
    "user@example.org",
    "日本語",
    "x" * 200,
    "{session}",
    " ",
)
"""Session names as people write them (CLM-7); a Runtime that makes folders, arguments or URLs of them encodes them."""


async def check_runtime(
    make_runtime: Callable[[], Runtime],
    *,
    ok: str = "hello",
    hangs: str | None = None,
    fails: str | None = None,
    context: RuntimeContext | None = None,
    concurrent: int = 8,
    stops_within: float = 15.0,
) -> None:
    """Check a Runtime; AssertionError for the first thing that is wrong.

    ``make_runtime`` makes a new one. ``ok``: a prompt's text that it executes well; ``hangs``: one that takes for ever;
    ``fails``: one that fails (None: not checked). ``context`` is what it is opened with. ``concurrent``: how many runs at
    once. ``stops_within``: seconds in which a cancelled run must be over.
    """
    context = context or RuntimeContext(queue="check-runtime")
    try:
        _check_shape(make_runtime())
        async with _opened(make_runtime, context) as runtime:
            await _check_outcome(runtime, ok)
            await _check_names(runtime, ok)
            await _check_concurrent(runtime, ok, fails, concurrent)
            if hangs is not None:
                await _check_cancel(runtime, ok, hangs, stops_within)
        async with _opened(make_runtime, context) as runtime:  # after another one was closed
            await _check_outcome(runtime, ok)
        if hangs is not None:
            await _check_cancel_closes(make_runtime, context, hangs, stops_within)
    except BaseExceptionGroup as group:
        error = alone(group)
        if error is None:
            raise
        raise error from group


@contextlib.asynccontextmanager
async def _opened(make_runtime: Callable[[], Runtime], context: RuntimeContext) -> AsyncIterator[Runtime]:
    runtime = make_runtime()
    if isinstance(runtime, OpenableRuntime):
        async with runtime.open(context):
            yield runtime
    else:
        yield runtime


def _check_shape(runtime: object) -> None:
    run = getattr(runtime, "run", None)
    assert callable(run), f"RUN-4: a Runtime has a method run(prompt), {type(runtime).__name__} has none"
    assert inspect.iscoroutinefunction(run), f"RUN-4: {type(runtime).__name__}.run must be async"


async def _check_outcome(runtime: Runtime, text: str) -> None:
    outcome = await runtime.run(RunPrompt(session="check-1", text=text))
    _is_outcome(outcome)
    assert outcome.state is RunState.DONE, f"RUN-5: the prompt {text!r:.80} should be ok: {outcome}"


async def _check_names(runtime: Runtime, text: str) -> None:
    for name in NAMES:
        outcome = await runtime.run(RunPrompt(session=name, text=text))
        assert outcome.state is RunState.DONE, f"CLM-7: a run of the session {name!r} should be ok: {outcome}"


async def _check_concurrent(runtime: Runtime, ok: str, fails: str | None, concurrent: int) -> None:
    """All at once, and the one that fails fails alone."""
    outcomes: dict[str, RunOutcome | Exception] = {}

    async def one(session: str, text: str) -> None:
        try:
            outcomes[session] = await runtime.run(RunPrompt(session=session, text=text))
        except Exception as error:  # noqa: BLE001 - RUN-3: it fails this run, which is what is looked at
            outcomes[session] = error

    async with trio.open_nursery() as nursery:
        for number in range(concurrent):
            nursery.start_soon(one, f"concurrent-{number}", ok)
        if fails is not None:
            nursery.start_soon(one, "failing", fails)
    failed = outcomes.pop("failing", None)
    if isinstance(failed, RunOutcome):
        _is_outcome(failed)
        assert failed.state is not RunState.DONE, f"RUN-5: the prompt {fails!r:.80} should fail: {failed}"
    for session, outcome in outcomes.items():
        assert isinstance(outcome, RunOutcome), f"RUN-4: run is called concurrently; {session} raised {outcome!r}"
        assert outcome.state is RunState.DONE, f"RUN-3: another's failure is not theirs; {session}: {outcome}"


async def _check_cancel(runtime: Runtime, ok: str, hangs: str, stops_within: float) -> None:
    """Cancelled at once, and cancelled at work: over in time, and others do not notice."""
    for after in (0.0, 0.3):
        ended = trio.Event()
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()

            async def hang(scope: trio.CancelScope = scope, ended: trio.Event = ended) -> None:
                with scope:
                    await runtime.run(RunPrompt(session="hanging", text=hangs))
                ended.set()

            nursery.start_soon(hang)
            await trio.sleep(after)
            assert not (after and ended.is_set()), f"the prompt {hangs!r:.80} should take for ever"
            scope.cancel("check_runtime")
            await _in_time(ended, stops_within)
        outcome = await runtime.run(RunPrompt(session="hanging", text=ok))
        assert outcome.state is RunState.DONE, f"RUN-6: after a cancelled run the next of its session: {outcome}"


async def _check_cancel_closes(
    make_runtime: Callable[[], Runtime], context: RuntimeContext, hangs: str, stops_within: float
) -> None:
    """A worker that is cancelled as a whole: run and runtime end together."""
    ended = trio.Event()
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def live() -> None:
            with scope:
                async with _opened(make_runtime, context) as runtime:
                    await runtime.run(RunPrompt(session="hanging", text=hangs))
            ended.set()

        nursery.start_soon(live)
        await trio.sleep(0.3)
        scope.cancel("check_runtime")
        await _in_time(ended, stops_within)


async def _in_time(ended: trio.Event, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await ended.wait()
    assert ended.is_set(), f"RUN-6: a cancelled run was not over after {seconds:g} s"


def _is_outcome(outcome: object) -> None:
    assert isinstance(outcome, RunOutcome), f"RUN-5: run must return a RunOutcome, not {outcome!r:.80}"
    states = (RunState.DONE, RunState.FAILED, RunState.LIMITED)
    assert outcome.state in states, f"RUN-5: an outcome is ok, failed or limited, not {outcome.state}"
    if outcome.state is not RunState.DONE:
        assert (outcome.error or "").strip(), "RUN-7: an outcome that is not ok says why"
