"""Keys: where they come from, and that none of them is ever in a message.

The law: a key goes into a request's headers and nowhere else. Whatever a provider sends back is scrubbed before anybody
sees it, for servers do echo headers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit, urlunsplit

from concorde_trio.errors import UsageError

PLACEHOLDER = "no-key"
"""What is sent to a server at another address that was given no key: most want none, and the SDKs send some."""
SCRUBBED = "[key]"

_SECRET_HEADER = re.compile("auth|key|token|secret|cookie", re.IGNORECASE)


def find_base_url(given: str | None, variable: str, default: str) -> str:
    """The address to send requests to: given, or of the environment, or the provider's own. UsageError if it is none."""
    url = given if given is not None else os.environ.get(variable, "").strip() or default
    if not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        source = "base_url" if given is not None else variable
        raise UsageError(f"{source} must be the address of a server, like {default!r}, not {url!r:.200}")
    return url


def find_key(given: str | None, variable: str, *, needed: bool) -> str | None:
    """The key: given, or of the environment; None if there is none and none is ``needed``. UsageError otherwise."""
    key = given if given is not None else os.environ.get(variable, "")
    if not isinstance(key, str):
        raise UsageError(f"api_key must be a string, not {type(key).__name__}; leave it out to take {variable}")
    key = key.strip()
    if not key.isascii() or not key.isprintable():
        source = "api_key" if given is not None else variable
        raise UsageError(f"{source} has characters that no key has (it is not shown here); copy it again")
    if not key and needed:
        raise UsageError(f"there is no API key: set {variable} in the environment, or give api_key=…")
    return key or None


def shown_url(url: str) -> str:
    """``url`` without a user name, a password or a query, for messages."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))


class Secrets:
    """The texts that no message may have."""

    __slots__ = ("_pattern",)

    def __init__(self, secrets: Iterable[str | None]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if secret:
                forms |= {secret, quote(secret, safe=""), quote_plus(secret), unquote(secret), repr(secret)[1:-1]}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    @classmethod
    def of(cls, base_url: str, *keys: str | None, headers: Mapping[str, str] | None = None) -> Secrets:
        """The keys, what a URL hides, and the values of headers that are named like secrets."""
        parts = urlsplit(base_url)
        hidden = [value for name, value in parse_qsl(parts.query) if _SECRET_HEADER.search(name)]
        # As they stand there too: an address is quoted by whoever made it, in a way of theirs.
        hidden += [
            value
            for name, _, value in (each.partition("=") for each in parts.query.split("&"))
            if _SECRET_HEADER.search(name)
        ]
        user = parts.username if parts.password is None else None  # a token, where there is no password
        secrets: list[str | None] = [*keys, parts.password, user, *hidden]
        for name, value in (headers or {}).items():
            if _SECRET_HEADER.search(name):
                secrets += [str(value), str(value).rpartition(" ")[2]]
        return cls(secrets)

    def scrub(self, text: str) -> str:
        """``text`` with ``[key]`` wherever a secret stands."""
        return self._pattern.sub(SCRUBBED, text) if self._pattern else text
