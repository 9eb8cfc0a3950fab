"""``require_run``: a route that only a live run may ask (SRV-8).

The law: what it decides is what ``current_run()`` says, so it is as much and as little worth as a tag is: it keeps order among
agents that mean well, and keeps nobody out (TAG-5). The refusal is the same problem document in any app, whatever error handlers
that has, and names no session, run or tag.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, overload

from quart import Response

from concorde_trio.errors import UsageError
from concorde_trio.server.answers import answer_problem
from concorde_trio.server.attribution import TAG_HEADER, current_run
from concorde_trio.server.problems import ProblemDocument

ViewT = TypeVar("ViewT", bound=Callable[..., Any])


@overload
def require_run(view: ViewT, /) -> ViewT: ...


@overload
def require_run(*, session: str | Callable[..., str] | None = None) -> Callable[[ViewT], ViewT]: ...


def require_run(view: Any = None, /, *, session: str | Callable[..., str] | None = None) -> Any:
    """Refuse a request that comes from no live run: 403, a problem document; put it below the route's decorator.

    ``session``: let in runs of this session alone; or a function of the route's arguments that gives its name, such as
    ``lambda name: name`` for ``/notes/<name>``. For plain and async handlers and websockets. UsageError for what is none.
    """
    if view is None:
        return lambda decorated: _required(decorated, session)
    return _required(view, session)


def _required(view: Any, session: str | Callable[..., str] | None) -> Any:
    if not callable(view):
        raise UsageError(
            f"@require_run decorates the function of a route, not {view!r:.80}; write session=... by its name"
        )
    if session is not None and not isinstance(session, str) and not callable(session):
        raise UsageError(f"session is a session's name, or a function of the route's arguments, not {session!r:.80}")

    if inspect.iscoroutinefunction(view):

        @wraps(view)
        async def checked(*args: Any, **kwargs: Any) -> Any:
            return _refusal(session, kwargs) or await view(*args, **kwargs)

        return checked

    @wraps(view)
    def checked_plainly(*args: Any, **kwargs: Any) -> Any:
        return _refusal(session, kwargs) or view(*args, **kwargs)

    return checked_plainly


def _refusal(session: str | Callable[..., str] | None, arguments: dict[str, Any]) -> Response | None:
    run = current_run()
    if run is None:
        detail = (
            f"only a run may ask this: send exactly one {TAG_HEADER} header with the tag that your prompt names, "
            "while your run lasts; a run whose prompt names none cannot ask"
        )
    elif session is not None and run.session != (session if isinstance(session, str) else session(**arguments)):
        detail = "only a run of another session may ask this; ask for what belongs to your own"
    else:
        return None
    return answer_problem(ProblemDocument(status=403, detail=detail), str)
