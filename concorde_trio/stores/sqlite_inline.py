"""The writer of a store that was asked to stay in the Trio thread: the same works, no thread, for virtual clocks.

The law: a commit is one synchronous step of the loop, so a cancellation comes before it or after it. It does not look
for other processes' commits, since a clock that jumps would jump from look to look; a worker's sweep finds them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from concorde_trio.errors import TransactionOver
from concorde_trio.stores.hold import Call, over_message
from concorde_trio.stores.pauses import pauses
from concorde_trio.stores.sqlite_write_session import WriteSession
from concorde_trio.stores.works import Work, wakes


class InlineHold:
    """The writer, held by a transaction of the user's."""

    def __init__(self, writer: InlineWriter, time_limit: float) -> None:
        self._writer = writer
        self._wakes = False
        self.time_limit = time_limit
        self.over = False

    def wake_on_commit(self) -> None:
        """It has added what a worker waits for."""
        self._wakes = True

    async def call(self, call: Call) -> Any:
        """Run ``call`` on the connection, inside the transaction."""
        await trio.lowlevel.checkpoint()
        self._check()
        connection = self._writer.session.connection
        try:
            return call(connection)
        finally:
            if not connection.in_transaction:
                self._finish(self._writer.session.roll_back)

    async def end(self, *, commit: bool) -> None:
        """Commit or roll back; it is over then."""
        self._check()
        session = self._writer.session
        self._finish(session.commit if commit else session.roll_back)
        if commit and self._wakes:
            self._writer.wake()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def _check(self) -> None:
        if self.over:
            raise TransactionOver(over_message(self.time_limit))

    def _finish(self, finish: Callable[[], None]) -> None:
        self.over = True
        try:
            finish()
        finally:
            self._writer.turn.release()


class InlineWriter:
    """Writes in the Trio thread. ``wake`` is called after commits that a worker waits for."""

    def __init__(self, session: WriteSession, patience: float, wake: Callable[[], None]) -> None:
        self.session = session
        self.turn = trio.Semaphore(1, max_value=1)
        self.wake = wake
        self._patience = patience

    async def open(self) -> None:
        """Bring the schema up to date; a StoreError if the database cannot be used."""
        await self._until(self.session.try_open, trio.current_time(), self._patience)

    async def write(self, work: Work, patience: float) -> Any:
        """What became of the work."""
        async with self.turn:
            since = trio.current_time()
            while True:
                await self._until(self.session.try_begin, since, patience)
                results = self.session.commit_works([work])
                if results is not None:
                    break
        if wakes(work):
            self.wake()
        return results[0].unwrap()

    async def begin(self, time_limit: float, patience: float) -> InlineHold:
        """A transaction of the user's, begun; others wait until it is over."""
        await self.turn.acquire()
        try:
            await self._until(self.session.try_begin, trio.current_time(), patience)
        except BaseException:
            self.turn.release()
            raise
        return InlineHold(self, time_limit)

    def watch(self, watched: bool) -> None:
        """Nothing: see the law."""

    async def close(self) -> None:
        """Close its connection."""
        self.session.close()
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def _until(self, attempt: Callable[[], bool], since: float, patience: float) -> None:
        for pause in pauses():
            try:
                if attempt():
                    return
                if trio.current_time() > since + patience:
                    raise self.session.busy(patience)
                await trio.sleep(pause)
            except BaseException:
                self.session.leave()
                raise
