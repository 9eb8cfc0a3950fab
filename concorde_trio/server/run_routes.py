"""Runs, for operators: list, look, cancel (SRV-2, SRV-3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from quart import Blueprint, Response

from concorde_trio.documents import CancelAsked, RunDocument, RunPage
from concorde_trio.errors import UnknownId
from concorde_trio.records import JSON, Run, RunState
from concorde_trio.server.answers import answer, page
from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.declarations import LIMIT, Answer, Operation, path, query
from concorde_trio.server.elsewhere import to_leader
from concorde_trio.server.seam import Worker
from concorde_trio.server.values import BEFORE, Id, Moment, Name, OneOf, Text, is_id
from concorde_trio.signals.documents import run_document
from concorde_trio.signals.store import RunFilter

_ID = path("run_id", Id(), "The id of a run.")
_UNKNOWN = {404: "There is no such run."}

LIST = Operation(
    "GET",
    "/runs",
    "list_runs",
    "Runs, newest first. What is queued meanwhile does not shift the pages.",
    tag="Runs",
    fields=(
        query("signal", Text(), "Only of this signal, by its id."),
        query("kind", Name("kind"), "Only of signals of this kind."),
        query("session", Name("session"), "Only in this session."),
        query("resource", Name("resource"), "Only those that need this resource."),
        query("state", OneOf(RunState), "Only in this state."),
        query("since", Moment(), "Only those queued then or later: ISO 8601 with its zone, or Unix seconds."),
        query("before", BEFORE, "The next of an earlier page: only those that came before it."),
        LIMIT,
    ),
    answers=(Answer(200, "A page of runs.", RunPage),),
)
LOOK = Operation(
    "GET",
    "/runs/<run_id>",
    "get_run",
    "A run; waits_for says for whom it waits and why (LCK-7).",
    tag="Runs",
    fields=(_ID,),
    answers=(Answer(200, "The run.", RunDocument),),
    refusals=_UNKNOWN,
)
CANCEL = Operation(
    "POST",
    "/runs/<run_id>/cancel",
    "cancel_run",
    "Ask for a run's end (RUN-6). It is over when its state says so.",
    tag="Runs",
    fields=(_ID,),
    answers=(Answer(202, "It was asked for.", CancelAsked),),
    refusals={**_UNKNOWN, 409: "The run has ended."},
)


def run_routes(worker: Worker) -> Blueprint:
    """``/runs`` and what is below it."""
    routes = Blueprint("runs", __name__)

    @serve(routes, LIST)
    async def list_runs(asked: Asked) -> Response:
        """A page of runs."""
        where = RunFilter(
            signal_id=asked["signal"],
            kind=asked["kind"],
            session=asked["session"],
            resource=asked["resource"],
            state=None if asked["state"] is None else RunState(asked["state"]),
            since=asked["since"],
            before=asked["before"],
            limit=asked["limit"],
        )
        nobody = where.signal_id is not None and not is_id(where.signal_id)
        found = [] if nobody else await worker.store.runs(where)

        return answer(await page("runs", found, where.limit, shown_runs(worker, found), lambda run: run.position))

    @serve(routes, LOOK)
    async def one_run(asked: Asked) -> Response:
        """A run."""
        run = await _find(worker, asked["run_id"])
        if run.state is RunState.PENDING:
            await to_leader(worker)  # which knows for whom it waits
        return answer(shown_runs(worker, [run])(run))

    @serve(routes, CANCEL)
    async def cancel(asked: Asked) -> Response:
        """202: it was asked for."""
        await _find(worker, asked["run_id"])
        await worker.cancel_run(asked["run_id"])
        return answer({"id": asked["run_id"], "asked": "cancel"}, 202)

    return routes


def shown_runs(worker: Worker, runs: Sequence[Run]) -> Callable[[Run], JSON]:
    """What makes documents of these runs: what the store knows of each, and what only their worker knows."""
    waits = worker.why_all(run.id for run in runs if run.state is RunState.PENDING)

    def document(run: Run) -> JSON:
        since = worker.stopping(run.id) if run.state is RunState.RUNNING else None
        stopping = None if since is None else max(0.0, time.time() - since)
        return run_document(run, worker.mask_json, waits.get(run.id), stopping=stopping)

    return document


async def _find(worker: Worker, run_id: str) -> Run:
    run = await worker.store.run(run_id) if is_id(run_id) else None
    if run is None:
        raise UnknownId(f"there is no run {run_id!r:.80}")
    return run
