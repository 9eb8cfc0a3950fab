"""AnthropicModel: the Messages API through the official SDK.

The law: one request, one stream, one connection; no retry, no timeout and no key in any message (``transport``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from concorde_trio._sansio.model_events import ModelRequest
from concorde_trio.errors import UsageError
from concorde_trio.models.anthropic_reply import MessagesReply
from concorde_trio.models.anthropic_wire import messages_body
from concorde_trio.models.keys import PLACEHOLDER, Secrets, find_base_url, find_key, shown_url
from concorde_trio.models.settings import body_with, check_model_name, check_options, check_prices, check_tokens
from concorde_trio.models.transport import Door
from concorde_trio.models.transport import http_client as own_http_client
from concorde_trio.models.wire import ToolNames
from concorde_trio.sessions.model import OnEvent

DEFAULT_URL = "https://api.anthropic.com"
OUTPUT_TOKENS = 8_192
"""At most so many tokens a reply unless ``max_output_tokens`` says otherwise; the API wants to be told a number."""


class AnthropicModel:
    """A model behind the Messages API.

    ``name``: what the provider calls it. ``base_url``: of another server, up to and without ``/v1/messages`` (or
    ANTHROPIC_BASE_URL). ``api_key``: or ANTHROPIC_API_KEY; a server at another address may be given none.
    ``context_window``: tokens. ``max_output_tokens``: at most so many a reply. ``options``: more fields of the request
    (``temperature``, ``thinking``); None takes one out; ``extra_headers`` and ``extra_query`` go where they say.
    ``prompt_caching``: mark instructions and conversation, so that the next request reads them from the provider's cache.
    ``prices``: what a million tokens cost, input, output and input read from the cache (writing it counts 1.25 times).
    ``http_client``: an ``httpx2.AsyncClient`` in place of one that keeps no connection; its closing is yours. UsageError for
    what can never work, the extra ``anthropic`` not installed among it.
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
        prompt_caching: bool = True,
        prices: Sequence[float] | None = None,
        http_client: Any = None,
    ) -> None:
        self._name = check_model_name(name)
        self._context_window = check_tokens(context_window, "context_window")
        self._max_tokens = check_tokens(max_output_tokens, "max_output_tokens") or OUTPUT_TOKENS
        self._prices = check_prices(prices)
        self._options = check_options(options or {})
        self._cache = bool(prompt_caching)
        url = find_base_url(base_url, "ANTHROPIC_BASE_URL", DEFAULT_URL)
        key = find_key(api_key, "ANTHROPIC_API_KEY", needed=url.rstrip("/") == DEFAULT_URL)
        self._shown_url = shown_url(url)
        try:
            import anthropic
        except ImportError:
            raise UsageError("AnthropicModel needs its library: pip install 'concorde-trio[anthropic]'") from None
        self._client = anthropic.AsyncAnthropic(
            api_key=key or PLACEHOLDER,
            base_url=url,
            max_retries=0,
            timeout=None,
            http_client=http_client or own_http_client(),
        )
        self._door = Door(
            f"{name} at {self._shown_url}",
            Secrets.of(url, key, headers=self._options.get("extra_headers")),
            anthropic.APIStatusError,
            anthropic.APIError,
        )

    def __repr__(self) -> str:
        return f"AnthropicModel({self._name!r}, base_url={self._shown_url!r})"

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
        body = body_with(messages_body(request, names, self._name, cache=self._cache), self._options)
        opening = self._client.messages.with_streaming_response.create(
            model=self._name,
            max_tokens=body.pop("max_tokens", self._max_tokens),
            messages=[],  # those in the body take their place; the SDK would walk through each of them
            stream=True,
            extra_body=body,
            extra_headers=self._options.get("extra_headers"),
            extra_query=self._options.get("extra_query"),
        )
        await self._door.play(opening, MessagesReply(on_event, names, self._prices))
