"""Lists that come in pages, as async iterators of what is in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

ItemT = TypeVar("ItemT")


class Pages(Generic[ItemT]):
    """``async for item in client.signals()``: every item, asked for page by page as they are needed.

    ``await first(n)`` gives a list of at most ``n`` of those that are left. ``cursor``: where the page after the last one that
    was asked for begins, None at the end.
    """

    def __init__(
        self, ask: Callable[[int, Any], Awaitable[Any]], name: str, following: str, *, start: Any = None, size: int
    ) -> None:
        """``ask(limit, cursor)`` gives a page, which has items under ``name`` and the next cursor under ``following``."""
        self._ask = ask
        self._name = name
        self._following = following
        self.cursor = start
        self._size = size
        self._items: deque[ItemT] = deque()
        self._over = False

    def __aiter__(self) -> Pages[ItemT]:
        """Itself."""
        return self

    async def __anext__(self) -> ItemT:
        """The next item."""
        while not self._items:
            if self._over:
                raise StopAsyncIteration
            await self._more(self._size)
        return self._items.popleft()

    async def first(self, count: int) -> list[ItemT]:
        """At most so many of what is left."""
        while len(self._items) < count and not self._over:
            await self._more(min(self._size, count - len(self._items)))
        return [self._items.popleft() for _ in range(min(count, len(self._items)))]

    async def _more(self, limit: int) -> None:
        page = await self._ask(limit, self.cursor)
        items = page[self._name]
        self._items.extend(items if self._following == "next" else reversed(items))
        self.cursor = page[self._following]
        self._over = self.cursor is None
