"""The end of ``serve`` when a cancelling stop does not end it: something in the program ignores its cancellation (STP-3).

The law: a nursery is not left while a task in it goes on, so no code in the event loop can end such a program; a thread can.
It is as a kill would be: what is committed stays, and the next start settles what was cut.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concorde_trio.gateway import Gateway

BESIDES = 8.0
"""Seconds that a stop may take besides twice ``stop_grace``: for runs and for what closes; the commit and the server."""
LOOK = 0.25


class HardStop(threading.Thread):
    """Watches one gateway's stop, from before it runs until ``over``."""

    def __init__(self, gateway: Gateway, logger: logging.Logger) -> None:
        super().__init__(name="concorde-trio hard stop", daemon=True)
        self._worker = gateway.worker
        self._logger = logger
        self._over = threading.Event()

    def over(self) -> None:
        """The gateway has ended by itself."""
        self._over.set()

    def run(self) -> None:
        """Wait for a cancelling stop, and then for its end, as long as that may take."""
        while self._worker.stop_mode != "cancel":
            if self._over.wait(LOOK):
                return
        bound = 2 * self._worker.options.stop_grace + BESIDES
        if not self._over.wait(bound):
            self._logger.error(
                "the cancelling stop is not over after %g s, because something ignores its cancellation; this program ends "
                "now, and the next start settles what was cut",
                bound,
            )
            logging.shutdown()
            os._exit(1)
