"""What agents and probes ask: who am I, is it alive, is it ready (SRV-6, SRV-7)."""

from __future__ import annotations

import trio
from quart import Blueprint, Response

from concorde_trio.documents import CurrentRun, Health, Readiness
from concorde_trio.errors import ConcordeError
from concorde_trio.server.answers import answer
from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.attribution import TAG_HEADER, current_run
from concorde_trio.server.declarations import Answer, Operation, Scope, header
from concorde_trio.server.problems import Problem
from concorde_trio.server.seam import Worker
from concorde_trio.server.values import Text

PATIENCE = 2.0
"""Seconds in which the store must answer a readiness probe."""

CURRENT = Operation(
    "GET",
    "/runs/current",
    "get_current_run",
    "The run that this request comes from (TAG-3).",
    tag="Agents",
    scope=Scope.AGENT,
    fields=(header(TAG_HEADER, Text(), "The tag from the run's prompt: exactly one.", read=False),),
    answers=(Answer(200, "The run.", CurrentRun),),
    refusals={404: "The request comes from no run."},
)
HEALTH = Operation(
    "GET",
    "/healthz",
    "get_health",
    "Whether the server answers at all.",
    tag="Agents",
    scope=Scope.AGENT,
    answers=(Answer(200, "It does.", Health),),
)
READY = Operation(
    "GET",
    "/readyz",
    "get_readiness",
    "Whether the worker takes signals and the store answers; it says which does not.",
    tag="Agents",
    scope=Scope.AGENT,
    answers=(Answer(200, "Both do.", Readiness),),
    refusals={503: "One does not."},
)


def agent_routes(worker: Worker) -> Blueprint:
    """``/runs/current``, ``/healthz`` and ``/readyz``."""
    routes = Blueprint("agent", __name__)

    @serve(routes, CURRENT)
    async def current(asked: Asked) -> Response:
        """The run that this request came from."""
        run = current_run()
        if run is None:
            raise Problem(
                404,
                f"this request came from no run: send exactly one {TAG_HEADER} header with the tag that your prompt "
                "names, while your run lasts; a run whose prompt names none cannot ask",
            )
        found = {"id": run.id, "signal_id": run.signal_id, "session": run.session, "context": run.context}
        return answer(worker.mask_json(found))

    @serve(routes, HEALTH)
    async def healthz(asked: Asked) -> Response:
        """200 while the server answers at all."""
        return answer({"status": "ok"})

    @serve(routes, READY)
    async def readyz(asked: Asked) -> Response:
        """200, else 503; it says which."""
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
