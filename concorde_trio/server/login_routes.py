"""``/login`` and ``/logout``: the page behind the link that is printed, and what makes and ends a cookie (SRV-6).

The law: the token comes in the body of a POST, never in an address, where logs and histories would keep it.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from importlib.resources import files
from urllib.parse import parse_qs

from quart import Blueprint, Response, request

from concorde_trio.server.bodies import read_form, read_nothing, read_object
from concorde_trio.server.logins import Logins
from concorde_trio.server.parameters import Parameters
from concorde_trio.server.problems import PAGE_HEADERS, SAFE_HEADERS, Problem

LONGEST = 10_000
"""Bytes of a body with a token."""

FORM = "application/x-www-form-urlencoded"
_PAGES = files("concorde_trio.server") / "pages"
_PAGE, _SCRIPT, _STYLE = ((_PAGES / name).read_text("utf-8") for name in ("login.html", "login.js", "login.css"))


def login_routes(logins: Logins, mask: Callable[[str], str]) -> Blueprint:
    """The page with what it needs, ``POST /login`` and ``POST /logout``. ``mask``: TAG-4."""
    routes = Blueprint("login", __name__)

    @routes.get("/login")
    async def page() -> Response:
        """What the printed link opens; its script takes the token from behind the # and posts it."""
        Parameters(request.args)
        return _page("")

    @routes.get("/login/page.js")
    async def script() -> Response:
        """The page's script."""
        Parameters(request.args)
        return Response(_SCRIPT, content_type="text/javascript; charset=utf-8", headers=PAGE_HEADERS)

    @routes.get("/login/page.css")
    async def style() -> Response:
        """The page's style."""
        Parameters(request.args)
        return Response(_STYLE, content_type="text/css; charset=utf-8", headers=PAGE_HEADERS)

    @routes.post("/login")
    async def log_in() -> Response:
        """``{"token": …}``: 204 and the cookie; 403 for a wrong one. As a form: 303 to what is above, or the page again."""
        Parameters(request.args)
        if request.mimetype == FORM:
            given = parse_qs((await read_form(LONGEST)).decode("utf-8", "replace"))
            try:
                cookie = logins.log_in("".join(given.get("token", [])).strip(), _headers())
            except Problem as problem:
                return _page(mask(problem.document.detail), 403)
            return _elsewhere("./", cookie)
        token = (await read_object("token", max_bytes=LONGEST)).get("token")
        if not isinstance(token, str):
            raise Problem(400, 'the body must have "token", a string: the operator token', place="token")
        return _done(logins.log_in(token, _headers()))

    @routes.post("/logout")
    async def log_out() -> Response:
        """End the login of the cookie that this comes with: 204; as a form 303 to the login page."""
        Parameters(request.args)
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
