"""One request at a time to a running gateway: JSON over HTTP with its operator token.

The law: only the gateway that the endpoint file names is asked. No proxy, no redirect, bounded answers. What went
wrong comes as an exception of this package: WorkerGone when nobody answers there, UnknownId, WrongState and
UsageError for what the server refused, Failed for the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, IncompleteRead
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import click

from concorde_trio.errors import ConcordeError, UnknownId, UsageError, WrongState
from concorde_trio.server.endpoint import Endpoint

PATIENCE = 15.0
"""Seconds in which the gateway must answer, or go on answering."""
_BOUND = 256 * 1024 * 1024


class WorkerGone(ConcordeError):
    """Nobody listens where the endpoint file says: the worker is starting, stopping or cut off from us.

    ``unheard`` when it has certainly not taken the request, so that it can be made in another way.
    """

    def __init__(self, message: str, *, unheard: bool) -> None:
        super().__init__(message)
        self.unheard = unheard


class Client:
    """Asks one gateway. Every request is a connection of its own."""

    def __init__(self, endpoint: Endpoint) -> None:
        """``endpoint`` is what ``read_endpoint`` found."""
        self.endpoint = endpoint
        parts = urlsplit(endpoint.url)
        if parts.scheme != "http" or not parts.hostname:
            raise click.ClickException(f"the endpoint file names {endpoint.url!r}; expected http://HOST:PORT.")
        self._host, self._port, self._prefix = parts.hostname, parts.port or 80, parts.path.rstrip("/")

    def get(self, *segments: str, query: Mapping[str, object] | None = None) -> Any:
        """The JSON document at a path; what is None in ``query`` is left out."""
        return self._ask("GET", segments, query=query or {})

    def post(self, *segments: str, body: Any = None, headers: Mapping[str, str | bytes] | None = None) -> Any:
        """Post a JSON body (none: an empty one) and give the JSON document that answers, None if it is empty."""
        return self._ask("POST", segments, body=body, headers=headers or {})

    def _ask(
        self,
        method: str,
        segments: tuple[str, ...],
        *,
        query: Mapping[str, object] | None = None,
        body: Any = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> Any:
        if "" in segments:  # it would be the address of something else
            raise UsageError("a name or an id must have at least 1 character; this one is empty")
        path = self._prefix + "".join("/" + quote(segment, safe="") for segment in segments)
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        if asked:
            path += "?" + urlencode(asked)
        sent: dict[str, str | bytes] = {
            "authorization": f"Bearer {self.endpoint.token}",
            "accept": "application/json",
            **(headers or {}),
        }
        data = None
        if method == "POST":
            data = b"" if body is None else json.dumps(body).encode()
            sent["content-type"] = "application/json"
        connection = HTTPConnection(self._host, self._port, timeout=PATIENCE)
        unheard = True
        try:
            connection.connect()
            unheard = method == "GET"
            connection.request(method, path, body=data, headers=sent)
            response = connection.getresponse()
            status, text = response.status, response.read(_BOUND)
            if response.length and len(text) < _BOUND:
                # A worker that was killed between head and body: reading a given amount does not tell of it.
                raise IncompleteRead(text, response.length)
        except TimeoutError:
            raise click.ClickException(
                f"the worker at {self.endpoint.url} (process {self.endpoint.pid}) has not answered for {PATIENCE:.0f} "
                "seconds; --direct reads its database instead."
            ) from None
        except (ConnectionError, HTTPException) as error:
            raise WorkerGone(
                f"the worker at {self.endpoint.url} went away: {error or type(error).__name__}", unheard=unheard
            ) from None
        except OSError as error:
            raise WorkerGone(
                f"cannot reach the worker at {self.endpoint.url}: {error.strerror or error}", unheard=unheard
            ) from None
        finally:
            connection.close()
        return read_answer(status, text, self.endpoint.url)


def read_answer(status: int, text: bytes, url: str) -> Any:
    """The JSON document of an answer; what the server refused is raised (see the module's law)."""
    try:
        found = json.loads(text) if text.strip() else None
    except ValueError:
        found = None
        if status < 300:
            raise click.ClickException(f"the answer of {url} is not JSON; does a gateway listen there?") from None
    if status < 300:
        return found
    reason = _reason(found) or f"it answered with HTTP status {status}"
    if status == 404:
        raise UnknownId(reason)
    if status == 409:
        raise WrongState(reason)
    if status in (400, 413, 415, 422):
        raise UsageError(reason)
    raise click.ClickException(f"{url}: {reason}")


def _reason(problem: object) -> str | None:
    """What a problem document (RFC 9457) says to a person."""
    if isinstance(problem, dict):
        for name in ("detail", "title"):
            if isinstance(problem.get(name), str) and problem[name].strip():
                return str(problem[name])
    return None
