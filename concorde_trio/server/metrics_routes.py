"""``GET /metrics``: numbers for Prometheus, where its library is installed (SRV-7).

The law: what it shows is counts under a few known names, so it is for agents and probes; without the library nothing is counted, and
the route says what to install.
"""

from __future__ import annotations

from importlib.util import find_spec

from quart import Blueprint, Response, request

from concorde_trio.observability.tally import Tally, watch
from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.declarations import Answer, Operation, Scope
from concorde_trio.server.problems import SAFE_HEADERS, Problem
from concorde_trio.server.seam import Worker

METRICS = Operation(
    "GET",
    "/metrics",
    "get_metrics",
    "Numbers for Prometheus: signals, runs, waiting, sessions, expired holds, the store, the event loop (SRV-7).",
    tag="Agents",
    scope=Scope.AGENT,
    answers=(
        Answer(200, "The metrics, in the text format of Prometheus.", {"type": "string"}, media_type="text/plain"),
        Answer(200, "The same for who asks for it.", {"type": "string"}, media_type="application/openmetrics-text"),
    ),
    refusals={404: "The extra `metrics` is not installed where the server runs."},
)


def metrics_routes(worker: Worker) -> Blueprint:
    """The route. Counting begins now, if the library is there."""
    routes = Blueprint("metrics", __name__)
    tally: Tally | None = watch(worker.bus) if find_spec("prometheus_client") is not None else None

    @serve(routes, METRICS)
    async def metrics(asked: Asked) -> Response:
        """The metrics."""
        if tally is None:
            raise Problem(
                404, "there are no metrics without the extra: pip install 'concorde-trio[metrics]', and start again"
            )
        from concorde_trio.observability.prometheus import Metrics  # It takes a while to load, and few ask.

        text, content_type = await Metrics(worker, tally=tally).text(request.headers.get("accept", ""))
        return Response(text, headers={**SAFE_HEADERS, "content-type": content_type})

    return routes
