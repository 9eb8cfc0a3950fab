"""``/login`` and ``/logout``: the page behind the link that is printed, and what makes and ends a cookie (SRV-6).

The law: the token comes in the body of a POST, never in an address, where logs and histories would keep it.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from importlib.resources import files
from urllib.parse import parse_qs

from quart import Blueprint, Response, request

from concorde_trio.server.asked import Asked, check_parameters, serve
from concorde_trio.server.bodies import read_form, read_nothing, read_object
from concorde_trio.server.declarations import FORM_TYPE, JSON_TYPE, Answer, Operation, Scope, describe, member
from concorde_trio.server.logins import Logins
from concorde_trio.server.problems import PAGE_HEADERS, SAFE_HEADERS, Problem
from concorde_trio.server.values import Text

LONGEST = 10_000
"""Bytes of a body with a token."""

FORM = FORM_TYPE
_PAGES = files("concorde_trio.server") / "pages"
_PAGE, _SCRIPT, _STYLE = ((_PAGES / name).read_text("utf-8") for name in ("login.html", "login.js", "login.css"))


_TAG = "Login"
_FORM_OR_JSON = (JSON_TYPE, FORM)
_COOKIE = {"set-cookie": "The cookie, or its end."}

PAGE = Operation(
    "GET",
    "/login",
    "get_login",
    "What the printed link opens. Its script takes the token from behind the # and posts it.",
    tag=_TAG,
    scope=Scope.OPEN,
    answers=(Answer(200, "The page.", media_type="text/html"),),
)
SCRIPT = Operation(
    "GET",
    "/login/page.js",
    "get_login_script",
    "The script of the login page.",
    tag=_TAG,
    scope=Scope.OPEN,
    answers=(Answer(200, "The script.", media_type="text/javascript"),),
)
STYLE = Operation(
    "GET",
    "/login/page.css",
    "get_login_style",
    "The style of the login page.",
    tag=_TAG,
    scope=Scope.OPEN,
    answers=(Answer(200, "The style sheet.", media_type="text/css"),),
)
LOG_IN = Operation(
    "POST",
    "/login",
    "log_in",
    "Exchange the operator token for a cookie that is worth as much, for a browser.",
    tag=_TAG,
    scope=Scope.OPEN,
    fields=(member("token", Text(), "The operator token.", required=True),),
    body_types=_FORM_OR_JSON,
    answers=(
        Answer(204, "The cookie.", headers=_COOKIE),
        Answer(303, "The same for a form: it leads to the page above.", headers={**_COOKIE, "location": "Where to."}),
        Answer(403, "The same for a form: the page again.", media_type="text/html"),
    ),
    refusals={403: "The token is wrong, or a page of another site asked for this."},
)
LOG_OUT = Operation(
    "POST",
    "/logout",
    "log_out",
    "End the login of the cookie that this comes with.",
    tag=_TAG,
    scope=Scope.OPEN,
    answers=(
        Answer(204, "The end of the cookie.", headers=_COOKIE),
        Answer(303, "The same for a form: it leads to the login page.", headers={**_COOKIE, "location": "Where to."}),
    ),
)


def login_routes(logins: Logins, mask: Callable[[str], str]) -> Blueprint:
    """The page with what it needs, ``POST /login`` and ``POST /logout``. ``mask``: TAG-4."""
    routes = Blueprint("login", __name__)

    @serve(routes, PAGE)
    async def page(asked: Asked) -> Response:
        """What the printed link opens; its script takes the token from behind the # and posts it."""
        return _page("")

    @serve(routes, SCRIPT)
    async def script(asked: Asked) -> Response:
        """The page's script."""
        return Response(_SCRIPT, content_type="text/javascript; charset=utf-8", headers=PAGE_HEADERS)

    @serve(routes, STYLE)
    async def style(asked: Asked) -> Response:
        """The page's style."""
        return Response(_STYLE, content_type="text/css; charset=utf-8", headers=PAGE_HEADERS)

    @routes.post("/login")
    @describe(LOG_IN)
    async def log_in() -> Response:
        """``{"token": …}``: 204 and the cookie; 403 for a wrong one. As a form: 303 to what is above, or the page again."""
        check_parameters(LOG_IN)
        if request.mimetype == FORM:
            given = parse_qs((await read_form(LONGEST)).decode("utf-8", "replace"))
            try:
                cookie = logins.log_in("".join(given.get("token", [])).strip(), _headers())
            except Problem as problem:
                return _page(mask(problem.document.detail), 403)
            return _elsewhere("dashboard", cookie)
        token = (await read_object("token", max_bytes=LONGEST)).get("token")
        if not isinstance(token, str):
            raise Problem(400, 'the body must have "token", a string: the operator token', place="token")
        return _done(logins.log_in(token, _headers()))

    @routes.post("/logout")
    @describe(LOG_OUT)
    async def log_out() -> Response:
        """End the login of the cookie that this comes with: 204; as a form 303 to the login page."""
        check_parameters(LOG_OUT)
        form = request.mimetype == FORM
        await (read_form(LONGEST) if form else read_nothing())
        logins.check_log_out(_headers())
        cookie = logins.log_out(_headers())
        return _elsewhere("login", cookie) if form else _done(cookie)

    return routes


def _headers() -> list[tuple[bytes, bytes]]:
    return list(request.scope["headers"])


def _page(said: str, status: int = 200) -> Response:
    # By "no-referrer" a browser would name no origin when the form is sent, and be refused as if it were another site.
    headers = {**PAGE_HEADERS, "referrer-policy": "same-origin"}
    text = _PAGE.replace("SAID", html.escape(said))
    return Response(text, status=status, content_type="text/html; charset=utf-8", headers=headers)


def _done(cookie: str) -> Response:
    return Response(b"", status=204, headers={**SAFE_HEADERS, "set-cookie": cookie})


def _elsewhere(place: str, cookie: str) -> Response:
    return Response(b"", status=303, headers={**SAFE_HEADERS, "location": place, "set-cookie": cookie})
