"""People in a browser: the operator token is exchanged for a cookie, which is worth as much for a while (SRV-6).

The law: the cookie holds no token and cannot be made without one; no script can read it, no other site can have it sent,
and it ends by itself, by a logout, or with the token it was made of. A request that comes with it must come from a page of this
server if it changes something, and may not be made for another page's use at all: ports of one machine share their
cookies, and to a browser they are one site.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable

from concorde_trio.server.access import Access, Headers, authority_of, single
from concorde_trio.server.problems import Problem

LIFE = 12 * 3600
"""Seconds for which a cookie is good."""

REVOKED = 10_000
"""Cookies that a logout ended are remembered until they would have ended by themselves, at most so many."""

_VALUE = re.compile(r"([0-9]{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})\Z")
_SCRIPTS = ("cross-site", "same-site")


class Logins:
    """Who is logged in at one server. ``clock``: seconds since the epoch."""

    def __init__(self, access: Access, *, clock: Callable[[], float] = time.time) -> None:
        self._access = access
        self._clock = clock
        self._key = hashlib.sha256(b"concorde-trio login\0" + access.operator_token.encode()).digest()
        self._revoked: dict[str, float] = {}

    def check_operator(self, method: str, headers: Headers) -> None:
        """Problem 401 unless the request bears the operator token or a cookie that was made of it; 403: another page's."""
        if not self._has_cookie(method, headers, None):
            self._access.check_operator(headers)

    def check_agent(self, method: str, headers: Headers, *, changes: bool | None = None) -> None:
        """The same with the agent token, where agents need one. ``changes``: by the method if None."""
        if self._access.agent_token is not None and not self._has_cookie(method, headers, changes):
            self._access.check_agent(headers)

    def log_in(self, token: str, headers: Headers) -> str:
        """The Set-Cookie header for who has the operator token. Problem 403 for anything else."""
        try:
            right = hmac.compare_digest(token.encode(), self._access.operator_token.encode())
        except UnicodeEncodeError:
            right = False
        if not right:
            raise Problem(
                403, "that is not the operator token of this server; it is in the link printed at the last start"
            )
        expires = int(self._clock()) + LIFE
        nonce = secrets.token_hex(16)
        return self._cookie(headers, f"{expires}.{nonce}.{self._signature(expires, nonce)}", LIFE)

    def log_out(self, headers: Headers) -> str:
        """End the logins that a request comes with; the Set-Cookie header that removes the cookie."""
        now = self._clock()
        for nonce, expires in self._valid(headers):
            self._revoked[nonce] = expires
            while len(self._revoked) > REVOKED or next(iter(self._revoked.values())) <= now:
                del self._revoked[next(iter(self._revoked))]
        return self._cookie(headers, "", 0)

    def check_log_out(self, headers: Headers) -> None:
        """Problem 403 if another site's page asks for the end of a login."""
        self._has_cookie("POST", headers, True)

    def _has_cookie(self, method: str, headers: Headers, changes: bool | None) -> bool:
        if not any(name == b"cookie" for name, _ in headers) or any(name == b"authorization" for name, _ in headers):
            return False
        if not self._valid(headers):
            return False
        if changes is None:
            changes = method not in ("GET", "HEAD", "OPTIONS")
        site, origin = single(headers, b"sec-fetch-site"), single(headers, b"origin")
        own = origin is not None and authority_of(origin) == (single(headers, b"host") or "").lower()
        if changes and not own:
            raise Problem(
                403, "a change that comes with a cookie must be asked for by a page of this server; or send the token"
            )
        foreign = (origin is not None and not own) or site in _SCRIPTS
        if foreign and (changes or single(headers, b"sec-fetch-mode") != "navigate"):
            raise Problem(403, "a page of another site or port asked for this, which is refused")
        return True

    def _valid(self, headers: Headers) -> list[tuple[str, float]]:
        """Nonce and end of every cookie of ours in a request that is good."""
        name, now, found = _name(headers), self._clock(), []
        for value in _cookies(headers, name)[:8]:
            match = _VALUE.match(value)
            if match is None:
                continue
            expires, nonce = int(match[1]), match[2]
            right = hmac.compare_digest(match[3], self._signature(expires, nonce))
            if right and now < expires and nonce not in self._revoked:
                found.append((nonce, float(expires)))
        return found

    def _signature(self, expires: int, nonce: str) -> str:
        return hmac.new(self._key, f"{expires}.{nonce}".encode(), hashlib.sha256).hexdigest()

    def _cookie(self, headers: Headers, value: str, life: int) -> str:
        # Behind a proxy that speaks TLS the browser alone knows that it does, and says so in the origin.
        secure = "; Secure" if (single(headers, b"origin") or "").lower().startswith("https:") else ""
        return f"{_name(headers)}={value}; Max-Age={life}; Path=/; HttpOnly; SameSite=Strict{secure}"


def _name(headers: Headers) -> str:
    """By the port, for two servers of one machine share their cookies and each has its own token."""
    _, _, port = (single(headers, b"host") or "").rpartition(":")
    return f"concorde_trio_{port}" if port.isascii() and port.isdigit() and len(port) <= 5 else "concorde_trio"


def _cookies(headers: Headers, wanted: str) -> list[str]:
    found = []
    for header, value in headers:
        if header == b"cookie":
            for pair in value.decode("latin-1").split(";"):
                name, _, text = pair.strip().partition("=")
                if name == wanted:
                    found.append(text)
    return found
