"""Handlers as they are written down and as the worker calls them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from concorde_trio.errors import InvalidHandler, InvalidName
from concorde_trio.records import PostOutcome, Prompt, Signal
from concorde_trio.signals.handlers import Handlers, SignalHandler, as_handler, as_handlers
from concorde_trio.signals.prompts import PROMPT_LIMIT

SIGNAL = Signal(id="s1", seq=1, kind="message.received", payload={"user": "ann"}, emitted_at=0.0)
OUTCOME = PostOutcome(failed=False, limited=False, interrupted=False)
PROMPT = Prompt(text="hello")


def plain(signal: Signal) -> list[Prompt]:
    return [Prompt(text=signal.kind)]


async def waiting(signal: Signal) -> list[Prompt]:
    return [Prompt(text=signal.kind)]


async def streaming(signal: Signal) -> AsyncIterator[Prompt]:
    yield PROMPT


def yielding(signal: Signal) -> Iterator[Prompt]:
    yield Prompt(text="first")
    yield Prompt(text="second")


class Household:
    """An object with both phases."""

    repeatable = True

    def __init__(self) -> None:
        self.posted: list[Any] = []

    def handle(self, signal: Signal) -> list[Prompt]:
        return [PROMPT]

    async def post(self, signal: Signal, outcome: PostOutcome) -> None:
        self.posted.append((signal, outcome))


class CalledAsync:
    async def __call__(self, signal: Signal) -> list[Prompt]:
        return [PROMPT]


async def test_a_plain_function_gives_its_prompts_without_an_await() -> None:
    """CLM-4: handle may be plain; the worker pays for no await then."""
    handler = as_handler(plain)
    assert handler.call(SIGNAL) == (Prompt(text="message.received"),)
    assert not handler.is_async
    assert await handler.prompts(SIGNAL) == (Prompt(text="message.received"),)


@pytest.mark.parametrize("function", [waiting, functools.partial(waiting), CalledAsync()])
async def test_an_async_function_runs_only_when_it_is_awaited(function: Any) -> None:
    """CLM-4: handle may be async, also through a partial or a callable object."""
    handler = as_handler(function)
    assert handler.is_async
    called = handler.call(SIGNAL)
    assert not isinstance(called, tuple)
    assert len(await called) == 1


async def test_a_plain_function_that_returns_something_to_await_is_awaited() -> None:
    """CLM-4: a lambda or a plain decorator around an async handler is one."""
    handler = as_handler(lambda signal: waiting(signal))
    assert await handler.prompts(SIGNAL) == (Prompt(text="message.received"),)


async def test_an_object_brings_its_phases_and_says_that_it_is_repeatable() -> None:
    """CLM-6: repeatable=True is said by the object."""
    household = Household()
    handler = as_handler(household)
    assert handler.repeatable
    assert handler.call(SIGNAL) == (PROMPT,)
    await handler.run_post(SIGNAL, OUTCOME)
    assert household.posted == [(SIGNAL, OUTCOME)]


async def test_a_handler_without_a_post_phase_has_none() -> None:
    """PST-1: post runs if it is defined."""
    handler = as_handler(plain)
    assert handler.post is None
    assert not handler.repeatable
    await handler.run_post(SIGNAL, OUTCOME)


async def test_a_plain_post_phase_is_called() -> None:
    """PST-1: post may be plain."""
    seen: list[PostOutcome] = []
    handler = SignalHandler(handle=plain, post=lambda signal, outcome: seen.append(outcome))
    await handler.run_post(SIGNAL, OUTCOME)
    assert seen == [OUTCOME]


async def test_a_post_phase_that_returns_prompts_is_told_so() -> None:
    """PST-3: post makes no prompts."""
    handler = SignalHandler(handle=plain, post=lambda signal, outcome: [PROMPT])
    with pytest.raises(InvalidHandler, match="emit a signal instead"):
        await handler.run_post(SIGNAL, OUTCOME)


async def test_what_a_handler_raises_travels_as_it_is() -> None:
    """CLM-5: the message of the failed signal is the handler's own."""

    def failing(signal: Signal) -> list[Prompt]:
        raise KeyError("budget")

    with pytest.raises(KeyError, match="budget"):
        as_handler(failing).call(SIGNAL)


@pytest.mark.parametrize(
    "returned", [[PROMPT, PROMPT], (PROMPT, PROMPT), iter([PROMPT, PROMPT]), {1: PROMPT, 2: PROMPT}.values()]
)
def test_any_iterable_of_prompts_is_taken_in_its_order(returned: Any) -> None:
    """CLM-4: any iterable of prompts."""
    assert as_handler(lambda signal: returned).call(SIGNAL) == (PROMPT, PROMPT)


def test_a_generator_of_prompts_is_an_iterable_like_any_other() -> None:
    """CLM-4: any iterable, in the handler's order."""
    assert as_handler(yielding).call(SIGNAL) == (Prompt(text="first"), Prompt(text="second"))


def test_none_is_no_prompts() -> None:
    """CLM-4: None for none."""
    assert as_handler(lambda signal: None).call(SIGNAL) == ()


async def _coroutine() -> Prompt:
    return PROMPT


@pytest.mark.parametrize(
    ("make", "what", "fix"),
    [
        (lambda: PROMPT, "a bare Prompt", r"return a list: \[prompt\]"),
        (lambda: "hello", "str 'hello'", r"write \[Prompt\(text=\.\.\.\)\]"),
        (lambda: b"hello", "bytes", r"write \[Prompt\(text=\.\.\.\)\]"),
        (lambda: {"text": "hello"}, "dict", r"Prompt\(\*\*fields\)"),
        (lambda: streaming(SIGNAL), "async_generator", "collect its prompts into a list"),
        (lambda: 7, "int 7", "or None for none"),
        (lambda: False, "bool False", "or None for none"),
        (lambda: [_coroutine()], "coroutine .* as prompt 0", "await it first"),
        (lambda: [PROMPT, _coroutine(), _coroutine()], "as prompt 1", "await it first"),
        (lambda: [PROMPT, "hello"], "str 'hello' as prompt 1", r"Prompt\(text=\.\.\.\)"),
        (lambda: [[PROMPT]], "list .* as prompt 0", "one flat list"),
        (lambda: [{"text": "hello"}], "dict .* as prompt 0", r"Prompt\(\*\*fields\)"),
        (lambda: [None], "NoneType None as prompt 0", "leave out"),
        (lambda: [3], "int 3 as prompt 0", "must be a Prompt"),
    ],
)
async def test_a_wrong_result_is_refused_with_what_came_and_the_fix(make: Any, what: str, fix: str) -> None:
    """CLM-4, CLM-5: the message says what was wrong; no coroutine is left to warn of (warnings are errors)."""

    async def later(signal: Signal) -> Any:
        return make()

    with pytest.raises(InvalidHandler, match=f"handle of 'message.received'.*{what}.*{fix}"):
        as_handler(lambda signal: make()).call(SIGNAL)
    with pytest.raises(InvalidHandler, match=f"handle of 'message.received'.*{what}.*{fix}"):
        await as_handler(later).prompts(SIGNAL)


async def test_a_coroutine_that_gives_a_coroutine_is_told_to_await_it() -> None:
    """CLM-4: the missing await is named."""

    async def forgot(signal: Signal) -> Any:
        return waiting(signal)

    with pytest.raises(InvalidHandler, match="returned coroutine .*await it first"):
        await as_handler(forgot).prompts(SIGNAL)


def test_a_generator_without_an_end_is_cut_off() -> None:
    """CLM-5: nothing a handler does takes the worker with it."""

    def endless(signal: Signal) -> Iterator[Prompt]:
        while True:
            yield PROMPT

    with pytest.raises(InvalidHandler, match=f"more than {PROMPT_LIMIT} prompts"):
        as_handler(endless).call(SIGNAL)


@pytest.mark.parametrize(
    ("given", "fix"),
    [
        (streaming, "async generator; collect the prompts into a list and return it"),
        (functools.partial(streaming), "async generator"),
        (Household, r"is a class; register an object of it: Household\(\)"),
        (None, "must be a function of a signal"),
        ("message", "must be a function of a signal"),
        ([plain], "must be a function of a signal"),
        (lambda: [PROMPT], r"must be callable as handle\(signal\)"),
        (lambda signal, other: [], r"must be callable as handle\(signal\): missing"),
        (Household.handle, r"must be callable as handle\(signal\): missing"),
        (lambda *, signal: [], r"must be callable as handle\(signal\)"),
    ],
)
def test_a_handler_of_the_wrong_shape_is_refused_where_it_is_written(given: Any, fix: str) -> None:
    """CLM-3, CLM-4: misuse is loud at once."""
    with pytest.raises(InvalidHandler, match=fix):
        as_handler(given)


def test_a_coroutine_in_place_of_a_function_is_refused_and_closed() -> None:
    """CLM-4: the call too many is refused; closed, or it would warn."""
    called = waiting(SIGNAL)
    with pytest.raises(InvalidHandler, match="must be a function of a signal"):
        as_handler(called)
    assert inspect.getcoroutinestate(called) == inspect.CORO_CLOSED


@pytest.mark.parametrize(
    ("post", "fix"),
    [
        (lambda signal: None, r"must be callable as post\(signal, outcome\)"),
        (7, "post must be a function, not int"),
        (yielding, "is a generator"),
        (streaming, "is an async generator; make it a plain async function"),
    ],
)
def test_a_post_phase_of_the_wrong_shape_is_refused(post: Any, fix: str) -> None:
    """PST-1: misuse is loud at once."""
    with pytest.raises(InvalidHandler, match=fix):
        SignalHandler(handle=plain, post=post)


def test_repeatable_is_said_with_true_or_false() -> None:
    """CLM-6: no truthy string makes a handler repeatable."""
    with pytest.raises(InvalidHandler, match="repeatable must be True or False, not 'no'"):
        SignalHandler(handle=plain, repeatable="no")  # type: ignore[arg-type]


def test_a_kind_has_exactly_one_handler() -> None:
    """CLM-3: a second one is refused, and both are named."""
    handlers = Handlers({"message.received": plain})
    with pytest.raises(InvalidHandler, match=r"'message.received'.*\.plain.*\.waiting"):
        handlers.add("message.received", waiting)
    assert handlers["message.received"].handle is plain
    assert handlers.get("other") is None


@pytest.mark.parametrize("kind", ["", "a\nb", "x" * 201, 7])
def test_a_kind_is_a_name(kind: Any) -> None:
    """CLM-7: 1 to 200 characters without control characters."""
    with pytest.raises(InvalidName):
        Handlers({kind: plain})


def test_handlers_are_taken_from_a_dict_or_as_they_are() -> None:
    """CLM-3: open_worker takes a dict of kind to handler, or the registry."""
    handlers = as_handlers({"a": plain, "b": Household()})
    assert sorted(handlers) == ["a", "b"]
    assert as_handlers(handlers) is handlers
    with pytest.raises(InvalidHandler, match="must be a dict of kind to handler"):
        as_handlers(plain)  # type: ignore[arg-type]


async def test_a_decorated_function_stays_one_and_takes_a_post_phase() -> None:
    """CLM-3, PST-1: the decorators of the gateway."""
    handlers = Handlers()
    seen: list[str] = []

    @handlers.handler("message.received", repeatable=True)
    async def on_message(signal: Signal) -> list[Prompt]:
        """Answer."""
        return [PROMPT]

    @on_message.post
    async def after(signal: Signal, outcome: PostOutcome) -> None:
        seen.append(signal.id)

    assert await on_message(SIGNAL) == [PROMPT]
    assert (getattr(on_message, "__name__", None), on_message.__doc__) == ("on_message", "Answer.")
    await after(SIGNAL, OUTCOME)
    handler = handlers["message.received"]
    assert handler.repeatable
    assert await handler.prompts(SIGNAL) == (PROMPT,)
    await handler.run_post(SIGNAL, OUTCOME)
    assert seen == ["s1", "s1"]


def test_a_second_post_phase_is_refused() -> None:
    """PST-1: post is one function."""
    on_message = Handlers().add("message.received", Household())
    with pytest.raises(InvalidHandler, match=r"has a post phase already, .*Household\.post"):
        on_message.post(lambda signal, outcome: None)


def test_a_function_of_two_kinds_shares_its_post_phase() -> None:
    """CLM-3: one function may serve several kinds, each with its one handler."""
    handlers = Handlers()

    @handlers.handler("a")
    @handlers.handler("b")
    def on_both(signal: Signal) -> list[Prompt]:
        return [PROMPT]

    @on_both.post
    def after(signal: Signal, outcome: PostOutcome) -> None: ...

    assert on_both(SIGNAL) == [PROMPT]
    assert handlers["a"].post is after
    assert handlers["b"].post is after


def test_the_decorator_without_a_kind_is_refused() -> None:
    """CLM-3: a forgotten kind is noticed where it was forgotten."""
    with pytest.raises(InvalidHandler, match="needs the kind"):
        Handlers().handler(plain)  # type: ignore[arg-type]


def test_a_registration_after_the_start_is_refused() -> None:
    """CLM-3: recovery has already decided by the handlers that there were."""
    handlers = Handlers({"a": plain})
    handlers.freeze()
    with pytest.raises(InvalidHandler, match="the worker has started"):
        handlers.add("b", plain)
    with pytest.raises(InvalidHandler, match="the worker has started"):
        handlers.set_post("a", lambda signal, outcome: None)
