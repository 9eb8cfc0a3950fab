"""An app's own start and stop: before_serving, while_serving and after_serving, in one task (ASGI's lifespan).

The law: what was started is stopped, however the server ends, in bounded time; and a failure is heard of. A task in
``app.nursery`` that raises takes the lifespan with it, which Hypercorn would only log: here the server stops with it,
after_serving included.
"""

from __future__ import annotations

import logging
from typing import Any

import trio
from quart_trio import QuartTrio

from concorde_trio.errors import CannotServe
from concorde_trio.server.asgi import Message

logger = logging.getLogger("concorde_trio.server")


class Lifespan:
    """One start and stop of an app. ``stop_time``: seconds for after_serving and what the app left running."""

    def __init__(self, app: QuartTrio, *, stop_time: float = 10.0) -> None:
        self._app = app
        self._stop_time = stop_time
        self._into, self._out = trio.open_memory_channel[Message](2)
        # Ended by ``stop`` alone: a cancelled server still stops its app.
        self._life = trio.CancelScope(shield=True)
        self._ended = trio.Event()
        self._failure: str | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Start the app, tell ``task_status``, and return once ``stop`` has stopped it. CannotServe: it did not start.

        What ends the app's own tasks with an exception is raised.
        """
        started = False

        async def take(message: Any) -> None:
            nonlocal started
            match message["type"]:
                case "lifespan.startup.complete":
                    started = True
                    task_status.started()
                case "lifespan.startup.failed":
                    self._failure = message["message"]
                    self._life.cancel()
                case "lifespan.shutdown.failed":
                    logger.error("an after_serving function of the app failed: %s", message["message"])

        self._into.send_nowait({"type": "lifespan.startup"})
        scope: Any = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": {}}
        try:
            with self._life:
                await self._app(scope, self._out.receive, take)  # type: ignore[arg-type]
        except Exception:
            if started:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + self._stop_time):
                    await self._app.shutdown()
            raise
        finally:
            self._ended.set()
        if self._failure is not None:
            raise CannotServe(f"the app did not start, a before_serving function raised: {self._failure}")

    async def stop(self) -> None:
        """Stop the app, in bounded time, even while being cancelled."""
        self._into.send_nowait({"type": "lifespan.shutdown"})
        with trio.CancelScope(shield=True, deadline=trio.current_time() + self._stop_time) as patience:
            await self._ended.wait()
        if patience.cancelled_caught:
            logger.error("the app did not stop within %g s: its after_serving functions or tasks hang", self._stop_time)
            self._life.cancel()
