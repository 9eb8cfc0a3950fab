"""One run's conversation with a pi: bytes in, commands out, and the bounds in time that a turn is held to.

The law: a turn that doesn't move is given up (LSE-3), and none is longer than the ceiling (LSE-9); whatever ends a turn
before its time, pi is told to abort it and has a moment to do so.
"""

from __future__ import annotations

import json
import math

import attrs
import trio

from concorde_trio._sansio.lines import LineReader
from concorde_trio._sansio.pi_turn import Command, PiPhase, PiTurn

ANSWER = 60.0
"""Seconds for an answer that needs neither model nor tool; a pi that starts takes one or two."""

ABORT = 2.0
"""Seconds for an abort: it took 15 ms where it was seen."""

_ASK_AGAIN = 0.25
_MAX_LINE = 16 * 1024 * 1024


@attrs.frozen(kw_only=True)
class PiLimits:
    """Seconds, infinity for none. ``progress``: in which the model's reply must grow; ``tool``: in which a tool at work must
    print something or end; ``ceiling``: for the turn as a whole.
    """

    progress: float
    tool: float
    ceiling: float


class PiConversation:
    """``commands`` is what pi is to read; what it writes goes to ``feed``, and that nothing more will come to ``lost``."""

    def __init__(self, turn: PiTurn, limits: PiLimits) -> None:
        self._turn = turn
        self._limits = limits
        self._lines = LineReader(_MAX_LINE)
        self._moved_at = trio.current_time()
        self._progress = 0
        self._lost = False
        self._news = trio.Event()
        self._send, self.commands = trio.open_memory_channel[bytes](math.inf)

    def feed(self, data: bytes) -> None:
        """The next bytes of pi's output."""
        for line in self._lines.feed(data):
            if self._turn.phase is PiPhase.OVER:
                return
            self._say(self._turn.take_line(line))
        if self._turn.progress != self._progress:
            self._progress = self._turn.progress
            self._moved_at = trio.current_time()
        self._news.set()

    def lost(self, why: str) -> None:
        """pi is gone, or cannot be heard any more."""
        self._lost = True
        self._turn.lost(why)
        self._news.set()

    async def hold(self) -> None:
        """Begin the turn; returns when it is over or must be ended, its outcome is then the turn's."""
        turn = self._turn
        end = trio.current_time() + self._limits.ceiling
        self._moved_at = trio.current_time()
        self._say(turn.begin())
        while turn.phase not in (PiPhase.ABORTING, PiPhase.OVER) and not self._lost:
            asking = turn.phase is PiPhase.SETTLING
            self._news = trio.Event()
            with trio.move_on_at(min(end, self._due(), trio.current_time() + _ASK_AGAIN if asking else math.inf)):
                await self._news.wait()
                continue
            now = trio.current_time()
            if now >= end:
                self._say(turn.fail(f"its turn took longer than {self._limits.ceiling:g} s (ceiling); it was aborted"))
            elif now >= self._due():
                limit, name = self._limit()
                self._say(turn.fail(f"there was no progress for {limit:g} s{name}, waiting for {turn.waiting_for}"))
            elif asking:
                self._say(turn.ask_again())

    async def wind_up(self) -> None:
        """End the turn if it is not over: abort, and wait for the answer; the caller bounds that."""
        self._say(self._turn.abort())
        while self._turn.phase is PiPhase.ABORTING and not self._lost:
            self._news = trio.Event()
            await self._news.wait()

    def hang_up(self) -> None:
        """There will be no more commands."""
        self._send.close()

    def close(self) -> None:
        """It is over, and nobody reads its commands any more."""
        self._send.close()
        self.commands.close()

    def _due(self) -> float:
        return self._moved_at + self._limit()[0]

    def _limit(self) -> tuple[float, str]:
        if self._turn.tools:
            return self._limits.tool, " (tool_limit)"
        if self._turn.for_an_answer:
            return ANSWER, ""
        return self._limits.progress, " (progress_limit)"

    def _say(self, commands: list[Command]) -> None:
        for command in commands:
            try:
                self._send.send_nowait(json.dumps(command).encode() + b"\n")
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return  # it reads no more, and whoever reads from it will say so
