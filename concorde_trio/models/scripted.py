"""ScriptedModel: a model that plays a script, for tests, simulations and examples. It waits on Trio's clock and on nothing else.

The law: the n-th request gets the n-th reply of the script, and a request that is no valid transcript gets none.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, cast, get_args

import trio

from concorde_trio._sansio.message_shape import message_shape
from concorde_trio._sansio.model_events import ModelEvent, ModelRequest, Purpose, ReplyEnd
from concorde_trio.errors import InternalError, ModelError, UsageError
from concorde_trio.models.settings import check_model_name, check_tokens
from concorde_trio.sessions.model import OnEvent

Step: TypeAlias = tuple[float, ModelEvent | ModelError]
"""Seconds after the step before, and what comes then."""
Script: TypeAlias = Sequence[Step]

_EVENTS = get_args(ModelEvent)


class ScriptedModel:
    """Plays ``replies``: one list of ``(seconds after the one before, event or ModelError)`` a request.

    A list ends with its ReplyEnd or ModelError; one that has neither stalls for ever after its last step. ``replies`` may
    also be a function ``reply(request) -> list``, which answers by what was asked, summaries included. ``summaries``: the
    replies to requests of any other purpose than TURN, in order. A request past the end of its script is a ModelError.
    ``requests``: all that were made. InternalError for a request whose messages are no valid transcript (SES-9).
    """

    def __init__(
        self,
        replies: Iterable[Script] | Callable[[ModelRequest], Script],
        *,
        name: str = "scripted",
        context_window: int | None = None,
        summaries: Iterable[Script] = (),
    ) -> None:
        self._name = check_model_name(name)
        self._context_window = check_tokens(context_window, "context_window")
        self._reply = replies if callable(replies) else None
        self._turns = [] if callable(replies) else _scripts(replies, "replies")
        self._summaries = _scripts(summaries, "summaries")
        self._played = {"turn": 0, "summary": 0}
        self.requests: list[ModelRequest] = []

    def __repr__(self) -> str:
        return f"ScriptedModel(name={self._name!r}, requests={len(self.requests)})"

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    @property
    def context_window(self) -> int | None:
        """Tokens; None: not known."""
        return self._context_window

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        """See ``Model.stream``."""
        self.requests.append(request)
        wrong = message_shape(request.messages)
        if wrong is not None:
            raise InternalError(f"a request has messages that are no valid transcript (SES-9): {wrong}")
        script = self._next(request)
        for seconds, event in script:
            await trio.sleep(seconds)
            if isinstance(event, ModelError):
                raise _copy(event)
            on_event(event)
            if isinstance(event, ReplyEnd):
                return
        await trio.sleep_forever()

    def _next(self, request: ModelRequest) -> list[Step]:
        if self._reply is not None:
            return _script(self._reply(request), f"the reply to request {len(self.requests)}")
        kind, scripts = ("turn", self._turns) if request.purpose is Purpose.TURN else ("summary", self._summaries)
        number = self._played[kind]
        self._played[kind] += 1
        if number < len(scripts):
            return scripts[number]
        raise ModelError(
            f"the script of {self._name!r} is over: it has {len(scripts)} {kind} replies, and this is request {number + 1}"
        )


def _scripts(replies: Iterable[Script], what: str) -> list[list[Step]]:
    if isinstance(replies, str) or not isinstance(replies, Iterable):
        raise UsageError(f"{what} must be a list of replies, each a list of (seconds, event), not {replies!r:.80}")
    return [_script(script, f"{what}[{number}]") for number, script in enumerate(replies)]


def _script(script: object, what: str) -> list[Step]:
    if inspect.iscoroutine(script):
        script.close()
        raise UsageError(f"{what} is a coroutine; the function that gives replies must be a plain one")
    if isinstance(script, str | bytes) or not isinstance(script, Iterable):
        raise UsageError(f"{what} must be a list of (seconds, event), not {script!r:.80}")
    steps: list[Step] = []
    for number, step in enumerate(script):
        place = f"{what}[{number}]"
        if not isinstance(step, tuple) or len(step) != 2:
            raise UsageError(f"{place} must be (seconds, event), not {step!r:.80}")
        seconds, event = step
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < float("inf"):
            raise UsageError(f"{place} must begin with seconds of 0 or more, not {seconds!r:.80}")
        if not isinstance(event, (*_EVENTS, ModelError)):
            raise UsageError(f"{place} must have a model event or a ModelError, not {event!r:.80}")
        steps.append((float(seconds), cast(ModelEvent | ModelError, event)))
    return steps


def _copy(error: ModelError) -> ModelError:
    """A new one each time: an exception that is raised twice collects two tracebacks."""
    return ModelError(str(error), status=error.status, retry_after=error.retry_after, connection=error.connection)
