"""Requests of a Client over HTTP: JSON both ways, server-sent events, every wait and every answer bounded.

The law: only the server at the given address is asked: no proxy, no redirect, no login that the environment knows of. What
went wrong leaves as an exception of this package, with the server's own words.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Self, TypeVar, cast
from urllib.parse import quote, urlsplit

import attrs
import httpx2
import trio

from concorde_trio.documents import ProblemDetails
from concorde_trio.errors import (
    RefusedId,
    RefusedRequest,
    RefusedState,
    RequestRefused,
    ServerGone,
    ServerSilent,
    UsageError,
)

T = TypeVar("T")

LARGEST_ANSWER = 256 * 1024 * 1024
"""Bytes of one answer that are read."""
CLOSING = 5.0
"""Seconds that closing the connections may take."""
BUFFERED = 1_000
"""Pieces that may have come already when a body is left."""
_HEADER = re.compile(rb"([^\x00-\x20\x7f]([^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?)?")
SILENCE = 30.0
"""Seconds without a byte after which a stream of events is given up; a living server says something every few."""

_REFUSED: Mapping[int, type[RequestRefused]] = {
    400: RefusedRequest,
    404: RefusedId,
    409: RefusedState,
    413: RefusedRequest,
    415: RefusedRequest,
    422: RefusedRequest,
}


@attrs.frozen(kw_only=True)
class ServerEvent:
    """One server-sent event. ``id``: of this or the last one that had one; ``data``: its JSON document, None if it has none."""

    name: str
    data: Any
    id: str = ""


class EventReader:
    """Server-sent events as they come: ``async for event in reader``. ServerGone if the stream breaks off."""

    def __init__(self, wire: Wire, events: AsyncGenerator[httpx2.ServerSentEvent]) -> None:
        self._wire = wire
        self._events = events

    def __aiter__(self) -> EventReader:
        """Itself."""
        return self

    async def __anext__(self) -> ServerEvent:
        """The next event; the end of the stream ends the iteration."""
        with self._wire.explained("GET", SILENCE):
            found = await anext(self._events)
        try:
            data = json.loads(found.data) if found.data else None
        except ValueError:
            raise self._wire.strange(f"an event of {self._wire.url} is not JSON") from None
        return ServerEvent(name=found.event, data=data, id=found.id)


class Wire:
    """Connections to one server. Entered once."""

    def __init__(self, url: str, token: str | None, timeout: float, headers: Mapping[str, str]) -> None:
        self._secure = _scheme(url) == "https"
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._headers = {"accept-encoding": "identity", "user-agent": "concorde-trio", **headers}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        _sendable(self._headers)
        self._http: httpx2.AsyncClient | None = None
        self._life = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Be ready to ask."""
        if self._http is not None:
            raise UsageError("a Client is entered once; make another one")
        self._http = httpx2.AsyncClient(
            headers=self._headers,
            timeout=self.timeout,
            trust_env=False,
            follow_redirects=False,
            verify=self._secure,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=5.0),
        )
        await self._life.enter_async_context(self._http)
        return self

    async def __aexit__(self, *error: object) -> None:
        """Close every connection."""
        with trio.move_on_after(CLOSING, shield=True):
            await self._life.aclose()

    async def ask(
        self,
        method: str,
        *segments: str,
        query: Mapping[str, object] | None = None,
        body: Any = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> tuple[int, Any]:
        """The status and the JSON document of an answer that is no error; what is None in ``query`` is left out."""
        content = None if body is None else _json(body)
        sent = {"accept": "application/json", **(headers or {})}
        if content is not None:
            sent["content-type"] = "application/json"
        with self.explained(method):
            async with self._stream(method, segments, query, sent, content) as response:
                data = await self._all(response)
        return response.status_code, self._document(response.status_code, data)

    @asynccontextmanager
    async def events(
        self,
        *segments: str,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str | bytes] | None = None,
    ) -> AsyncIterator[EventReader]:
        """A stream of server-sent events; while entered it is read."""
        sent = {"accept": "text/event-stream", **(headers or {})}
        async with AsyncExitStack() as stack:
            with self.explained("GET"):
                opening = self._stream(
                    "GET", segments, query, sent, None, timeout=httpx2.Timeout(self.timeout, read=SILENCE)
                )
                response = await stack.enter_async_context(opening)
                if response.status_code != 200:
                    self._document(max(response.status_code, 300), await self._all(response))
            events = httpx2.EventSource(response).__aiter__()
            assert isinstance(events, AsyncGenerator)
            await stack.enter_async_context(_leaving(events))
            yield EventReader(self, events)

    @asynccontextmanager
    async def _stream(
        self,
        method: str,
        segments: tuple[str, ...],
        query: Mapping[str, object] | None,
        headers: Mapping[str, str | bytes],
        content: bytes | None,
        **more: Any,
    ) -> AsyncIterator[httpx2.Response]:
        if self._http is None or self._http.is_closed:
            raise UsageError("a Client is used inside `async with Client(url) as client:`")
        if "" in segments:  # it would be the address of something else
            raise UsageError("a name or an id must have at least 1 character; this one is empty")
        asked = {name: str(value) for name, value in (query or {}).items() if value is not None}
        path = "".join(f"/{_segment(each)}" for each in segments)
        sent = _sendable(headers)
        async with self._http.stream(
            method, self.url + path, params=asked or None, headers=sent, content=content, **more
        ) as response:
            yield response

    async def _all(self, response: httpx2.Response) -> bytes:
        data = bytearray()
        async with _leaving(response.aiter_raw()) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > LARGEST_ANSWER:
                    raise self.strange(f"the answer of {self.url} is larger than {LARGEST_ANSWER:,} bytes")
        return bytes(data)

    def _document(self, status: int, data: bytes) -> Any:
        try:
            found = json.loads(data) if data.strip() else None
        except ValueError:
            found = None
            if status < 300:
                raise self.strange(f"the answer of {self.url} is not JSON; does a gateway listen there?") from None
        if status < 300:
            return found
        problem = cast("ProblemDetails", found) if isinstance(found, dict) else None
        reason = _reason(problem) or f"it answered with HTTP status {status}"
        kind = _REFUSED.get(status, RequestRefused)
        said = reason if kind is not RequestRefused else f"{self.url}: {reason}"
        raise kind(said, status=status, problem=problem)

    def strange(self, message: str) -> RequestRefused:
        """The exception for an answer that no server of ours gives."""
        return RequestRefused(message, status=200)

    @contextmanager
    def explained(self, method: str, seconds: float | None = None) -> Iterator[None]:
        """What the HTTP library raises inside leaves as ServerGone or ServerSilent. ``seconds``: how long was waited."""
        try:
            yield
        except httpx2.TimeoutException:
            raise ServerSilent(
                f"the server at {self.url} has not answered for {seconds or self.timeout:g} seconds"
            ) from None
        except httpx2.ConnectError as error:
            raise ServerGone(f"cannot reach the server at {self.url}: {_said(error)}", unheard=True) from None
        except (httpx2.TransportError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise ServerGone(f"the server at {self.url} went away: {_said(error)}", unheard=method == "GET") from None


@asynccontextmanager
async def _leaving(pieces: AsyncGenerator[T]) -> AsyncIterator[AsyncGenerator[T]]:
    """Read a body as far as is wanted.

    ``aclose`` would end the outermost of a chain of generators and leave those inside to the garbage collector, which Trio
    warns of. A read that is cancelled ends them all.
    """
    try:
        yield pieces
    finally:
        with trio.CancelScope(shield=True) as scope:
            scope.cancel()
            try:
                for _ in range(BUFFERED):
                    await anext(pieces)
            except (StopAsyncIteration, httpx2.TransportError, httpx2.StreamError):
                pass
        await pieces.aclose()  # noqa: ASYNC102 (by now it has ended, or waits for nothing)


def _scheme(url: str) -> str:
    """http or https. UsageError for what is no address of a server."""
    try:
        parts = urlsplit(url)
        bare = not (parts.query or parts.fragment) and (parts.port is None or parts.port > 0)
    except ValueError:
        raise UsageError(f"the address of a server is http://HOST:PORT, not {url!r:.200}") from None
    if parts.username is not None or parts.password is not None:
        raise UsageError("the address of a server has no login in it; give the token as token=...")
    if parts.scheme not in ("http", "https") or not parts.hostname or not bare:
        raise UsageError(f"the address of a server is http://HOST:PORT, not {url!r:.200}")
    return parts.scheme


def _json(body: Any) -> bytes:
    try:
        return json.dumps(body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"what is sent must be JSON: {error}") from None


def _sendable(headers: Mapping[str, str | bytes]) -> list[tuple[bytes, bytes]]:
    """The headers as bytes, text in UTF-8. UsageError, which says nothing of the value, for one that HTTP cannot carry."""
    found = []
    for name, text in headers.items():
        try:
            value = text if isinstance(text, bytes) else text.encode()
        except UnicodeEncodeError:
            value = b"\0"
        if not _HEADER.fullmatch(value):
            raise UsageError(f"the {name} header can have no control characters, and no spaces at its ends")
        found.append((name.encode(), value))
    return found


def _segment(text: str) -> str:
    # HTTP libraries resolve a segment of dots, encoded or not encoded by ``quote``.
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _reason(problem: Mapping[str, Any] | None) -> str | None:
    """What a problem document (RFC 9457) says to a person."""
    for name in ("detail", "title"):
        if problem is not None and isinstance(problem.get(name), str) and problem[name].strip():
            return str(problem[name])
    return None
