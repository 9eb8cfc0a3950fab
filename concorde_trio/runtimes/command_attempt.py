"""One start of a program for a run: what is read of it, when it is stopped, and what is to be remembered.

The law: a program that we stopped is stopped, whatever its stream says afterwards; the first reason to stop it counts.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from functools import partial

import attrs
import trio

from concorde_trio.errors import ProgramError
from concorde_trio.processes.capture import Capture
from concorde_trio.processes.ending import Exit
from concorde_trio.processes.program import Program
from concorde_trio.records import RunOutcome, RunPrompt, RunState
from concorde_trio.runtimes.command_learnt import LearntSession, check_native_id
from concorde_trio.runtimes.command_output import Reading
from concorde_trio.runtimes.command_session import Conversation, SessionKind

REMEMBER = 2.0
"""Seconds for writing down at the end that a session was begun, and what it has used."""

LEARN = 10.0
"""Seconds for writing down a session's id, without which it would be lost."""

_log = logging.getLogger(__name__)


class Attempt:
    """One start of the program, and what came of it."""

    def __init__(self, prompt: RunPrompt, conversation: Conversation, reading: Reading, session: SessionKind) -> None:
        self.conversation = conversation
        self.reading = reading
        self.stderr = Capture(16384, 16384)
        self.exit = Exit(code=None, signal=None)
        self.limited: str | None = None
        self.stopped: str | None = None
        self._prompt = prompt
        self._session = session
        self._asked = conversation
        self._printed = False
        self._learnt = False
        self._program: Program | None = None
        self._outcome: RunOutcome | None = None

    def take(self, data: bytes) -> Awaitable[None] | None:
        """The next bytes of stdout. No more is read before an id in them is written down.

        Stops the program when its usage limit is reached before its answer is there.
        """
        self._printed = True
        self.reading.feed(data)
        self._check_usage()
        if self._learnt or self.reading.native_id is None:
            return None
        self._learnt = True
        return self._learn(check_native_id(self.reading.native_id))

    def _check_usage(self) -> None:
        limit, usage = self._prompt.usage_limit, self.reading.usage
        if limit is None or self.limited is not None or self.stopped is not None or self.reading.settled:
            return
        if usage is not None and usage.input_tokens + usage.output_tokens >= limit:
            used = usage.input_tokens + usage.output_tokens
            self.limited = f"usage limit reached: {used:,} of {limit:,} tokens; the program was stopped"
            if self._program is not None:
                self._program.stop()

    async def _learn(self, native_id: str) -> None:
        old = self.conversation
        if old.known and old.native_id == native_id:
            return
        if old.known and not (isinstance(self._session, LearntSession) and self._session.may_change):
            self.stopped = f"it went on with the conversation {native_id}, though it was asked for {old.native_id}"
            if self._program is not None:
                self._program.stop()
            return
        self.conversation = attrs.evolve(old, native_id=native_id, known=True)
        with trio.move_on_after(LEARN) as scope:
            seen = partial(self._session.seen, self._prompt.session, self.conversation)
            await trio.to_thread.run_sync(seen, abandon_on_cancel=True)
        if scope.cancelled_caught:
            raise ProgramError(f"the id of its conversation could not be written down within {LEARN:g} s")

    async def remember(self) -> None:
        """At the end, whatever it was: what the session must know next time. It never fails; what is lost is told to the log."""
        self.reading.finish()
        try:
            if not self._learnt and self.reading.native_id is not None:
                await self._learn(check_native_id(self.reading.native_id))
            told, old = self.reading.told, self.conversation
            if told is not None and old.known and self.stopped is None:
                new = attrs.evolve(old, used=told)
            elif self._printed and not old.known and self._session.learns is None:
                new = attrs.evolve(old, known=True)
            else:
                return
            await trio.to_thread.run_sync(self._session.seen, self._prompt.session, new, abandon_on_cancel=True)
        except (OSError, ProgramError) as error:
            _log.warning("what the session %r must remember could not be written: %s", self._prompt.session, error)

    async def watch(self, program: Program, idle_limit: float | None, time_limit: float | None) -> None:
        """Until the program has ended; stop it when it is silent or at work for too long."""
        self._program = program
        if self.limited is not None or self.stopped is not None:
            program.stop()
        end = trio.current_time() + (time_limit or float("inf"))
        while True:
            idle_at = program.last_output + (idle_limit or float("inf"))
            stopping = self.stopped is not None or self.limited is not None
            with trio.move_on_at(float("inf") if stopping else min(end, idle_at)):
                self.exit = await program.wait()
                return
            if stopping or self.stopped is not None or self.limited is not None:
                continue
            if trio.current_time() >= end:
                self.stopped = f"it was still at work after {time_limit:g} s (time_limit)"
            elif trio.current_time() >= program.last_output + (idle_limit or float("inf")):
                self.stopped = f"it printed nothing on its stdout for {idle_limit:g} s (idle_limit)"
            else:
                continue
            program.stop()

    def verdict(self) -> RunOutcome:
        """What its output says, judged once."""
        if self._outcome is None:
            self._outcome = self.reading.judge(self.exit)
        return self._outcome

    def mistaken(self) -> bool:
        """Whether it failed only because we were wrong about its session, of which it then has told nothing."""
        if self.stopped is not None or self.limited is not None or self.reading.native_id is not None:
            return False
        if self.verdict().state is RunState.DONE:
            return False
        return self._session.mistaken(self._asked.known, self.stderr.text())
