"""The address a server listens on: had, or refused in one sentence."""

from __future__ import annotations

import math
import os
import socket

import pytest
from quart_trio import QuartTrio

from concorde_trio.errors import CannotServe
from concorde_trio.server.serving import listen, serve, url_of

pytestmark = pytest.mark.slow


async def test_a_port_in_use_is_one_clear_error() -> None:
    """SRV-1: no group, no traceback of a library: the address and what to do."""
    async with await listen("127.0.0.1", 0) as listener:
        port = listener.socket.getsockname()[1]
        app = QuartTrio("theirs")
        app.before_serving(lambda: pytest.fail("the app was started without an address"))
        with pytest.raises(CannotServe, match=rf"127\.0\.0\.1:{port}: the port is in use") as caught:
            await serve(app, port=port)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("", 0, "empty"),
        ("127.0.0.1", 70_000, "0 .any. to 65535"),
        ("203.0.113.1", 0, "203.0.113.1:0"),
        ("a b", 0, "a b"),
    ],
)
async def test_an_address_that_cannot_be_had_is_one_clear_error(host: str, port: int, said: str) -> None:
    """SRV-1: with the address in it."""
    with pytest.raises(CannotServe, match=said):
        await listen(host, port)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:"),
        ("localhost", "http://127.0.0.1:"),
        ("0.0.0.0", "http://127.0.0.1:"),
        ("::1", "http://[::1]:"),
        ("[::1]", "http://[::1]:"),
        ("::", "http://[::1]:"),
    ],
)
async def test_the_url_is_one_that_programs_on_this_machine_can_use(host: str, url: str) -> None:
    """SRV-1: whatever the server listens on."""
    if ":" in host and not socket.has_ipv6:
        pytest.fail("this machine has no IPv6")
    async with await listen(host, 0) as listener:
        found = url_of(listener)
        assert found.startswith(url)
        assert math.isfinite(float(found.rpartition(":")[2]))


async def test_the_listening_socket_is_for_this_process_and_for_living_peers() -> None:
    """SRV-1: programs that a run starts do not keep the port; the system gives up a peer that acknowledges nothing."""
    async with await listen("127.0.0.1", 0) as listener:
        assert not os.get_inheritable(listener.socket.fileno())
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert listener.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
