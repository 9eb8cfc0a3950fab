"""A running gateway asked by a command: ``concorde_trio.Client`` with what the endpoint file says.

The law: only the gateway that the endpoint file names is asked. ServerGone when nobody answers there, UnknownId, WrongState and
UsageError for what the server refused, Failed for the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import click

from concorde_trio.errors import ServerSilent
from concorde_trio.server.endpoint import Endpoint

if TYPE_CHECKING:
    from concorde_trio.client.client import Client

T = TypeVar("T")

PATIENCE = 15.0
"""Seconds in which the gateway must answer, or go on answering."""


def open_client(endpoint: Endpoint) -> Client:
    """A Client of this gateway, to be entered in a Trio program."""
    from concorde_trio.client.client import Client  # it and its HTTP library take a while to import

    parts = urlsplit(endpoint.url)
    if parts.scheme != "http" or not parts.hostname:
        raise click.ClickException(f"the endpoint file names {endpoint.url!r}; expected http://HOST:PORT.")
    return Client(endpoint.url, token=endpoint.token, timeout=PATIENCE)


def ask(endpoint: Endpoint, question: Callable[[Client], Awaitable[T]]) -> T:
    """Ask this gateway, in a Trio program of its own."""
    import trio

    async def asked() -> T:
        async with open_client(endpoint) as client:
            return await question(client)

    try:
        return trio.run(asked)
    except ServerSilent:
        raise click.ClickException(
            f"the worker at {endpoint.url} (process {endpoint.pid}) has not answered for {PATIENCE:.0f} seconds; --direct "
            "reads its database instead."
        ) from None
