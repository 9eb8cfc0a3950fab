"""That the suite of model clients sees what is wrong with one: clients that are wrong in one thing each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import trio

from concorde_trio import OpenAIModel
from concorde_trio._sansio.model_events import (
    CallDelta,
    ModelEvent,
    ModelRequest,
    Ping,
    ReplyEnd,
    TextDelta,
    UsageReport,
)
from concorde_trio.errors import ModelError
from concorde_trio.sessions.model import OnEvent
from concorde_trio.testing import OpenAIDialect, check_model, model_checks
from concorde_trio.testing.model_checks import stopping
from concorde_trio.testing.model_checks.asking import KEY

pytestmark = pytest.mark.slow


class Wrong:
    """A good client, with one thing changed."""

    def __init__(self, base_url: str, key: str) -> None:
        self.good: Any = OpenAIModel("m", base_url=base_url, api_key=key)
        self.name, self.context_window = "m", None

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        await self.good.stream(request, lambda event: [on_event(each) for each in self.change(event)])

    def change(self, event: ModelEvent) -> list[ModelEvent]:
        return [event]


class Deaf(Wrong):
    def change(self, event: ModelEvent) -> list[ModelEvent]:
        return [] if isinstance(event, Ping) else [event]


class Lively(Wrong):
    def change(self, event: ModelEvent) -> list[ModelEvent]:
        return [TextDelta("."), event] if isinstance(event, Ping) else [event]


class Forgetful(Wrong):
    def change(self, event: ModelEvent) -> list[ModelEvent]:
        return [] if isinstance(event, UsageReport) else [event]


class Clipping(Wrong):
    def change(self, event: ModelEvent) -> list[ModelEvent]:
        return [CallDelta(event.index, event.arguments.strip("}"))] if isinstance(event, CallDelta) else [event]


class Blind(Wrong):
    def change(self, event: ModelEvent) -> list[ModelEvent]:
        return [ReplyEnd()] if isinstance(event, ReplyEnd) else [event]


class Hopeful(Wrong):
    """Takes a connection's end for the reply's."""

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        try:
            await super().stream(request, on_event)
        except ModelError as error:
            if not error.connection:
                raise
            on_event(ReplyEnd())


class Trying(Wrong):
    """Tries again by itself."""

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        try:
            await super().stream(request, on_event)
        except ModelError:
            await super().stream(request, on_event)


class Raw(Wrong):
    """Raises what its library raises."""

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        try:
            await super().stream(request, on_event)
        except ModelError as error:
            raise ConnectionError(str(error)) from error


class Telling(Wrong):
    """Shows its key."""

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        try:
            await super().stream(request, on_event)
        except ModelError as error:
            raise ModelError(f"{error} (with {KEY})", status=error.status, connection=error.connection) from None


class Swallowing(Wrong):
    """Takes its cancellation for an end."""

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        try:
            await super().stream(request, on_event)
        except trio.Cancelled:
            pass


class Leaving(Wrong):
    """Leaves its connection open when it is cancelled."""

    left: ClassVar[list[trio.SocketStream]] = []

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        host, _, port = str(self.good._client.base_url.netloc.decode()).partition(":")
        self.left.append(await trio.open_tcp_stream(host, int(port)))
        await self.left[-1].send_all(b"POST / HTTP/1.1\r\n\r\n")
        await trio.sleep_forever()


class OneAtATime(Wrong):
    """Has one reply for all of its requests."""

    heard: OnEvent | None = None

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        self.heard = on_event
        await self.good.stream(request, lambda event: self.heard and self.heard(event))


@pytest.mark.parametrize(
    ("make", "check"),
    [
        (Deaf, "pings_and_usage_are_told_as_such"),
        (Lively, "pings_and_usage_are_told_as_such"),
        (Forgetful, "usage_counts_all_input_and_says_what_was_cached"),
        (Clipping, "calls_keep_their_order_ids_names_and_arguments"),
        (Blind, "every_reason_to_stop_comes_out"),
        (Hopeful, "no_connection_and_no_answer_are_told_apart_from_refusals"),
        (Hopeful, "a_reply_that_is_cut_at_any_byte_is_no_reply"),
        (Trying, "a_status_is_told_in_the_providers_words"),
        (Raw, "a_status_is_told_in_the_providers_words"),
        (Telling, "no_key_is_ever_in_a_message"),
        (Swallowing, "a_stalled_request_ends_when_it_is_cancelled"),
        (OneAtATime, "requests_at_the_same_time_do_not_mix"),
    ],
)
async def test_a_client_that_is_wrong_is_found(make: Callable[[str, str], Wrong], check: str) -> None:
    """SES-2, SES-11, SES-13, LSE-3: each by the check that is there for it."""
    with pytest.RaisesGroup(AssertionError, flatten_subgroups=True, allow_unwrapped=True):
        await model_checks[check](make, OpenAIDialect())


async def test_a_client_that_keeps_its_connection_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """F-08: nobody would wait for it as long as the check does by itself."""
    monkeypatch.setattr(stopping, "HOLDS", 0.1)
    try:
        with pytest.RaisesGroup(AssertionError, flatten_subgroups=True, allow_unwrapped=True):
            await model_checks["a_stalled_request_ends_when_it_is_cancelled"](Leaving, OpenAIDialect())
    finally:
        for stream in Leaving.left:
            await stream.aclose()
        Leaving.left.clear()


async def test_the_suite_as_one_call_names_what_failed() -> None:
    """For whoever has no pytest."""
    with pytest.RaisesGroup(AssertionError, flatten_subgroups=True, allow_unwrapped=True) as caught:
        await check_model(Clipping, OpenAIDialect())
    assert "while checking: a stream may come byte by byte" in caught.value.__notes__
