"""The agent server as an app of its own, or as a blueprint in the user's own app (SRV-1, SRV-8).

The law: our routes answer alike in both, errors included; the user's routes keep their own error handling, and in both
``current_run()`` names the run that a request came from, in every hook and handler.
"""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Awaitable, Callable, Container
from typing import cast

import trio
from quart import Blueprint, Response, current_app, request, websocket
from quart.blueprints import BlueprintSetupState
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import RequestRedirect, Rule

from concorde_trio.errors import SessionElsewhere, UsageError
from concorde_trio.server.access import Access
from concorde_trio.server.agent_routes import agent_routes
from concorde_trio.server.answers import answer_problem
from concorde_trio.server.attribution import Attribution
from concorde_trio.server.closing import NAME, server_closing
from concorde_trio.server.elsewhere import session_elsewhere, to_leader
from concorde_trio.server.event_routes import event_routes
from concorde_trio.server.faults import describe
from concorde_trio.server.group_errors import hear_all_errors
from concorde_trio.server.home import add_home, dashboard_routes
from concorde_trio.server.lock_routes import lock_routes
from concorde_trio.server.login_routes import login_routes
from concorde_trio.server.logins import Logins
from concorde_trio.server.metrics_routes import metrics_routes
from concorde_trio.server.problems import SAFE_HEADERS, Problem, ProblemDocument, problem_of
from concorde_trio.server.reference_routes import reference_routes
from concorde_trio.server.run_routes import run_routes
from concorde_trio.server.schedule_routes import schedule_routes
from concorde_trio.server.seam import Worker
from concorde_trio.server.session_live import session_live
from concorde_trio.server.session_paths import RawSessionPaths
from concorde_trio.server.session_routes import session_routes
from concorde_trio.server.signal_routes import signal_routes

logger = logging.getLogger("concorde_trio.server")

__all__ = ["agent_server", "create_app", "install", "server_closing"]

MAX_BODY = 2_000_000
_SEGMENT = re.compile(r"<(?!path:)[^<>]*>")
BODY_TIME = 20.0
"""Seconds in which the body of a request to our own app must have come."""


def create_app(
    worker: Worker,
    *,
    access: Access | None = None,
    closing: trio.Event | None = None,
    max_body: int = MAX_BODY,
) -> QuartTrio:
    """A new app with the built-in routes, to which the user's own can be added.

    ``access``: who may ask what, ``Access.on("127.0.0.1")`` if None. ``closing``: the event given to ``serve``, for
    ``server_closing``. ``max_body``: bytes that the body of a request may have.
    """
    app = QuartTrio(NAME)
    app.config["MAX_CONTENT_LENGTH"] = max_body
    app.config["BODY_TIMEOUT"] = BODY_TIME
    # Writes are bounded one by one where the app is served; a long stream is no fault.
    app.config["RESPONSE_TIMEOUT"] = None
    app.config["BACKGROUND_TASK_SHUTDOWN_TIMEOUT"] = 0.5
    install(app, worker, access=access, closing=closing, whole_app=True)
    add_home(app, NAME)
    refuse = _refusing(worker, ours=False)
    app.register_error_handler(Exception, refuse)
    app.register_error_handler(HTTPException, refuse)
    app.after_request(_say_safe)
    return app


def install(
    app: QuartTrio,
    worker: Worker,
    *,
    access: Access | None = None,
    closing: trio.Event | None = None,
    url_prefix: str | None = None,
    whole_app: bool = False,
) -> None:
    """Put the built-in routes into ``app``, below ``url_prefix``, and make ``current_run()`` work in all of it.

    ``whole_app``: every route of the app is an agent route of this server (SRV-6): it is guarded against other sites'
    pages as ours are, and needs the agent token where there is one. Leave it False for an app that is served and guarded
    in its own way. UsageError if it was done before, for an app that is no QuartTrio, and for a route of it at a path of ours;
    one that is added later keeps the app from being served.
    """
    _check_kind(app)
    _check_new(app.extensions)
    access = Access.on("127.0.0.1") if access is None else access
    logins = Logins(access)
    app.register_blueprint(agent_server(worker, access, closing=closing, logins=logins), url_prefix=url_prefix)
    check_routes(app)

    @app.before_serving
    async def check_what_came_later() -> None:
        check_routes(app)

    if whole_app:
        _guard_all(app, worker, access, logins)


def agent_server(
    worker: Worker, access: Access, *, closing: trio.Event | None = None, logins: Logins | None = None
) -> Blueprint:
    """The built-in routes as a blueprint; registering it makes ``current_run()`` work in all of the app.

    ``app.register_blueprint(agent_server(worker, access), url_prefix="/agents")`` puts them below a path of their own. The app's
    other routes stay as they are: nobody guards them but you. ``closing``: the event given to ``serve``.
    """
    ours = Blueprint(NAME, __name__)
    logins = Logins(access) if logins is None else logins

    async def same_site() -> None:
        access.check_origin(request.method, _headers())

    async def operator() -> None:
        logins.check_operator(request.method, _headers())
        if worker.status == "stopped":
            raise Problem(503, "the worker has stopped; ask again once it is back")
        await worker.learn_tags()

    async def leader() -> None:
        await to_leader(worker)

    async def agent() -> None:
        logins.check_agent(request.method, _headers())

    ours.before_request(same_site)
    for make in (signal_routes, run_routes, lock_routes, schedule_routes, session_routes, session_live, event_routes):
        routes = make(worker)
        routes.before_request(operator)
        if make in (lock_routes, event_routes):
            routes.before_request(leader)
        ours.register_blueprint(routes)
    for routes in (agent_routes(worker), metrics_routes(worker), reference_routes()):
        routes.before_request(agent)
        ours.register_blueprint(routes)
    ours.register_blueprint(login_routes(logins, worker.mask))
    ours.register_blueprint(dashboard_routes())
    ours.register_error_handler(Exception, _refusing(worker, ours=True))

    def installed(state: BlueprintSetupState) -> None:
        app = state.app
        _check_kind(app)
        _check_new(app.extensions)
        app.extensions[NAME] = trio.Event() if closing is None else closing
        inner = RawSessionPaths(app.asgi_app, state.url_prefix or "")  # type: ignore[attr-defined]
        app.asgi_app = Attribution(inner, worker)  # type: ignore[attr-defined]
        app.before_request_funcs.setdefault(None, []).insert(0, _refuse_method(worker))
        hear_all_errors(cast("QuartTrio", app), worker.mask)

    ours.record(installed)
    ours.after_request(_let_events_last)
    return ours


def _check_new(extensions: Container[str]) -> None:
    if NAME in extensions:
        raise UsageError("this app has an agent server already; install it once, under one prefix")


def _check_kind(app: object) -> None:
    if not isinstance(app, QuartTrio):
        raise UsageError(
            f"the app must be a QuartTrio (from quart_trio import QuartTrio), not {app!r:.80}; a plain Quart needs asyncio"
        )


def check_routes(app: QuartTrio) -> None:
    """UsageError where a route of the app's own stands at a path of ours: one of the two could then not be reached."""
    ours: set[tuple[str, str]] = set()
    theirs: dict[tuple[str, str], str] = {}
    for rule in app.url_map.iter_rules():
        # Whatever a segment is called, it takes the same requests.
        shape = _SEGMENT.sub("<>", rule.rule)
        for method in (rule.methods or set()) - {"OPTIONS"}:
            if _is_ours(rule):
                ours.add((method, shape))
            else:
                theirs[method, shape] = rule.rule
    for method, shape in sorted(ours & theirs.keys()):
        raise UsageError(
            f"this app has a route of its own for {method} {theirs[method, shape]}, which is one of the agent server's; put yours "
            "elsewhere, or register agent_server(...) as a blueprint below a url_prefix"
        )


def _is_ours(rule: Rule) -> bool:
    return NAME in rule.endpoint.split(".")[:-1]


def _guard_all(app: QuartTrio, worker: Worker, access: Access, logins: Logins) -> None:
    async def guard() -> Response | None:
        try:
            access.check_origin(request.method, _headers())
            if (request.blueprint or "").partition(".")[0] != NAME:
                logins.check_agent(request.method, _headers())
        except Problem as problem:
            return answer_problem(problem.document, worker.mask)
        return None

    async def guard_websocket() -> Response | None:
        headers = list(websocket.scope["headers"])
        try:
            access.check_origin("GET", headers, changes=True)
            logins.check_agent("GET", headers, changes=True)
        except Problem as problem:
            return answer_problem(problem.document, worker.mask)
        return None

    app.before_request_funcs.setdefault(None, []).insert(0, guard)
    app.before_websocket_funcs.setdefault(None, []).insert(0, guard_websocket)


async def _let_events_last(response: Response) -> Response:
    # An app ends every answer after RESPONSE_TIMEOUT, a minute unless the user's says otherwise; a stream is no fault.
    if response.mimetype == "text/event-stream":
        response.timeout = None
    return response


async def _say_safe(response: Response) -> Response:
    # Not the policies of our own answers: the user's pages may use what they like.
    for name in ("cache-control", "x-content-type-options"):
        response.headers.setdefault(name, SAFE_HEADERS[name])
    return response


def _refusing(worker: Worker, *, ours: bool) -> Callable[[Exception], Awaitable[Response]]:
    """An error handler: every exception as a problem document; ``ours``: of a built-in route."""

    async def refuse(error: Exception) -> Response:
        if isinstance(error, SessionElsewhere):
            problem: ProblemDocument | None = session_elsewhere(error)
        else:
            problem = _http_problem(error) if isinstance(error, HTTPException) else problem_of(error)
        if problem is None or (problem.status == 503 and not isinstance(error, Problem)):
            # What the user's code says of itself helps them; of ours it could be what a client sent.
            said = describe(error) if ours else "".join(traceback.format_exception(error))
            rule = request.url_rule.rule if request.url_rule is not None else "a request"
            logger.error("%s failed: %s", rule, worker.mask(said))
        if problem is None:
            problem = ProblemDocument(status=500, detail="the server failed to answer; its log says where")
        return answer_problem(problem, worker.mask)

    return refuse


def _http_problem(error: HTTPException) -> ProblemDocument:
    headers = {}
    for name, value in error.get_headers():
        if name.lower() in ("allow", "retry-after", "www-authenticate", "content-range"):
            headers[name.lower()] = ", ".join(sorted(value.split(", "))) if name.lower() == "allow" else value
    status = error.code or 500
    if status == 404:
        return ProblemDocument(status=404, detail=f"there is nothing at {request.path!r:.200}")
    if status == 405:
        return ProblemDocument(
            status=405, detail=f"this takes {headers.get('allow')}, not {request.method!r:.40}", headers=headers
        )
    return ProblemDocument(status=status, detail=str(error.description), headers=headers)


def _refuse_method(worker: Worker) -> Callable[[], Awaitable[Response | None]]:
    """A hook that answers a wrong method at one of our paths, which Quart would leave to the app around."""

    async def refuse() -> Response | None:
        error = request.routing_exception
        if not isinstance(error, MethodNotAllowed) or not error.valid_methods:
            return None
        adapter = current_app.url_map.bind("localhost")
        try:
            rule, _ = adapter.match(request.path, method=next(iter(error.valid_methods)), return_rule=True)
        except (HTTPException, RequestRedirect):
            return None
        if not _is_ours(rule):
            return None
        return answer_problem(_http_problem(error), worker.mask)

    return refuse


def _headers() -> list[tuple[bytes, bytes]]:
    return list(request.scope["headers"])
