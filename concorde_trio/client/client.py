"""``Client``: every route of the agent server as a method (SRV-2, SRV-3).

The law: a method does one thing that the server can be asked, gives the server's document (a type of
``concorde_trio.documents``) or what is worth knowing of it, and adds no judgement of its own. What may be repeated and what
may not is said by the exceptions: see ``ServerGone``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from concorde_trio.client.pages import Pages
from concorde_trio.client.wire import EventReader, Wire
from concorde_trio.documents import (
    ApprovalAnswered,
    CurrentRun,
    InputCancelled,
    InputReceipt,
    LockDocument,
    MessageDocument,
    Readiness,
    RunDocument,
    RunStateName,
    ScheduleDocument,
    SchedulePutDocument,
    SessionDocument,
    SessionRow,
    SignalDocument,
    SignalStateName,
    SignalWithRuns,
    SnapshotDocument,
    Space,
)
from concorde_trio.errors import RefusedId, UsageError
from concorde_trio.records import JSON

if TYPE_CHECKING:
    from concorde_trio.client.following import Following

PAGE = 200
"""Items of a list that are asked for at once."""

Part = Literal["signals", "runs", "sessions", "locks"]


class Client:
    """Asks one agent server: ``async with Client(url, token=...) as client: ...``, in a Trio program.

    ``url``: where the server is, with its prefix if it has one. ``token``: the operator token (SRV-6); agents leave it out or
    give theirs. ``timeout``: seconds in which it must answer, or go on answering. ``headers``: sent with every request.

    Raises RequestRefused (RefusedRequest, RefusedId, RefusedState), whose ``problem`` is the server's problem document;
    ServerGone and ServerSilent when there is no answer; UsageError for an address that is none. A client may be used by
    several tasks at once.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = 15.0, headers: Mapping[str, str] | None = None
    ) -> None:
        self._wire = Wire(url, token, timeout, headers or {})

    @property
    def url(self) -> str:
        """The server's address, without a slash at its end."""
        return self._wire.url

    async def __aenter__(self) -> Self:
        """Be ready to ask. Nothing is asked yet."""
        await self._wire.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close every connection."""
        await self._wire.__aexit__(*error)  # noqa: ASYNC102 (shielded and bounded inside)

    # --- signals ---

    def signals(
        self, *, kind: str | None = None, state: SignalStateName | None = None, since: float | datetime | None = None
    ) -> Pages[SignalDocument]:
        """Signals, newest first. ``since``: emitted then or later, as Unix seconds or a datetime with its zone."""
        return self._pages("signals", "before", {"kind": kind, "state": state, "since": _seconds(since)})

    async def signal(self, signal_id: str) -> SignalWithRuns:
        """A signal with its last 200 runs. RefusedId if there is none."""
        return cast("SignalWithRuns", await self._get("signals", signal_id))

    async def emit(self, kind: str, payload: JSON = None, *, key: str | None = None) -> str:
        """Say that something happened; the signal's id, once it is stored (SIG-1).

        ``key``: the same kind and key give the first signal's id however often they are sent (SIG-7), so that after
        ServerGone it can be sent again.
        """
        headers = {} if key is None else {"idempotency-key": key}
        found = await self._post("signals", body={"kind": kind, "payload": payload}, headers=headers)
        return str(_member(found, "id"))

    async def retry(self, signal_id: str) -> str:
        """Emit a settled signal again (PST-5); the new one's id. RefusedState if it is not settled."""
        return str(_member(await self._post("signals", signal_id, "retry"), "id"))

    async def cancel_signal(self, signal_id: str) -> None:
        """Ask for a signal's end (RUN-6); it is over when its state says so. RefusedState if it is settled."""
        await self._post("signals", signal_id, "cancel")

    # --- runs and locks ---

    def runs(
        self,
        *,
        signal: str | None = None,
        kind: str | None = None,
        session: str | None = None,
        resource: str | None = None,
        state: RunStateName | None = None,
        since: float | datetime | None = None,
    ) -> Pages[RunDocument]:
        """Runs, newest first. ``kind``: of their signals; ``since``: queued then or later."""
        query = {"signal": signal, "kind": kind, "session": session, "resource": resource, "state": state}
        return self._pages("runs", "before", {**query, "since": _seconds(since)})

    async def run(self, run_id: str) -> RunDocument:
        """A run; ``waits_for`` says why it waits (LCK-7). RefusedId if there is none."""
        return cast("RunDocument", await self._get("runs", run_id))

    async def cancel_run(self, run_id: str) -> None:
        """Ask for a run's end (RUN-6); it is over when its state says so. RefusedState if it has ended."""
        await self._post("runs", run_id, "cancel")

    async def current_run(self, tag: str) -> CurrentRun | None:
        """The run whose tag this is (TAG-3), as an agent asks; None if no live run has it."""
        try:
            return cast("CurrentRun", await self._get("runs", "current", headers={"concorde-run-tag": tag}))
        except RefusedId:
            return None

    def locks(self, *, space: Space | None = None, name: str | None = None) -> Pages[LockDocument]:
        """Sessions, then resources, by name: who holds each, and who waits for it."""
        return self._pages("locks", "after", {"space": space, "name": name})

    # --- schedules ---

    def schedules(self, *, kind: str | None = None) -> Pages[ScheduleDocument]:
        """Schedules by name. ``kind``: only those that emit it."""
        return self._pages("schedules", "after", {"kind": kind})

    async def schedule(self, name: str) -> ScheduleDocument:
        """When it fires next, what it last fired, what it missed. RefusedId if there is none."""
        return cast("ScheduleDocument", await self._get("schedules", name))

    async def put_schedule(
        self,
        name: str,
        kind: str,
        payload: JSON = None,
        *,
        cron: str | None = None,
        zone: str | None = None,
        at: str | datetime | None = None,
    ) -> SchedulePutDocument:
        """Emit a signal by ``cron`` in ``zone``, or once ``at`` an instant. Nothing happens if it is there as it is (SCH-5)."""
        instant = at.isoformat() if isinstance(at, datetime) else at
        body = {"kind": kind, "payload": payload, "cron": cron, "zone": zone, "at": instant}
        _, found = await self._wire.ask("PUT", "schedules", name, body=body)
        return cast("SchedulePutDocument", found)

    async def remove_schedule(self, name: str) -> None:
        """Remove it; the signals that came of it stay. RefusedId if there is none."""
        await self._wire.ask("DELETE", "schedules", name)

    # --- sessions ---

    def sessions(self, *, prefix: str | None = None) -> Pages[SessionRow]:
        """Sessions, most recently updated first. One that is used meanwhile moves to the front."""
        return self._pages("sessions", "before", {"prefix": prefix})

    async def session(self, name: str) -> SessionDocument:
        """What it waits for, what holds it, what is queued and asked (SES-12a). RefusedId if there is none."""
        return cast("SessionDocument", await self._get("sessions", name))

    def messages(self, name: str, *, after: int = 0, before: int | None = None) -> Pages[MessageDocument]:
        """Messages in order, from after a seq, up to before one."""
        ask = partial(self._messages, name, "after", {"before": before})
        return Pages(ask, "messages", "next", start=after, size=PAGE)

    def latest_messages(self, name: str, *, before: int | None = None) -> Pages[MessageDocument]:
        """Messages from the last one backward."""
        return Pages(partial(self._messages, name, "before", {}), "messages", "previous", start=before, size=PAGE)

    async def send(
        self,
        name: str,
        text: str = "",
        *,
        id: str | None = None,
        sender: str | None = None,
        attachments: Sequence[Mapping[str, Any]] = (),
    ) -> InputReceipt:
        """Say something to a session (SES-20); the receipt. A session begins with its first input.

        ``id``: yours; the same id and text are accepted once, so that after ServerGone it can be sent again.
        """
        body: dict[str, Any] = {"text": text, "id": id, "sender": sender}
        if attachments:
            body["attachments"] = list(attachments)
        return cast("InputReceipt", await self._post("sessions", name, "input", body=body))

    async def cancel_input(self, name: str, input_id: str) -> InputCancelled:
        """Take a queued input back (SES-10a). RefusedState if it is not queued any more."""
        _, found = await self._wire.ask("DELETE", "sessions", name, "inputs", input_id)
        return cast("InputCancelled", found)

    async def interrupt(self, name: str) -> bool:
        """End the turn that is being taken (SES-12); False if there was none."""
        return bool(_member(await self._post("sessions", name, "interrupt"), "interrupted"))

    async def resume(self, name: str) -> bool:
        """Let what an interrupt held in the queue run (SES-12); False if nothing was held."""
        return bool(_member(await self._post("sessions", name, "resume"), "resumed"))

    async def compact(self, name: str) -> None:
        """Compact the transcript at the next boundary (SES-15)."""
        await self._post("sessions", name, "compact")

    async def answer(self, name: str, call_id: str, *, allow: bool) -> ApprovalAnswered:
        """Allow or deny one call that a person is asked about (SES-18). RefusedId if nobody asks about it now."""
        found = await self._post("sessions", name, "approvals", call_id, body={"allow": allow})
        return cast("ApprovalAnswered", found)

    def watch(self, name: str) -> AbstractAsyncContextManager[EventReader]:
        """What a session does, from now on: ``async with client.watch("ann") as events: async for event in events: ...``.

        The first event is ``session``, its document. The last one is ``end``, with the reason.
        """
        return self._wire.events("sessions", name, "live")

    # --- what happens ---

    def follow(
        self,
        *,
        kinds: Iterable[str] | None = None,
        session: str | None = None,
        signal: str | None = None,
        run: str | None = None,
        after: str | None = None,
    ) -> AbstractAsyncContextManager[Following]:
        """Everything that happens, over torn connections and restarts: ``async with client.follow() as following: ...``.

        It gives an async iterator of Happened and Reset. ``after``: the id of a snapshot or an event, from now on without. The
        others leave out events that do not name them; ``kinds`` are names of classes of ``concorde_trio.events``.
        """
        from concorde_trio.client.following import follow  # it knows all events, which a command need not wait for

        return follow(self._wire, _asked_events(kinds, session, signal, run), after)

    def events(
        self,
        *,
        kinds: Iterable[str] | None = None,
        session: str | None = None,
        signal: str | None = None,
        run: str | None = None,
        after: str | None = None,
    ) -> AbstractAsyncContextManager[EventReader]:
        """The same as one stream, as the server tells it: the last event is ``end``, with the reason.

        An event whose ``data`` is None says how far the stream is, by its ``id``.
        """
        return self._wire.events("events", query={**_asked_events(kinds, session, signal, run), "after": after})

    # --- the server ---

    async def snapshot(self, parts: Iterable[Part] | None = None, *, limit: int | None = None) -> SnapshotDocument:
        """What is in hand now, with the id of the event that it is true as of. ``parts``: only these; ``limit``: of runs."""
        query = {"parts": None if parts is None else ",".join(parts), "limit": limit}
        return cast("SnapshotDocument", await self._get("snapshot", query=query))

    async def ready(self) -> Readiness:
        """What the server says while it is ready. RequestRefused (503), which says why, while it is not."""
        return cast("Readiness", await self._get("readyz"))

    async def openapi(self) -> dict[str, Any]:
        """The OpenAPI document of the server."""
        return dict(await self._get("openapi.json"))

    def _pages(self, name: str, cursor: str, query: Mapping[str, object]) -> Pages[Any]:
        return Pages(partial(self._page, name, cursor, query), name, "next", size=PAGE)

    async def _page(self, name: str, cursor: str, query: Mapping[str, object], limit: int, at: object) -> Any:
        return await self._get(name, query={**query, "limit": limit, cursor: at}, checked=name)

    async def _messages(self, name: str, cursor: str, query: Mapping[str, object], limit: int, at: object) -> Any:
        asked = {**query, "limit": limit, cursor: at}
        return await self._get("sessions", name, "messages", query=asked, checked="messages")

    async def _get(
        self,
        *segments: str,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str | bytes] | None = None,
        checked: str | None = None,
    ) -> Any:
        _, found = await self._wire.ask("GET", *segments, query=query, headers=headers)
        if not isinstance(found, dict) or (checked is not None and not {checked, "next"} <= found.keys()):
            raise self._wire.strange(
                f"the answer of {self.url} is no document of this kind; does a gateway listen there?"
            )
        return found

    async def _post(self, *segments: str, body: Any = None, headers: Mapping[str, str | bytes] | None = None) -> Any:
        _, found = await self._wire.ask("POST", *segments, body=body, headers=headers)
        if not isinstance(found, dict):
            raise self._wire.strange(f"the answer of {self.url} is no JSON object; does a gateway listen there?")
        return found


def _asked_events(
    kinds: Iterable[str] | None, session: str | None, signal: str | None, run: str | None
) -> dict[str, str | None]:
    if isinstance(kinds, str):
        raise UsageError(f"kinds must be names, not one string: write [{kinds!r:.80}]")
    return {"kind": None if kinds is None else ",".join(kinds), "session": session, "signal": signal, "run": run}


def _member(found: Mapping[str, Any], name: str) -> Any:
    if name not in found:
        raise UsageError(f"the server answered without {name!r}; does a gateway of this version listen there?")
    return found[name]


def _seconds(moment: float | datetime | None) -> str | None:
    if moment is None:
        return None
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise UsageError(f"since must have a zone, which {moment!r} has not; write datetime.now(UTC), for one")
        return moment.isoformat()
    return f"{moment:.15f}"  # all of its digits: rounded up it would leave out what happened at that very moment
