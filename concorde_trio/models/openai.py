"""OpenAIModel: Chat Completions through the official SDK, of OpenAI or of any server that speaks it.

The law: one request, one stream, one connection; no retry, no timeout and no key in any message (``transport``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concorde_trio._sansio.model_events import ModelRequest
from concorde_trio.errors import UsageError
from concorde_trio.models.keys import PLACEHOLDER, Secrets, find_base_url, find_key, shown_url
from concorde_trio.models.openai_reply import ChatReply
from concorde_trio.models.openai_wire import chat_body
from concorde_trio.models.settings import body_with, check_model_name, check_options, check_prices, check_tokens
from concorde_trio.models.transport import Door
from concorde_trio.models.transport import http_client as own_http_client
from concorde_trio.models.wire import ToolNames
from concorde_trio.sessions.model import OnEvent

DEFAULT_URL = "https://api.openai.com/v1"


class OpenAIModel:
    """A model behind Chat Completions.

    ``name``: what the provider calls it. ``base_url``: of another server, up to and without ``/chat/completions`` (or
    OPENAI_BASE_URL). ``api_key``: or OPENAI_API_KEY; a server at another address may be given none.
    ``context_window``: tokens. ``max_output_tokens``: at most so many a reply. ``options``: more fields of the request
    (``temperature``, ``reasoning_effort``); None takes one out, such as ``{"stream_options": None}`` for a server that does
    not know it; ``extra_headers`` and ``extra_query`` go where they say. ``prices``: what a million tokens cost, input,
    output and input read from a cache. ``http_client``: an ``httpx2.AsyncClient`` in place of one that keeps no connection;
    its closing is yours. UsageError for what can never work, the extra ``openai`` not installed among it.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        context_window: int | None = None,
        max_output_tokens: int | None = None,
        options: Mapping[str, Any] | None = None,
        prices: Sequence[float] | None = None,
        http_client: Any = None,
    ) -> None:
        self._name = check_model_name(name)
        self._context_window = check_tokens(context_window, "context_window")
        self._prices = check_prices(prices)
        self._options = check_options(options or {})
        url = find_base_url(base_url, "OPENAI_BASE_URL", DEFAULT_URL)
        official = url.rstrip("/") == DEFAULT_URL
        key = find_key(api_key, "OPENAI_API_KEY", needed=official)
        self._shown_url = shown_url(url)
        self._fixed: dict[str, Any] = {
            "stream_options": {"include_usage": True},
            # OpenAI has renamed this; other servers have not.
            "max_completion_tokens" if official else "max_tokens": check_tokens(max_output_tokens, "max_output_tokens"),
        }
        try:
            import openai
        except ImportError:
            raise UsageError("OpenAIModel needs its library: pip install 'concorde-trio[openai]'") from None
        self._client = openai.AsyncOpenAI(
            api_key=key or PLACEHOLDER,
            base_url=url,
            max_retries=0,
            timeout=None,
            http_client=http_client or own_http_client(),
        )
        self._door = Door(
            f"{name} at {self._shown_url}",
            Secrets.of(url, key, headers=self._options.get("extra_headers")),
            openai.APIStatusError,
            openai.APIError,
        )

    def __repr__(self) -> str:
        return f"OpenAIModel({self._name!r}, base_url={self._shown_url!r})"

    @property
    def name(self) -> str:
        """What the provider calls it."""
        return self._name

    @property
    def context_window(self) -> int | None:
        """Tokens; None: not known."""
        return self._context_window

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        """See ``Model.stream``."""
        names = ToolNames(request.tools, request.messages)
        body = body_with({**chat_body(request, names, self._name), **self._fixed}, self._options)
        opening = self._client.chat.completions.with_streaming_response.create(
            model=self._name,
            messages=[],  # those in the body take their place; the SDK would walk through each of them
            stream=True,
            extra_body=body,
            extra_headers=self._options.get("extra_headers"),
            extra_query=self._options.get("extra_query"),
        )
        await self._door.play(opening, ChatReply(on_event, names, self._prices))
