"""Signals, for operators: list, look, emit, cancel, retry (SRV-2, SRV-3)."""

from __future__ import annotations

from functools import partial

from quart import Blueprint, Response, url_for

from concorde_trio._sansio.json_values import encode
from concorde_trio.documents import CancelAsked, Emitted, SignalPage, SignalWithRuns
from concorde_trio.errors import InvalidValue, UnknownId
from concorde_trio.records import JSON, SignalRecord, SignalState
from concorde_trio.server.answers import answer, page
from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.bodies import body_bound
from concorde_trio.server.declarations import LIMIT, Answer, Operation, header, member, path, query
from concorde_trio.server.problems import FieldFault, Problem
from concorde_trio.server.run_routes import shown_runs
from concorde_trio.server.seam import Worker
from concorde_trio.server.values import BEFORE, LARGEST_LIMIT, Id, Json, Moment, Name, OneOf, is_id
from concorde_trio.signals.documents import signal_document, signal_with_runs
from concorde_trio.signals.store import RunFilter, SignalFilter

KEY_HEADER = "Idempotency-Key"
_ID = path("signal_id", Id(), "The id of a signal.")
_UNKNOWN = {404: "There is no such signal."}
_LOCATION = {"location": "Where the signal is."}

LIST = Operation(
    "GET",
    "/signals",
    "list_signals",
    "Signals, newest first. What is emitted meanwhile does not shift the pages.",
    tag="Signals",
    fields=(
        query("kind", Name("kind"), "Only of this kind."),
        query("state", OneOf(SignalState), "Only in this state."),
        query("since", Moment(), "Only those emitted then or later: ISO 8601 with its zone, or Unix seconds."),
        query("before", BEFORE, "The next of an earlier page: only those that came before it."),
        LIMIT,
    ),
    answers=(Answer(200, "A page of signals.", SignalPage),),
)
LOOK = Operation(
    "GET",
    "/signals/<signal_id>",
    "get_signal",
    "A signal with its runs in prompt order: the last 200, next leads to earlier ones in /runs.",
    tag="Signals",
    fields=(_ID,),
    answers=(Answer(200, "The signal.", SignalWithRuns),),
    refusals=_UNKNOWN,
)
EMIT = Operation(
    "POST",
    "/signals",
    "emit_signal",
    "Say that something happened. It is stored when this is answered (SIG-1).",
    tag="Signals",
    fields=(
        header(KEY_HEADER, Name("key"), "The same kind and key are one signal, however often they are sent (SIG-7)."),
        member("kind", Name("kind"), "The name of the kind of signal.", required=True),
        member("payload", Json(), "What its handler is told: JSON without NUL, at most 1 MB and 100 deep."),
    ),
    answers=(
        Answer(201, "A new signal.", Emitted, headers=_LOCATION),
        Answer(200, "The first signal of this kind and key.", Emitted, headers=_LOCATION),
    ),
)
RETRY = Operation(
    "POST",
    "/signals/<signal_id>/retry",
    "retry_signal",
    "Emit a settled signal again (PST-5).",
    tag="Signals",
    fields=(_ID,),
    answers=(Answer(201, "A new signal of the same kind and payload.", Emitted, headers=_LOCATION),),
    refusals={**_UNKNOWN, 409: "The signal is not settled yet."},
)
CANCEL = Operation(
    "POST",
    "/signals/<signal_id>/cancel",
    "cancel_signal",
    "Ask for a signal's end (RUN-6). It is over when its state says so.",
    tag="Signals",
    fields=(_ID,),
    answers=(Answer(202, "It was asked for.", CancelAsked),),
    refusals={**_UNKNOWN, 409: "The signal is settled."},
)


def signal_routes(worker: Worker) -> Blueprint:
    """``/signals`` and what is below it."""
    routes = Blueprint("signals", __name__)

    @serve(routes, LIST)
    async def list_signals(asked: Asked) -> Response:
        """A page of signals."""
        where = SignalFilter(
            kind=asked["kind"],
            state=None if asked["state"] is None else SignalState(asked["state"]),
            since=asked["since"],
            before=asked["before"],
            limit=asked["limit"],
        )
        found = await worker.store.signals(where)

        def document(record: SignalRecord) -> JSON:
            return signal_document(record, worker.mask_json)

        return answer(await page("signals", found, where.limit, document, lambda record: record.seq))

    @serve(routes, LOOK)
    async def one_signal(asked: Asked) -> Response:
        """A signal with its runs."""
        record = await _find(worker, asked["signal_id"])
        found = await worker.store.runs(RunFilter(signal_id=record.id, limit=LARGEST_LIMIT))

        runs = await page("runs", found, LARGEST_LIMIT, shown_runs(worker, found), lambda run: run.position)
        shown = signal_with_runs(record, runs["runs"], worker.mask_json)
        return answer({**shown, "next": runs["next"]})

    check_payload = partial(_check_payload, worker)

    @serve(routes, EMIT, max_body=body_bound(worker.max_payload), checks={"payload": check_payload})
    async def emit(asked: Asked) -> Response:
        """A signal is stored."""
        try:
            signal = worker.new_signal(asked["kind"], asked["payload"], key=asked[KEY_HEADER])
        except InvalidValue as error:
            fault = FieldFault(within="body", field="payload", message=str(error), place=error.place)
            raise Problem.of_fields([fault]) from None
        (signal_id,) = await worker.store.emit([signal])
        return _emitted(signal_id, 201 if signal_id == signal.id else 200)

    @serve(routes, RETRY)
    async def retry(asked: Asked) -> Response:
        """A signal is emitted again."""
        await _find(worker, asked["signal_id"])
        return _emitted(await worker.retry(asked["signal_id"]), 201)

    @serve(routes, CANCEL)
    async def cancel(asked: Asked) -> Response:
        """202: it was asked for."""
        await _find(worker, asked["signal_id"])
        await worker.cancel_signal(asked["signal_id"])
        return answer({"id": asked["signal_id"], "asked": "cancel"}, 202)

    return routes


def _emitted(signal_id: str, status: int) -> Response:
    location = url_for(f".{LOOK.name}", signal_id=signal_id)
    return answer({"id": signal_id}, status, {"location": location})


def _check_payload(worker: Worker, payload: JSON) -> None:
    encode(payload, max_bytes=worker.max_payload)


async def _find(worker: Worker, signal_id: str) -> SignalRecord:
    record = await worker.store.signal(signal_id) if is_id(signal_id) else None
    if record is None:
        raise UnknownId(f"there is no signal {signal_id!r:.80}")
    return record
