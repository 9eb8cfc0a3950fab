"""Errors that Quart-Trio would let vanish: several of one request at once, and those beside a cancellation.

The law: what a request's tasks raised is answered once and heard of in full. When a nursery in a handler ends with several
exceptions, the framework answers the first that it has an answer for and drops the others; when the client is gone and clean-up fails
beside the ``Cancelled``, it drops the failure. Nothing is changed here in what is answered: it is only logged.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, cast

import trio
from quart import Quart
from werkzeug.exceptions import HTTPException

from concorde_trio.server.faults import leaves
from concorde_trio.server.problems import Problem

logger = logging.getLogger("concorde_trio.server")

_ANSWERS = (HTTPException, Problem, trio.Cancelled)
"""Exceptions that are an answer, or none of anybody's."""


def hear_all_errors(app: Quart, mask: Callable[[str], str]) -> None:
    """Log what ``app`` would drop, with its traceback for the people who can mend it; ``mask`` hides live tags (TAG-4)."""
    handle: Callable[..., Awaitable[Any]] = app.handle_user_exception

    async def heard(*given: Any) -> Any:
        # Quart 0.23 gives a context before the error. A group is handled again for each of its members.
        error = given[-1]
        if isinstance(error, BaseExceptionGroup) and not _inner(error):
            found = list(leaves(error))
            faults = [leaf for leaf in found if not isinstance(leaf, _ANSWERS)]
            if faults and len(found) > 1:
                said = "\n".join("".join(traceback.format_exception(fault)) for fault in faults)
                logger.error("a request raised %d errors, of which one is answered:\n%s", len(found), mask(said))
            error.__dict__[_HEARD] = True
        return await handle(*given)

    app.handle_user_exception = cast(Any, heard)  # type: ignore[method-assign]


_HEARD = "_concorde_trio_heard"


def _inner(error: BaseExceptionGroup[BaseException]) -> bool:
    """Whether a group around this one was heard of; marks those that are in this one."""
    for member in error.exceptions:
        if isinstance(member, BaseExceptionGroup):
            member.__dict__[_HEARD] = True
            _inner(member)
    return bool(error.__dict__.get(_HEARD))
