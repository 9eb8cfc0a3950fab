"""What agents and probes ask: who am I, is it alive, is it ready (SRV-6, SRV-7)."""

from __future__ import annotations

import trio
from quart import Blueprint, Response, request

from concorde_trio.errors import ConcordeError
from concorde_trio.server.answers import answer
from concorde_trio.server.attribution import TAG_HEADER, current_run
from concorde_trio.server.parameters import Parameters
from concorde_trio.server.problems import Problem
from concorde_trio.server.seam import Worker

PATIENCE = 2.0
"""Seconds in which the store must answer a readiness probe."""


def agent_routes(worker: Worker) -> Blueprint:
    """``/runs/current``, ``/healthz`` and ``/readyz``."""
    routes = Blueprint("agent", __name__)

    @routes.get("/runs/current")
    async def current() -> Response:
        """The run that this request came from; 404 when it came from none (TAG-3)."""
        Parameters(request.args)
        run = current_run()
        if run is None:
            raise Problem(
                404,
                f"this request came from no run: send exactly one {TAG_HEADER} header with the tag from your prompt, "
                "while your run lasts",
            )
        found = {"id": run.id, "signal_id": run.signal_id, "session": run.session, "context": run.context}
        return answer(worker.mask_json(found))

    @routes.get("/healthz")
    async def healthz() -> Response:
        """200 while the server answers at all."""
        return answer({"status": "ok"})

    @routes.get("/readyz")
    async def readyz() -> Response:
        """200 while the worker takes signals and the store answers, else 503; it says which."""
        store = await _store_state(worker)
        last_error = None if worker.last_error is None else worker.mask(worker.last_error)
        state = {"worker": worker.status, "store": worker.mask(store), "last_error": last_error}
        if worker.status == "running" and store == "ok":
            return answer({"status": "ready", **state})
        what = f"the worker is {worker.status}" if worker.status != "running" else f"the store: {store}"
        raise Problem(503, f"not ready: {what}", members=state)

    return routes


async def _store_state(worker: Worker) -> str:
    state = f"it has not answered for {PATIENCE:g} seconds"
    with trio.move_on_after(PATIENCE):
        try:
            await worker.store.last_position()
            state = "ok"
        except ConcordeError as error:
            state = str(error)
    return state
