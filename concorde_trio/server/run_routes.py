"""Runs, for operators: list, look, cancel (SRV-2, SRV-3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from quart import Blueprint, Response, request

from concorde_trio.errors import UnknownId
from concorde_trio.records import JSON, Run, RunState
from concorde_trio.server.answers import answer, page
from concorde_trio.server.bodies import read_nothing
from concorde_trio.server.parameters import Parameters, is_id
from concorde_trio.server.seam import Worker
from concorde_trio.signals.documents import run_document
from concorde_trio.signals.store import RunFilter


def run_routes(worker: Worker) -> Blueprint:
    """``/runs`` and what is below it."""
    routes = Blueprint("runs", __name__)

    @routes.get("/runs")
    async def list_runs() -> Response:
        """Newest first. ``signal``, ``session``, ``resource``, ``state``, ``before``, ``limit``."""
        given = Parameters(request.args, "signal", "session", "resource", "state", "before", "limit")
        signal_id = given.id("signal")
        where = RunFilter(
            signal_id=signal_id,
            session=given.name("session", "session"),
            resource=given.name("resource", "resource"),
            state=given.state(RunState),
            before=given.before(),
            limit=given.limit(),
        )
        nobody = signal_id is not None and not is_id(signal_id)
        found = [] if nobody else await worker.store.runs(where)

        return answer(await page("runs", found, where.limit, shown_runs(worker, found), lambda run: run.position))

    @routes.get("/runs/<run_id>")
    async def one_run(run_id: str) -> Response:
        """A run; ``waits_for`` says why it waits (LCK-7)."""
        Parameters(request.args)
        run = await _find(worker, run_id)
        return answer(shown_runs(worker, [run])(run))

    @routes.post("/runs/<run_id>/cancel")
    async def cancel(run_id: str) -> Response:
        """Ask for a run's end (RUN-6); 202, for it is over when the run's state says so."""
        Parameters(request.args)
        await read_nothing()
        await _find(worker, run_id)
        await worker.cancel_run(run_id)
        return answer({"id": run_id, "asked": "cancel"}, 202)

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
