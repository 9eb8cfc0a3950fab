"""Who may use which route, and which requests a web page made behind its user's back (SRV-6).

The law: operators carry a token; agents are let in on loopback; beyond loopback both carry one that somebody set. A tag
opens nothing (TAG-5). A browser can be made to send requests to loopback by any page, so on loopback the Host header
must name it (against DNS rebinding), and what changes something must come from the server's own origin.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import attrs

from concorde_trio.errors import UsageError
from concorde_trio.server.problems import Problem

Headers = Sequence[tuple[bytes, bytes]]

_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?\Z")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is reached from this machine alone."""
    bare = host.strip("[]")
    if bare == "localhost":
        return True
    try:
        return ipaddress.ip_address(bare).is_loopback
    except ValueError:
        return False


def _token(access: Access, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is None and attribute.name == "agent_token":
        return
    if not isinstance(value, str) or len(value) < 16 or not all("!" <= character <= "~" for character in value):
        raise UsageError(
            f"{attribute.name} must be at least 16 visible ASCII characters; leave it out for a random one"
        )


@attrs.frozen(kw_only=True)
class Access:
    """Tokens and names of one server. Made by ``on``.

    ``agent_token``: what agents must carry, None for nothing. ``hosts``: the names under which the server may be asked,
    None for any.
    """

    operator_token: str = attrs.field(repr=False, validator=_token)
    agent_token: str | None = attrs.field(default=None, repr=False, validator=_token)
    hosts: frozenset[str] | None = None

    @classmethod
    def on(
        cls,
        host: str,
        *,
        operator_token: str | None = None,
        agent_token: str | None = None,
        hosts: Iterable[str] | None = None,
    ) -> Access:
        """The access rules of a server that listens on ``host``. UsageError: SRV-6.

        Without ``operator_token`` on loopback, a random one. ``hosts``: further names that the Host header may give;
        beyond loopback any is allowed unless this is set.
        """
        named: frozenset[str] | None
        if is_loopback(host):
            named = frozenset({"localhost", "127.0.0.1", "[::1]", _bracketed(host), *map(_bracketed, hosts or ())})
        else:
            if operator_token is None or agent_token is None:
                raise UsageError(
                    f"{host} can be reached from other machines, so set both operator_token and agent_token, "
                    "or listen on 127.0.0.1 (SRV-6)"
                )
            named = None if hosts is None else frozenset(map(_bracketed, hosts))
        if operator_token is not None and operator_token == agent_token:
            raise UsageError(
                "operator_token and agent_token are the same, so that every agent is an operator; choose two"
            )
        token = secrets.token_urlsafe(32) if operator_token is None else operator_token
        return cls(operator_token=token, agent_token=agent_token, hosts=named)

    def link(self, url: str) -> str:
        """Where a browser logs in to the server at ``url``: the token stands behind a #, so that it is sent nowhere."""
        return f"{url.rstrip('/')}/login#token={quote(self.operator_token, safe='')}"

    def check_operator(self, headers: Headers) -> None:
        """Problem 401 unless exactly one Authorization header bears the operator token."""
        self._check(headers, (self.operator_token,), "the operator token")

    def check_agent(self, headers: Headers) -> None:
        """Problem 401 unless agents need no token, or the request bears theirs (or the operator's)."""
        if self.agent_token is not None:
            self._check(headers, (self.agent_token, self.operator_token), "the agent token")

    def check_origin(self, method: str, headers: Headers, *, changes: bool | None = None) -> None:
        """Problem 421 for a Host that is not this server's, 403 for a change that another site's page asked for.

        ``changes``: whether the request can change something, by its method if None.
        """
        host = single(headers, b"host")
        if self.hosts is not None and host:
            match = _AUTHORITY.match(host.lower())
            if match is None or match["host"] not in self.hosts:
                raise Problem(
                    421, "the Host header does not name this server; use the URL that it printed at its start"
                )
        if changes is None:
            changes = method not in _SAFE_METHODS
        if not changes or self.hosts is None:
            return
        origin = single(headers, b"origin")
        foreign = origin is not None and authority_of(origin) != (host or "").lower()
        if foreign or single(headers, b"sec-fetch-site") in ("cross-site", "same-site"):
            raise Problem(403, "a page of another site asked for this change, which is refused; ask without a browser")

    def _check(self, headers: Headers, tokens: tuple[str, ...], what: str) -> None:
        given = [value for name, value in headers if name.lower() == b"authorization"]
        challenge = 'Bearer realm="concorde-trio"'
        if not given:
            raise Problem(
                401, f"this needs {what}: send Authorization: Bearer TOKEN", headers={"www-authenticate": challenge}
            )
        scheme, _, token = given[0].partition(b" ")
        # Every token is compared in full, so that the time says nothing of which one or how much of it was right.
        right = [hmac.compare_digest(token.strip(), known.encode()) for known in tokens]
        if len(given) > 1 or scheme.lower() != b"bearer" or not any(right):
            raise Problem(
                401,
                f"the Authorization header does not bear {what}; expected exactly one, Bearer TOKEN",
                headers={"www-authenticate": f'{challenge}, error="invalid_token"'},
            )


def authority_of(origin: str) -> str | None:
    """The authority of an Origin header, lower case; None for ``null`` and for what is none."""
    try:
        parts = urlsplit(origin.lower())
    except ValueError:
        return None
    return parts.netloc if parts.scheme in ("http", "https") and parts.netloc else None


def single(headers: Headers, wanted: bytes) -> str | None:
    """The header's value, None when it is missing; several are joined, which then equals nothing."""
    values = [value.decode("latin-1") for name, value in headers if name.lower() == wanted]
    return ", ".join(values) if values else None


def _bracketed(host: str) -> str:
    bare = host.strip("[]").lower()
    return f"[{bare}]" if ":" in bare else bare
