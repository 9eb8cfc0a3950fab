"""A list of tools without those that fit no protocol: the client library refuses a list as a whole.

The law: a tool is left out for its own fault alone. Where the rest of the answer is wrong too, it is left as it came, for the
library to say what it thinks of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

from mcp_types.jsonrpc import JSONRPCResponse
from mcp_types.methods import validate_server_result


@asynccontextmanager
async def sieved(
    streams: AbstractAsyncContextManager[tuple[Any, Any]],
    version: Callable[[], str | None],
    left_out: Callable[[str, str], None],
) -> AsyncIterator[tuple[Any, Any]]:
    """The streams, with every list of tools that comes in sieved.

    ``version``: the protocol that was agreed on, None before. ``left_out(name, why)`` hears of each tool that is left out.
    """
    async with streams as (incoming, outgoing):
        yield _Sieve(incoming, version, left_out), outgoing


class _Sieve:
    """Stands before a stream of messages."""

    def __init__(self, stream: Any, version: Callable[[], str | None], left_out: Callable[[str, str], None]) -> None:
        self._stream = stream
        self._version = version
        self._left_out = left_out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    def __aexit__(self, *raised: object) -> Awaitable[Any]:
        leaving: Awaitable[Any] = self._stream.__aexit__(*raised)
        return leaving

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return self._seen(await anext(self._stream))

    async def receive(self) -> Any:
        """The next message."""
        return self._seen(await self._stream.receive())

    def _seen(self, came: Any) -> Any:
        message, version = getattr(came, "message", None), self._version()
        if (
            version is not None
            and isinstance(message, JSONRPCResponse)
            and isinstance(message.result.get("tools"), list)
        ):
            self._sieve(message.result, version)
        return came

    def _sieve(self, result: dict[str, Any], version: str) -> None:
        if _fault(version, result) is None or _fault(version, {**result, "tools": []}) is not None:
            return
        kept = []
        for tool in result["tools"]:
            fault = _fault(version, {**result, "tools": [tool]})
            if fault is None:
                kept.append(tool)
            else:
                name = tool.get("name") if isinstance(tool, dict) else tool
                self._left_out(f"{name!s:.80}", fault)
        result["tools"] = kept


def _fault(version: str, result: dict[str, Any]) -> str | None:
    try:
        validate_server_result("tools/list", version, result)
    except KeyError:  # a version without such lists, which the library does not check
        return None
    except ValueError as error:  # pydantic's errors are some
        return " ".join(str(error).split())[:500]
    return None
