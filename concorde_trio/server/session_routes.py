"""Sessions, for operators: list, look, read, and say something (SRV-2, SRV-3, SES-20).

The law: what is read comes from the store and from the loop in memory; what changes a session goes to its loop alone, or,
where no run of it is in flight, becomes a signal.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from quart import Blueprint, Response

from concorde_trio.conversations.outside import Sent, known_input
from concorde_trio.conversations.views import message_view, session_row, session_view
from concorde_trio.errors import InvalidName, UnknownId, UsageError
from concorde_trio.messages import Input, Message
from concorde_trio.server import session_declarations as declared
from concorde_trio.server.answers import answer, page
from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.bodies import body_bound
from concorde_trio.server.cursors import cursor
from concorde_trio.server.problems import FieldFault, Problem
from concorde_trio.server.seam import Worker
from concorde_trio.server.session_doors import check_known, harness_of, loops_of, store_of
from concorde_trio.server.values import LARGEST_PLACE
from concorde_trio.sessions.inputs import new_input
from concorde_trio.sessions.store import SessionFilter, SessionRecord


def session_routes(worker: Worker) -> Blueprint:
    """``/sessions`` and what is below it, but for its live events."""
    routes = Blueprint("sessions", __name__)

    @serve(routes, declared.LIST)
    async def list_sessions(asked: Asked) -> Response:
        """A page of sessions."""
        where = SessionFilter(prefix=asked["prefix"], before=asked["before"], limit=asked["limit"])
        found = await store_of(worker).sessions(where)
        loops = loops_of(worker)

        def place(record: SessionRecord) -> str:
            return cursor(f"{record.updated_at!r}:{record.name}", worker.mask)

        return answer(
            await page("sessions", found, where.limit, lambda each: session_row(each, loops, worker.mask_json), place)
        )

    @serve(routes, declared.LOOK)
    async def one_session(asked: Asked) -> Response:
        """All that is known of it."""
        session = asked["name"]
        found = await session_view(
            session,
            sessions=store_of(worker),
            signals=worker.store,
            loop=loops_of(worker).get(session),
            why=worker.why,
            mask=worker.mask_json,
            now=time.time(),
        )
        if found is None:
            raise UnknownId(f"there is no session {session!r:.80}")
        return answer(found)

    @serve(routes, declared.MESSAGES)
    async def list_messages(asked: Asked) -> Response:
        """A page of messages, forward with ``after``, else backward."""
        session, after, before, limit = asked["name"], asked["after"], asked["before"], asked["limit"]
        store = store_of(worker)
        await check_known(worker, session)

        def shown(message: Message) -> object:
            return message_view(message, worker.mask_json)

        if after is None:
            latest = await store.latest_messages(session, before=before, limit=limit)
            # From the end: where not all of them have room, the last ones do.
            back = await page("messages", latest[::-1], limit, shown, _seq)
            following = None if before is None else before - 1
            return answer({"messages": back["messages"][::-1], "next": following, "previous": back["next"]})
        found = await store.messages(session, after=after, limit=limit)
        between = [each for each in found if before is None or each.seq < before]
        whole = limit if len(between) == len(found) else len(between) + 1  # all up to the bound are there
        on = await page("messages", between, whole, shown, _seq)
        return answer({**on, "previous": min(after + 1, LARGEST_PLACE) if after > 0 else None})

    @serve(routes, declared.INPUT, max_body=body_bound(worker.max_payload), checks=_CHECKS)
    async def submit(asked: Asked) -> Response:
        """202 and the receipt, 200 and the first one for an id that is known."""
        session = asked["name"]
        harness = harness_of(worker)
        given = _input(asked)
        known = None if asked["id"] is None else await harness.store.input(given.id)
        if known is not None:
            return answer(worker.mask_json(known_input(known, session, given).as_json(session)))
        receipt = await harness.submit(
            session, given.text, id=given.id, sender=given.sender, attachments=given.attachments
        )
        if not receipt.accepted:
            raise Problem(429, f"the input was not accepted: {receipt.reason}", headers={"retry-after": "5"})
        stored = await harness.store.input(given.id)
        assert stored is not None
        sent = Sent(receipt=receipt, signal_id=stored.signal_id, state=stored.state)
        return answer(worker.mask_json(sent.as_json(session)), 202)

    @serve(routes, declared.CANCEL_INPUT)
    async def cancel_input(asked: Asked) -> Response:
        """It is taken back."""
        session, given = await _asked(asked), asked["input_id"]
        await harness_of(worker).cancel_input(session, given)
        return answer(worker.mask_json({"id": given, "session": session, "state": "cancelled"}))

    @serve(routes, declared.INTERRUPT)
    async def interrupt(asked: Asked) -> Response:
        """``interrupted`` is false if there was nothing to end."""
        session = await _asked(asked)
        return answer(
            worker.mask_json({"session": session, "interrupted": await harness_of(worker).interrupt(session)})
        )

    @serve(routes, declared.RESUME)
    async def resume(asked: Asked) -> Response:
        """``resumed`` is false if nothing was held."""
        session = await _asked(asked)
        return answer(worker.mask_json({"session": session, "resumed": await harness_of(worker).resume(session)}))

    @serve(routes, declared.COMPACT)
    async def compact(asked: Asked) -> Response:
        """202: it was asked for."""
        session = await _asked(asked)
        await harness_of(worker).compact(session)
        return answer(worker.mask_json({"session": session, "asked": "compact"}), 202)

    @serve(routes, declared.APPROVE)
    async def approve(asked: Asked) -> Response:
        """The answer is taken, once."""
        session, call, allow = asked["name"], asked["call_id"], asked["allow"]
        await harness_of(worker).answer(session, call, allow=allow)
        return answer(worker.mask_json({"session": session, "call_id": call, "allowed": allow}))

    async def _asked(asked: Asked) -> str:
        session: str = asked["name"]
        harness_of(worker)
        await check_known(worker, session)
        return session

    return routes


def _seq(message: Message) -> int:
    return message.seq


def _check_id(given: str) -> None:
    new_input("said", at=0.0, id=given)


def _check_attachments(given: Sequence[Any]) -> None:
    new_input("said", at=0.0, attachments=given)


_CHECKS = {"id": _check_id, "attachments": _check_attachments}


def _input(asked: Asked) -> Input:
    """The input that a body describes; Problem 400 for what only all of it shows to be wrong."""
    if not asked["text"].strip() and not asked["attachments"]:
        raise _wrong("text", 'the body must have "text", a string that says something')
    try:
        _check_attachments(asked["attachments"])
    except UsageError as error:
        raise _wrong("attachments", str(error), getattr(error, "place", None)) from None
    try:
        return new_input(
            asked["text"], at=time.time(), id=asked["id"], sender=asked["sender"], attachments=asked["attachments"]
        )
    except InvalidName as error:
        raise _wrong("id", str(error)) from None
    except UsageError as error:
        raise _wrong("text", str(error)) from None


def _wrong(field: str, message: str, place: str | None = None) -> Problem:
    return Problem.of_fields([FieldFault(within="body", field=field, message=message, place=place)])
