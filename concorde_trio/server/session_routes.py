"""Sessions, for operators: list, look, read, and say something (SRV-2, SRV-3, SES-20).

The law: what is read comes from the store and from the loop in memory; what changes a session goes to its loop alone, or,
where no run of it is in flight, becomes a signal.
"""

from __future__ import annotations

import math
import time

from quart import Blueprint, Response, request

from concorde_trio.conversations.outside import Sent, known_input
from concorde_trio.conversations.views import message_view, session_row, session_view
from concorde_trio.errors import InvalidName, InvalidValue, UnknownId, UsageError
from concorde_trio.messages import Message
from concorde_trio.records import check_name
from concorde_trio.server.answers import answer, page
from concorde_trio.server.bodies import body_bound, read_nothing, read_object
from concorde_trio.server.parameters import Parameters
from concorde_trio.server.problems import Problem
from concorde_trio.server.seam import Worker
from concorde_trio.server.session_doors import check_known, harness_of, loops_of, store_of
from concorde_trio.server.session_paths import segment, session_name
from concorde_trio.sessions.inputs import new_input
from concorde_trio.sessions.store import SessionFilter, SessionRecord


def session_routes(worker: Worker) -> Blueprint:
    """``/sessions`` and what is below it."""
    routes = Blueprint("sessions", __name__)

    @routes.get("/sessions")
    async def list_sessions() -> Response:
        """Most recently updated first. ``prefix`` of the name, ``before`` (the ``next`` of a page), ``limit``."""
        given = Parameters(request.args, "prefix", "before", "limit")
        where = SessionFilter(
            prefix=given.name("prefix", "session"), before=_cursor(given.id("before")), limit=given.limit()
        )
        found = await store_of(worker).sessions(where)
        loops = loops_of(worker)

        def cursor(record: SessionRecord) -> str:
            # A name that has a live tag in it is left out; sessions saved in the same instant may then be passed over.
            shown = record.name if worker.mask(record.name) == record.name else ""
            return f"{record.updated_at!r}:{shown}"

        return answer(
            await page("sessions", found, where.limit, lambda each: session_row(each, loops, worker.mask_json), cursor)
        )

    @routes.get("/sessions/<name>")
    async def one_session(name: str) -> Response:
        """What it waits for, what holds it, what is queued, what is asked, what was abandoned (SES-12a)."""
        Parameters(request.args)
        session = session_name(name)
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

    @routes.get("/sessions/<name>/messages")
    async def list_messages(name: str) -> Response:
        """The last ones in order, or with ``after`` those that have a higher seq; ``limit``."""
        given = Parameters(request.args, "after", "limit")
        session, after, limit = session_name(name), given.seq("after"), given.limit()
        store = store_of(worker)
        await check_known(worker, session)

        def shown(message: Message) -> object:
            return message_view(message, worker.mask_json)

        if after is not None:
            found = await store.messages(session, after=after, limit=limit)
            return answer(await page("messages", found, limit, shown, lambda message: message.seq))
        latest = await store.latest_messages(session, limit=limit)
        # From the end: where not all of them have room, the last ones do.
        backwards = await page("messages", latest[::-1], limit, shown, lambda message: message.seq)
        return answer({"messages": backwards["messages"][::-1], "next": None})

    @routes.post("/sessions/<name>/input")
    async def submit(name: str) -> Response:
        """``{"text", "id", "sender", "attachments"}``; 202 and the receipt, 200 and the first one for an id that is known."""
        Parameters(request.args)
        session = session_name(name)
        harness = harness_of(worker)
        body = await read_object("text", "id", "sender", "attachments", max_bytes=body_bound(worker.max_payload))
        text, attachments = body.get("text", ""), body.get("attachments", [])
        if not isinstance(text, str) or not isinstance(attachments, list):
            what, kind = ("attachments", "a list") if isinstance(text, str) else ("text", "a string")
            raise Problem(400, f'"{what}" must be {kind}', place=what)
        if not text.strip() and not attachments:
            raise Problem(400, 'the body must have "text", a string that says something', place="text")
        if "\0" in text:
            raise Problem(400, "the text has a NUL character, which no store can hold", place="text")
        for name_of in ("id", "sender"):
            _check_member(body, name_of)
        try:
            given = new_input(
                text, at=time.time(), id=body.get("id"), sender=body.get("sender"), attachments=attachments
            )
        except InvalidValue:
            raise
        except InvalidName as error:
            raise Problem(400, str(error), place="id") from None
        except UsageError as error:
            raise Problem(400, str(error)) from None
        known = None if body.get("id") is None else await harness.store.input(given.id)
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

    @routes.delete("/sessions/<name>/inputs/<input_id>")
    async def cancel_input(name: str, input_id: str) -> Response:
        """Take a queued input back (SES-10a)."""
        Parameters(request.args)
        session, given = session_name(name), segment(input_id)
        harness = harness_of(worker)
        await read_nothing()
        await check_known(worker, session)
        await harness.cancel_input(session, given)
        return answer(worker.mask_json({"id": given, "session": session, "state": "cancelled"}))

    @routes.post("/sessions/<name>/interrupt")
    async def interrupt(name: str) -> Response:
        """End the turn that is being taken (SES-12); ``interrupted`` is false if there was none."""
        session = await _asked(name)
        return answer(
            worker.mask_json({"session": session, "interrupted": await harness_of(worker).interrupt(session)})
        )

    @routes.post("/sessions/<name>/resume")
    async def resume(name: str) -> Response:
        """Let what an interrupt held in the queue run (SES-12); ``resumed`` is false if nothing was held."""
        session = await _asked(name)
        return answer(worker.mask_json({"session": session, "resumed": await harness_of(worker).resume(session)}))

    @routes.post("/sessions/<name>/compact")
    async def compact(name: str) -> Response:
        """Compact the transcript at the next boundary (SES-15); 202, for the event Compacted says when."""
        session = await _asked(name)
        await harness_of(worker).compact(session)
        return answer(worker.mask_json({"session": session, "asked": "compact"}), 202)

    @routes.post("/sessions/<name>/approvals/<call_id>")
    async def approve(name: str, call_id: str) -> Response:
        """``{"allow": true or false}``: the answer for this call and no other (SES-18)."""
        Parameters(request.args)
        session, call = session_name(name), segment(call_id)
        harness = harness_of(worker)
        body = await read_object("allow")
        if not isinstance(body.get("allow"), bool):
            raise Problem(400, 'the body must have "allow", true or false', place="allow")
        await harness.answer(session, call, allow=body["allow"])
        return answer(worker.mask_json({"session": session, "call_id": call, "allowed": body["allow"]}))

    async def _asked(name: str) -> str:
        Parameters(request.args)
        session = session_name(name)
        harness_of(worker)
        await read_nothing()
        await check_known(worker, session)
        return session

    return routes


def _check_member(body: dict[str, object], name: str) -> None:
    if body.get(name) is None:
        return
    try:
        check_name(body[name], name)
    except InvalidName as error:
        raise Problem(400, str(error), place=name) from None


def _cursor(given: str | None) -> tuple[float, str] | None:
    if given is None:
        return None
    moment, colon, name = given.partition(":")
    try:
        at = float(moment)
    except ValueError:
        at = math.nan
    if not colon or not math.isfinite(at) or "\0" in name or len(name) > 200:
        raise Problem(400, f"before must be the next of an earlier page, not {given!r:.80}", place="before")
    return at, name
