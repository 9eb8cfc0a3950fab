"""One request through a provider's SDK: its bytes, its failures, its end.

The law: a request has a connection of its own, which is closed when the request is over, whatever way it ended. So
nothing is left open between requests, a dead connection is never found again, and a cancelled request is one that the
server sees go. Whatever went wrong leaves as a ModelError, scrubbed of keys, without the SDK's exception behind it (that
one holds the request and its headers).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

import attrs
import trio

from concorde_trio.errors import ModelError
from concorde_trio.models.keys import Secrets
from concorde_trio.models.logs import scrubbed_logs
from concorde_trio.models.sse import LIMIT, ServerSentEvent, SseDecoder, TooLong
from concorde_trio.records import storable_text

CLOSING = 5.0
"""Seconds that closing a connection may take."""

WORDS = 2_000
"""Characters of a provider's words that a message keeps."""

_BUFFERED = 1_000
"""Pieces that may have come already when a body is left."""

_HTTP_LIBRARIES = {"httpx2", "httpcore2", "httpx", "httpcore", "h11", "h2", "ssl"}


class StreamReply(Protocol):
    """What makes events of one answer. Raises ModelError for an error that the answer tells of."""

    def event(self, event: ServerSentEvent, /) -> bool:
        """The next event; whether it was the last one."""
        ...

    def whole(self, document: Any, /) -> None:
        """The answer came as one JSON document instead of a stream."""
        ...

    def ended(self) -> bool:
        """Nothing more comes; whether the provider had said that the reply is complete."""
        ...


@attrs.frozen
class Door:
    """The way to one provider. ``what``: the model and its address, for messages; ``status_error``, ``sdk_error``: its
    SDK's exceptions, for an answer with an error's status, and of all kinds."""

    what: str
    secrets: Secrets
    status_error: type[Exception]
    sdk_error: type[Exception]

    async def play(self, opening: Any, reply: StreamReply) -> None:
        """Send the request that ``opening`` (the SDK's async context manager) stands for, and feed what comes."""
        try:
            with scrubbed_logs(self.secrets):
                await self._play(opening, reply)
            return
        except Exception as error:
            failure = self._failure(error)
            if failure is None:
                raise
        raise failure

    async def _play(self, opening: Any, reply: StreamReply) -> None:
        response = await opening.__aenter__()
        pieces = response.http_response.aiter_bytes()
        try:
            kind = str(response.http_response.headers.get("content-type", "")).partition(";")[0].strip().lower()
            if kind.endswith("json"):
                reply.whole(_document(await _all(pieces)))
                return
            if await self._events(pieces, reply):
                return
            if reply.ended():
                return
            if kind not in ("", "text/event-stream"):
                raise ModelError(f"it answered with {kind}, not with a stream of events; is the base URL right?")
            raise ModelError("the reply ended before it was complete", connection=True)
        finally:
            with trio.move_on_after(CLOSING, shield=True):
                await _leave(pieces)
                await response.close()

    async def _events(self, pieces: Any, reply: StreamReply) -> bool:
        decoder = SseDecoder()
        try:
            async for piece in pieces:
                for event in decoder.feed(piece):
                    if reply.event(event):
                        return True
        except TooLong:
            raise ModelError(f"it sent an event of more than {LIMIT:,} bytes") from None
        except Exception as error:
            # A connection that breaks after the provider's last word breaks nothing.
            if not _is_connection(error) or not reply.ended():
                raise
            return True
        return False

    def _failure(self, error: Exception) -> ModelError | None:
        if isinstance(error, ModelError):
            return self._error(
                str(error), status=error.status, retry_after=error.retry_after, connection=error.connection
            )
        if isinstance(error, self.status_error):
            return self._status(error)
        if isinstance(error, self.sdk_error):
            cause = error.__cause__
            if cause is not None and _is_connection(cause):
                return self._error(f"the connection failed: {_words_of(cause)}", connection=True)
            return self._error(_words_of(error))
        if _is_connection(error):
            return self._error(f"the connection broke: {_words_of(error)}", connection=True)
        return None

    def _status(self, error: Any) -> ModelError:
        headers = error.response.headers
        status: int = error.status_code
        words = provider_words(error.body) or provider_words(error.response.text)
        if 300 <= status < 400:
            words = f"it sends requests on to {headers.get('location', 'nowhere')}; give that as the base URL"
        retry_after = headers.get("retry-after")
        return self._error(
            f"status {status}: {words or 'the answer has no words'}",
            status=status,
            retry_after=None if retry_after is None else str(retry_after),
        )

    def _error(
        self, words: str, *, status: int | None = None, retry_after: str | None = None, connection: bool = False
    ) -> ModelError:
        scrub = self.secrets.scrub
        return ModelError(
            f"{self.what}: {storable_text(scrub(words))[:WORDS]}",
            status=status,
            retry_after=None if retry_after is None else scrub(retry_after)[:200],
            connection=connection,
        )


def http_client() -> Any:
    """An HTTP client that keeps no connection, waits as long as it is let, and sends a key to no other address."""
    import httpx2

    return httpx2.AsyncClient(
        timeout=None,
        follow_redirects=False,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
        event_hooks={"request": [_watch]},
    )


async def _watch(request: Any) -> None:
    request.extensions = {**request.extensions, "trace": _Handshake().traced}


class _Handshake:
    """Closes the connection of a TLS handshake that is cancelled; the HTTP library forgets it there."""

    def __init__(self) -> None:
        self._stream: Any = None

    async def traced(self, name: str, info: Mapping[str, Any]) -> None:
        """A step of the HTTP library: begun, complete or failed."""
        if name.endswith(".connect_tcp.complete"):
            self._stream = info["return_value"]
        elif name.endswith(".start_tls.failed") and self._stream is not None:
            with trio.move_on_after(CLOSING, shield=True):
                await self._stream.aclose()


def provider_words(body: object, deep: int = 5) -> str:
    """What an error body says, for a person."""
    if isinstance(body, str):
        return body.strip()
    if isinstance(body, dict) and deep:
        for key in ("message", "detail", "error", "msg"):
            words = provider_words(body.get(key), deep - 1)
            if words:
                return words
    return json.dumps(body, ensure_ascii=False, default=str) if body else ""


def shown(text: str) -> str:
    """What came, for a message: cut only where nothing of it is shown, so that no part of a key outlives the scrubbing."""
    return repr(text[: 50 * WORDS])


def loads(text: str) -> dict[str, Any]:
    """A JSON object of a stream; ModelError if it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelError(f"it sent an event that is no JSON: {shown(text)}") from None
    if not isinstance(value, dict):
        raise ModelError(f"it sent an event that is no JSON object: {shown(text)}")
    return value


async def _leave(pieces: Any) -> None:
    """End the reading of a body, wherever it stands.

    ``aclose`` would end the outermost of a chain of generators and leave those inside to the garbage collector, which Trio
    warns of. A read that is cancelled ends them all, and closes the connection.
    """
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            for _ in range(_BUFFERED):
                await anext(pieces)
        except StopAsyncIteration:
            pass
        except Exception as error:
            if not _is_connection(error):
                raise
    await pieces.aclose()


async def _all(pieces: Any) -> str:
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > LIMIT:
            raise ModelError(f"it sent an answer of more than {LIMIT:,} bytes")
    return body.decode("utf-8", "replace")


def _document(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelError(f"it answered with something that is no JSON: {shown(text)}") from None
    if not isinstance(value, dict):
        raise ModelError(f"it answered with JSON that is no reply: {shown(text)}")
    return value


def _is_connection(error: BaseException) -> bool:
    return type(error).__module__.partition(".")[0] in _HTTP_LIBRARIES or isinstance(error, OSError)


def _words_of(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__
