"""Stalls before there is a connection to speak on, cancelled by the caller: DNS, connect, TLS (F-02)."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio import AnthropicModel, OpenAIModel
from concorde_trio.testing.model_checks.asking import Heard, hear

pytestmark = pytest.mark.slow

KINDS = [OpenAIModel, AnthropicModel]


class SilentResolver(trio.abc.HostnameResolver):
    """A name service that never answers."""

    def __init__(self) -> None:
        self.asked = trio.Event()

    async def getaddrinfo(self, *arguments: Any, **more: Any) -> Any:
        self.asked.set()
        await trio.sleep_forever()

    async def getnameinfo(self, *arguments: Any) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("kind", KINDS)
async def test_a_name_service_that_never_answers_is_given_up_when_cancelled(kind: Any) -> None:
    """SES-3, F-02: in DNS."""
    resolver = SilentResolver()
    trio.socket.set_custom_hostname_resolver(resolver)
    heard = Heard()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hear, kind("m", base_url="http://models.example", api_key="sk-1"), None, heard)
        await resolver.asked.wait()
        nursery.cancel_scope.cancel()
    assert heard == Heard()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_connection_that_is_never_accepted_is_given_up_when_cancelled(kind: Any) -> None:
    """SES-3, F-02: in connect. A listener whose queue is full answers no more."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for each in fillers:
            each.setblocking(False)
            each.connect_ex(address)
        heard = Heard()
        async with trio.open_nursery() as nursery:
            url = f"http://127.0.0.1:{address[1]}"
            nursery.start_soon(hear, kind("m", base_url=url, api_key="sk-1"), None, heard)
            await trio.testing.wait_all_tasks_blocked(0.05)
            nursery.cancel_scope.cancel()
        for each in fillers:
            each.close()
    assert heard == Heard()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_handshake_that_is_never_answered_is_given_up_when_cancelled(kind: Any) -> None:
    """SES-3, F-02, F-08: in TLS; the server sees the client go."""
    greeted, gone = trio.Event(), trio.Event()

    async def silent(stream: trio.SocketStream) -> None:
        async with stream:
            assert await stream.receive_some()
            greeted.set()
            while await stream.receive_some():
                pass
            gone.set()

    heard = Heard()
    async with trio.open_nursery() as servers:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        servers.start_soon(trio.serve_listeners, silent, [listener])
        url = f"https://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(hear, kind("m", base_url=url, api_key="sk-1"), None, heard)
            await greeted.wait()
            nursery.cancel_scope.cancel()
        await gone.wait()
        servers.cancel_scope.cancel()
    assert heard == Heard()


@pytest.mark.parametrize("kind", KINDS)
async def test_no_time_of_its_own_ends_a_request(kind: Any) -> None:
    """SES-11: a client's own timeouts are off; whoever calls decides."""
    client = kind("m", base_url="http://127.0.0.1:9", api_key="sk-1")._client
    assert client.timeout is None
    assert client.max_retries == 0
    assert client._client.timeout.as_dict() == dict.fromkeys(("connect", "read", "write", "pool"))
