"""Signals, for operators: list, look, emit, cancel, retry (SRV-2, SRV-3)."""

from __future__ import annotations

from quart import Blueprint, Response, request, url_for

from concorde_trio.errors import UnknownId
from concorde_trio.records import JSON, SignalRecord, SignalState
from concorde_trio.server.answers import answer, page
from concorde_trio.server.bodies import body_bound, read_nothing, read_object
from concorde_trio.server.parameters import LARGEST_LIMIT, Parameters, is_id
from concorde_trio.server.problems import Problem
from concorde_trio.server.run_routes import shown_runs
from concorde_trio.server.seam import Worker
from concorde_trio.signals.documents import signal_document, signal_with_runs
from concorde_trio.signals.store import RunFilter, SignalFilter

KEY_HEADER = "Idempotency-Key"


def signal_routes(worker: Worker) -> Blueprint:
    """``/signals`` and what is below it."""
    routes = Blueprint("signals", __name__)

    @routes.get("/signals")
    async def list_signals() -> Response:
        """Newest first. ``kind``, ``state``, ``before``, ``limit``."""
        given = Parameters(request.args, "kind", "state", "before", "limit")
        where = SignalFilter(
            kind=given.name("kind", "kind"), state=given.state(SignalState), before=given.before(), limit=given.limit()
        )
        found = await worker.store.signals(where)

        def document(record: SignalRecord) -> JSON:
            return signal_document(record, worker.mask_json)

        return answer(await page("signals", found, where.limit, document, lambda record: record.seq))

    @routes.get("/signals/<signal_id>")
    async def one_signal(signal_id: str) -> Response:
        """A signal with its runs in prompt order: the last 200, ``next`` leads to earlier ones in ``/runs``."""
        Parameters(request.args)
        record = await _find(worker, signal_id)
        found = await worker.store.runs(RunFilter(signal_id=signal_id, limit=LARGEST_LIMIT))

        runs = await page("runs", found, LARGEST_LIMIT, shown_runs(worker, found), lambda run: run.position)
        shown = signal_with_runs(record, runs["runs"], worker.mask_json)
        return answer({**shown, "next": runs["next"]})

    @routes.post("/signals")
    async def emit() -> Response:
        """Body ``{"kind": name, "payload": JSON}``; 201 with the new id, 200 with the first one's for a repeated key."""
        Parameters(request.args)
        key = _key()
        body = await read_object("kind", "payload", max_bytes=body_bound(worker.max_payload))
        if not isinstance(body.get("kind"), str):
            raise Problem(400, 'the body must have "kind", a string: the name of the kind of signal', place="kind")
        signal = worker.new_signal(body["kind"], body.get("payload"), key=key)
        (signal_id,) = await worker.store.emit([signal])
        return _emitted(signal_id, 201 if signal_id == signal.id else 200)

    @routes.post("/signals/<signal_id>/retry")
    async def retry(signal_id: str) -> Response:
        """Emit a settled signal again (PST-5); 201 with the new id."""
        Parameters(request.args)
        await read_nothing()
        await _find(worker, signal_id)
        return _emitted(await worker.retry(signal_id), 201)

    @routes.post("/signals/<signal_id>/cancel")
    async def cancel(signal_id: str) -> Response:
        """Ask for a signal's end (RUN-6); 202, for it is over when the signal's state says so."""
        Parameters(request.args)
        await read_nothing()
        await _find(worker, signal_id)
        await worker.cancel_signal(signal_id)
        return answer({"id": signal_id, "asked": "cancel"}, 202)

    def _emitted(signal_id: str, status: int) -> Response:
        return answer({"id": signal_id}, status, {"location": url_for(".one_signal", signal_id=signal_id)})

    return routes


async def _find(worker: Worker, signal_id: str) -> SignalRecord:
    record = await worker.store.signal(signal_id) if is_id(signal_id) else None
    if record is None:
        raise UnknownId(f"there is no signal {signal_id!r:.80}")
    return record


def _key() -> str | None:
    values = request.headers.getlist(KEY_HEADER)
    if not values:
        return None
    if len(values) > 1:
        raise Problem(400, f"there is more than one {KEY_HEADER} header; send one", place=KEY_HEADER)
    try:
        # HTTP hands headers on as bytes, here each as a character; a key is text as everybody writes it today.
        return str(values[0]).encode("latin-1").decode("utf-8")
    except UnicodeError:
        raise Problem(400, f"the {KEY_HEADER} header is not UTF-8", place=KEY_HEADER) from None
