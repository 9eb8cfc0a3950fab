"""The people of the demo's household: they send their messages over HTTP, with the operator token, one after another.

Strangers are among them: who asks with a tag that is not their own, or with several, must be nobody to the server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import attrs
import trio

from concorde_trio.demo.errands import Message
from concorde_trio.errors import ConcordeError
from concorde_trio.server.attribution import TAG_HEADER

PATIENCE = 10.0
"""Seconds in which the server must answer."""


@attrs.frozen
class People:
    """All of them, at ``url`` with ``token``."""

    url: str
    token: str = attrs.field(repr=False)

    async def send(self, messages: Iterable[Message], sent: Callable[[Message, str], None]) -> None:
        """Send each message after its pause; ``sent`` is told the id of its signal."""
        for message in messages:
            await trio.sleep(message.pause)
            body = {"kind": message.kind, "payload": message.payload()}
            answer = await self.ask("POST", "/signals", body, self._as_operator)
            sent(message, answer["id"])

    async def say(self, session: str, text: str, *, id: str) -> None:
        """Say something to a session, whatever it is doing."""
        await self.ask(
            "POST", f"/sessions/{session}/input", {"text": text, "id": id, "sender": session}, self._as_operator
        )

    async def cancel(self, signal_id: str) -> None:
        """Ask for the end of a signal."""
        await self.ask("POST", f"/signals/{signal_id}/cancel", None, self._as_operator)

    async def signal(self, signal_id: str) -> dict[str, Any]:
        """What the server says of a signal, its runs with it."""
        found: dict[str, Any] = await self.ask("GET", f"/signals/{signal_id}", headers=self._as_operator)
        return found

    @property
    def _as_operator(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    async def pretend(self, tags: Sequence[str]) -> None:
        """Ask for the budget as several strangers: with tags of others that are live, twice, joined, and made up."""
        made_up = "never-given-to-anybody"
        for given in ([made_up], [""], *([tag, tag] for tag in tags), *([f"{tag}, {tag}"] for tag in tags)):
            await self.ask("GET", "/budget", tags=given)

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        tags: Sequence[str] = (),
    ) -> Any:
        """One request, one connection. ConcordeError when the answer is not a good one."""
        # A thread that is waited for ends in PATIENCE, whatever the server does.
        return await trio.to_thread.run_sync(self._ask, method, path, body, headers or {}, tags)

    def _ask(self, method: str, path: str, body: Any, headers: Mapping[str, str], tags: Sequence[str]) -> Any:
        parts = urlsplit(self.url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=PATIENCE)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.putrequest(method, path)
            for name, value in headers.items():
                connection.putheader(name, value)
            for tag in tags:
                connection.putheader(TAG_HEADER, tag)
            if data is not None:
                connection.putheader("content-type", "application/json")
                connection.putheader("content-length", str(len(data)))
            connection.endheaders(data)
            answer = connection.getresponse()
            found = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status >= 300:
            raise ConcordeError(f"{method} {path} was answered with {answer.status}: {found.get('detail', found)}")
        return found
