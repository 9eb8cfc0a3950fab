"""Handlers: what turns a signal into prompts, and the registry that knows one for each kind.

The law of this module: a handler of the wrong shape is refused where it is written down, with the fix named, and
not an hour later by a failed signal. One kind has exactly one handler (CLM-3).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import attrs

from concorde_trio.errors import InvalidHandler
from concorde_trio.records import PostOutcome, Prompt, Signal, check_name
from concorde_trio.signals.prompts import collect_prompts, plain_list

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
P = TypeVar("P", bound=Callable[..., object])

Prompts: TypeAlias = Iterable[Prompt] | None
HandleFunction: TypeAlias = Callable[[Signal], Prompts | Awaitable[Prompts]]
PostFunction: TypeAlias = Callable[[Signal, PostOutcome], object]


def _function(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    phase = attribute.name
    if phase == "post" and value is None:
        return
    _check_function(value, phase, ("signal",) if phase == "handle" else ("signal", "outcome"))


def _flag(instance: object, attribute: attrs.Attribute[bool], value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidHandler(f"repeatable must be True or False, not {value!r:.80}")


@attrs.frozen(kw_only=True, eq=False)
class SignalHandler:
    """A kind's two phases.

    ``handle(signal)``, plain or async, returns any iterable of Prompt, or None for none (CLM-4).
    ``post(signal, outcome)``, plain or async, runs once all runs of the signal have ended (PST-1); None for none.
    ``repeatable`` says that handle has no effects of its own, so that one which a crash cut off may be run again;
    claim and runs are then one commit (CLM-6). Raises InvalidHandler, with the fix.
    """

    handle: HandleFunction = attrs.field(validator=_function)
    post: PostFunction | None = attrs.field(default=None, validator=_function)
    repeatable: bool = attrs.field(default=False, validator=_flag)
    is_async: bool = attrs.field(init=False)
    """Whether handle is an async function, so that calling it runs none of it."""

    @is_async.default
    def _find_async(self) -> bool:
        return is_async_function(self.handle)

    @property
    def name(self) -> str:
        """Where handle was written down: ``module.function``."""
        return _name(self.handle)

    def call(self, signal: Signal) -> tuple[Prompt, ...] | Coroutine[Any, Any, tuple[Prompt, ...]]:
        """Call handle: its prompts at once when it is plain, otherwise a coroutine that gives them when awaited.

        So a plain handler costs the worker no await. Raises whatever handle raises, and InvalidHandler for a
        result of the wrong shape (CLM-4).
        """
        if self.is_async:
            return self._await(None, signal)
        returned = self.handle(signal)
        if (prompts := plain_list(returned)) is not None:
            return prompts
        if type(returned) is not list and inspect.isawaitable(returned):
            return self._await(returned, signal)
        return collect_prompts(returned, self._who(signal))

    async def prompts(self, signal: Signal) -> tuple[Prompt, ...]:
        """Call handle, and await it if there is something to await. Raises as ``call`` does."""
        found = self.call(signal)
        return found if isinstance(found, tuple) else await found

    async def run_post(self, signal: Signal, outcome: PostOutcome) -> None:
        """Call post, and await it if there is something to await. Does nothing when there is no post.

        Raises whatever post raises, and InvalidHandler when it returned prompts: post makes none (PST-3).
        """
        if self.post is None:
            return
        returned = self.post(signal, outcome)
        if inspect.isawaitable(returned):
            returned = await returned
        if isinstance(returned, Prompt) or (
            isinstance(returned, list | tuple) and any(isinstance(one, Prompt) for one in returned)
        ):
            raise InvalidHandler(
                f"post of {signal.kind!r} ({_name(self.post)}) returned prompts; post makes none, so emit a signal instead"
            )

    async def _await(self, returned: object, signal: Signal) -> tuple[Prompt, ...]:
        awaitable: Any = self.handle(signal) if returned is None else returned
        return collect_prompts(await awaitable, self._who(signal))

    def _who(self, signal: Signal) -> str:
        return f"handle of {signal.kind!r} ({self.name})"


class HandlerObject(Protocol):
    """A handler as an object: ``handle(signal)``, and optionally ``post(signal, outcome)`` and ``repeatable``."""

    def handle(self, signal: Signal, /) -> Any:
        """Prompts, or something to await that gives them (CLM-4)."""
        ...


def as_handler(given: object, *, repeatable: bool | None = None) -> SignalHandler:
    """A SignalHandler of a plain or async function of a signal, of a HandlerObject, or of a SignalHandler.

    ``repeatable`` overrides what the object says. Raises InvalidHandler, with the fix, for anything else.
    """
    if isinstance(given, RegisteredHandler):
        given = given.registered
    if isinstance(given, SignalHandler):
        return given if repeatable is None else attrs.evolve(given, repeatable=repeatable)
    if isinstance(given, type):
        raise InvalidHandler(f"{_name(given)} is a class; register an object of it: {given.__name__}()")
    if hasattr(given, "handle"):
        if repeatable is None:
            repeatable = getattr(given, "repeatable", False)
        return SignalHandler(handle=given.handle, post=getattr(given, "post", None), repeatable=repeatable)
    if not callable(given):
        if inspect.iscoroutine(given):
            given.close()
        raise InvalidHandler(
            "a handler must be a function of a signal, or an object with handle and optionally post; "
            f"this is {type(given).__name__} {given!r:.80}"
        )
    return SignalHandler(handle=given, repeatable=bool(repeatable))


class RegisteredHandler(Generic[R]):
    """What ``@handlers.handler(kind)`` makes of a function: still callable as it, with ``post`` to add a phase."""

    def __init__(self, given: Callable[[Signal], R] | HandlerObject, places: tuple[tuple[Handlers, str], ...]) -> None:
        self._given: Any = given
        self._places = places
        if inspect.isroutine(given):
            functools.update_wrapper(self, given)

    def __call__(self, signal: Signal, /) -> R:
        """Call handle itself, for instance in a test."""
        result: R = self.registered.handle(signal)  # type: ignore[assignment]
        return result

    def __repr__(self) -> str:
        return f"<handler of {', '.join(repr(kind) for _, kind in self._places)}: {self.registered.name}>"

    @property
    def registered(self) -> SignalHandler:
        """What the registry has of it now."""
        handlers, kind = self._places[-1]
        return handlers[kind]

    def post(self, function: P) -> P:
        """Decorate the post phase, ``(signal, outcome)``, plain or async (PST-1). A second one is refused."""
        for handlers, kind in self._places:
            handlers.set_post(kind, function)
        return function


class Handlers(Mapping[str, SignalHandler]):
    """Which handler a kind has: exactly one (CLM-3).

    ``Handlers({"message.received": on_message})`` takes what ``as_handler`` takes. Raises InvalidHandler for a
    handler of the wrong shape or a second one of a kind, InvalidName for a kind that is no name (CLM-7).
    """

    def __init__(self, handlers: Mapping[str, Any] | None = None) -> None:
        self._handlers: dict[str, SignalHandler] = {}
        self._frozen: str | None = None
        for kind, given in (handlers or {}).items():
            self.add(kind, given)

    def __getitem__(self, kind: str) -> SignalHandler:
        return self._handlers[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._handlers)

    def __len__(self) -> int:
        return len(self._handlers)

    def __repr__(self) -> str:
        return f"Handlers({', '.join(sorted(self._handlers)) or 'none yet'})"

    def add(self, kind: str, given: Any, *, repeatable: bool | None = None) -> RegisteredHandler[Any]:
        """Make ``given`` the handler of ``kind``; see ``as_handler``."""
        check_name(kind, "kind")
        self._check_open(f"a handler for {kind!r}")
        new = as_handler(given, repeatable=repeatable)
        if (old := self._handlers.get(kind)) is not None:
            raise InvalidHandler(
                f"kind {kind!r} has a handler already, {old.name}, so {new.name} cannot be another; "
                "give it another kind, or call both from one handler"
            )
        self._handlers[kind] = new
        # A function decorated for several kinds: a post phase added to it later belongs to all of them.
        places = given._places if isinstance(given, RegisteredHandler) else ()
        return RegisteredHandler(given, (*places, (self, kind)))

    def handler(
        self, kind: str, *, repeatable: bool | None = None
    ) -> Callable[[Callable[[Signal], R]], RegisteredHandler[R]]:
        """Decorate a function of a signal: ``@handlers.handler("message.received")``."""

        def register(function: Callable[[Signal], R]) -> RegisteredHandler[R]:
            return self.add(kind, function, repeatable=repeatable)

        if not isinstance(kind, str):
            raise InvalidHandler('the decorator needs the kind: write @handler("message.received")')
        return register

    def set_post(self, kind: str, function: PostFunction) -> None:
        """Give the handler of ``kind`` its post phase. A second one is refused."""
        self._check_open(f"a post phase for {kind!r}")
        handler = self._handlers[kind]
        if handler.post is not None:
            raise InvalidHandler(
                f"the handler of {kind!r} has a post phase already, {_name(handler.post)}; call both from one function"
            )
        self._handlers[kind] = attrs.evolve(handler, post=function)

    def freeze(self, why: str = "the worker has started") -> None:
        """Refuse registrations from now on: a worker that has started would not see them in its recovery."""
        self._frozen = why

    def _check_open(self, what: str) -> None:
        if self._frozen is not None:
            raise InvalidHandler(f"{what} comes too late: {self._frozen}; register every handler before")


def as_handlers(given: Handlers | Mapping[str, Any]) -> Handlers:
    """``given`` itself if it is a registry, otherwise a registry of a ``{kind: handler}``."""
    if isinstance(given, Handlers):
        return given
    if not isinstance(given, Mapping):
        raise InvalidHandler(
            'handlers must be a dict of kind to handler, {"message.received": on_message}, or Handlers; '
            f"this is {type(given).__name__} {given!r:.80}"
        )
    return Handlers(given)


def _check_function(function: object, phase: str, arguments: tuple[str, ...]) -> None:
    name = _name(function)
    if not callable(function):
        raise InvalidHandler(f"{phase} must be a function, not {type(function).__name__}: {function!r:.80}")
    code = _code(function)
    if inspect.isasyncgenfunction(code):
        raise InvalidHandler(
            f"{phase} {name} is an async generator; "
            + ("collect the prompts into a list and return it" * (phase == "handle"))
            + ("make it a plain async function, without yield" * (phase == "post"))
        )
    if phase == "post" and inspect.isgeneratorfunction(code):
        raise InvalidHandler(f"post {name} is a generator, so calling it would run nothing; write it without yield")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # Some built-ins have none to look at.
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise InvalidHandler(
            f"{phase} {name}{signature} must be callable as {phase}({', '.join(arguments)}): {error}"
        ) from None


def _code(function: object) -> Any:
    """The function whose kind decides what calling ``function`` gives: through partials and ``__call__``."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type) or inspect.isroutine(function) or inspect.iscoroutinefunction(function):
        return function
    return type(function).__call__ if callable(function) else function


def is_async_function(function: object) -> bool:
    """Whether calling ``function`` (a function, a partial, a callable object) gives a coroutine and runs nothing."""
    return inspect.iscoroutinefunction(_code(function))


def _name(function: object) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    if not hasattr(function, "__qualname__"):
        function = type(function)
    # No repr as a default: it would be made for nothing, of a whole object where this is a method of one.
    return f"{getattr(function, '__module__', None) or 'builtins'}.{function.__qualname__}"
