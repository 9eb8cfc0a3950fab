"""The dashboard: a page that shows what runs, what waits and why, and lets an operator step in.

The law: the page and what it needs hold nothing of anybody's, so they need no token; all that they show they ask for, as any
operator does. The page uses files of this server and nothing else: no script or style stands in it, and no text becomes one.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import PurePath

from quart import Blueprint, Response
from quart_trio import QuartTrio

from concorde_trio.server.asked import Asked, serve
from concorde_trio.server.declarations import Answer, Operation, Scope, path
from concorde_trio.server.problems import PAGE_HEADERS, Problem
from concorde_trio.server.values import Text

TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
PAGE_TYPE = "text/html; charset=utf-8"

HEADERS = {
    **PAGE_HEADERS,
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}

PAGE = Operation(
    "GET",
    "/dashboard",
    "show_dashboard",
    "The dashboard. It asks for what it shows with the cookie of a login, and has a form to log in.",
    tag="Dashboard",
    scope=Scope.OPEN,
    answers=(Answer(200, "The page.", media_type="text/html"),),
)
PART = Operation(
    "GET",
    "/dashboard/<name>",
    "get_dashboard_part",
    "A script, a style or a picture of the dashboard.",
    tag="Dashboard",
    scope=Scope.OPEN,
    fields=(path("name", Text(), "The name of the file."),),
    answers=(
        Answer(200, "A script.", media_type="text/javascript"),
        Answer(200, "A style.", media_type="text/css"),
        Answer(200, "A picture.", media_type="image/svg+xml"),
    ),
    refusals={404: "There is no such file."},
)


@cache
def _parts() -> dict[str, bytes]:
    """Every file of the page, by name."""
    folder = files("concorde_trio.server") / "dashboard"
    return {
        each.name: each.read_bytes() for each in folder.iterdir() if PurePath(each.name).suffix in {*TYPES, ".html"}
    }


def dashboard_routes() -> Blueprint:
    """``/dashboard`` and what is below it."""
    routes = Blueprint("dashboard", __name__)

    @serve(routes, PAGE)
    async def page(asked: Asked) -> Response:
        """The page."""
        return _page()

    @serve(routes, PART)
    async def part(asked: Asked) -> Response:
        """A file that the page uses."""
        kind, found = TYPES.get(PurePath(asked["name"]).suffix), _parts().get(asked["name"])
        if kind is None or found is None:
            raise Problem(404, f"the dashboard has no file {asked['name']!r:.80}")
        return Response(found, content_type=kind, headers=HEADERS)

    return routes


def add_home(app: QuartTrio, blueprint: str) -> None:
    """Answer ``/`` with the dashboard unless the app does when it begins to serve. ``blueprint``: whose route it is then."""

    async def home() -> Response:
        return _page()

    @app.before_serving
    async def fill_the_gap() -> None:
        if not any(rule.rule == "/" for rule in app.url_map.iter_rules()):
            app.add_url_rule("/", f"{blueprint}.home", home)


def _page() -> Response:
    return Response(_parts()["index.html"], content_type=PAGE_TYPE, headers=HEADERS)
