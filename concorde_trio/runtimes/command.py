"""A Runtime that executes each run with an agent program. The law:

- The prompt goes to the program's stdin and nowhere else; there is no shell; the environment starts empty.
- A program is believed by its output, hardly by its exit status, and not at all once we have stopped it.
- However a run ends, no process of it is left (REC-6).
"""

from __future__ import annotations

import contextlib
import inspect
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import attrs
import trio

from concorde_trio._sansio.encoded_names import encode_name
from concorde_trio.errors import ProgramError, UsageError
from concorde_trio.processes.capture import Capture
from concorde_trio.processes.runner import LADDER, open_program
from concorde_trio.processes.start import check_ladder
from concorde_trio.processes.sweep import new_marker, sweep_queue
from concorde_trio.records import RunOutcome, RunPrompt, RunState, check_time_limit
from concorde_trio.runtimes.command_attempt import REMEMBER, Attempt
from concorde_trio.runtimes.command_environment import Environment
from concorde_trio.runtimes.command_output import FunctionReading, Judge, Reading, RulesReading, TextReading
from concorde_trio.runtimes.command_rules import JsonLines
from concorde_trio.runtimes.command_session import Conversation, NoSession, SessionKind
from concorde_trio.runtimes.command_template import (
    Folder,
    check_arguments,
    check_folder,
    fill,
    placeholder,
)
from concorde_trio.signals.runtime import RuntimeContext

_log = logging.getLogger(__name__)


class CommandRuntime:
    """Executes each run by starting a program (RUN-4): its prompt on stdin, its answer on stdout.

    ``argv``: the program and its arguments, for a new session; ``argv_resume``: the same for one that the program has
    already. A placeholder ({session}, {session_file}, {native_id}, {agent_server_url}, {cwd}, {model}) is a whole argument.
    ``cwd``: the absolute folder the program works in, fixed for each session and made if need be: a template with
    ``{session}`` in it, or a function of the session's name as written. ``env``: the environment, with {agent_server_url}
    and {session} as whole values; ``inherit``: names taken from the worker's own. AGENT_SERVER_URL is added when there is
    an agent server, and CONCORDE_RUN_ID always; nothing else. Where {session} stands, the name is encoded (``encode_name``).

    ``output``: "text" (ok is exit status 0 and something printed), JsonLines, or a function ``(records, exit) -> RunOutcome``.
    ``session``: NoSession(), SessionFile(folder), DerivedSession(namespace, folder) or LearntSession(folder, rule). ``stop``: the signals it gets when it
    has to stop, each with seconds of grace; together they should be less than a worker's ``stop_grace``. ``idle_limit``:
    seconds without a byte on stdout, ``time_limit``: seconds in all, after which it is stopped and the run has failed
    (a program that hangs does not end by itself). ``max_output``: bytes of the answer to keep.

    UsageError for what can never be right. A program that is missing, fails or prints nothing gives a failed outcome
    that says so in a sentence.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Folder,
        argv_resume: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        inherit: Sequence[str] = (),
        output: str | JsonLines | Judge = "text",
        session: SessionKind | None = None,
        model: str | None = None,
        stop: Sequence[tuple[int, float]] = LADDER,
        idle_limit: float | None = None,
        time_limit: float | None = None,
        max_output: int = 1024 * 1024,
    ) -> None:
        self._argv = check_arguments(argv, "argv")
        self._argv_resume = None if argv_resume is None else check_arguments(argv_resume, "argv_resume")
        self._folder = check_folder(cwd)
        self._environment = Environment(env, inherit)
        if isinstance(max_output, bool) or not isinstance(max_output, int) or max_output < 1024:
            raise UsageError(f"max_output is in bytes, at least 1024, not {max_output!r}")
        self._session: SessionKind = session or NoSession()
        self._read = _reader(output, max_output, self._session)
        self._model = model
        check_ladder(stop)
        self._stop = tuple(stop)
        self._idle_limit = check_time_limit(idle_limit, "idle_limit")
        self._time_limit = check_time_limit(time_limit, "time_limit")
        self._context: RuntimeContext | None = None
        self._alone = f"alone-{secrets.token_hex(8)}"  # the queue's name while there is no worker
        self._check_placeholders()

    def _check_placeholders(self) -> None:
        kind = type(self._session).__name__
        if self._session.needs_resume and self._argv_resume is None:
            raise UsageError(f"{kind} needs argv_resume: how the program continues a session that it has")
        if self._session.needs_resume is False and self._argv_resume is not None:
            raise UsageError(
                f"argv_resume would never be used with {kind}; give a session kind, such as SessionFile(folder)"
            )
        used = {placeholder(part) for part in (*self._argv, *(self._argv_resume or ()))}
        for name, kinds in (
            ("session_file", "SessionFile(folder)"),
            ("native_id", "DerivedSession(namespace, folder) or LearntSession(folder, rule)"),
        ):
            if name in used and name not in self._session.provides:
                raise UsageError(f"{{{name}}} needs session={kinds}, not {kind}")
        for name in self._session.provides:
            if name not in used:
                raise UsageError(f"with {kind} the program must be told: put {{{name}}} into argv")
        if self._session.learns is not None and "native_id" in map(placeholder, self._argv):
            raise UsageError(
                f"with {kind} a new conversation has no id yet: {{native_id}} belongs into argv_resume only"
            )
        if "model" in used and self._model is None:
            raise UsageError("{model} is used in argv, so give model=...")
        self._needs_server = "agent_server_url" in used | self._environment.placeholders

    @contextlib.asynccontextmanager
    async def open(self, context: RuntimeContext, /) -> AsyncIterator[CommandRuntime]:
        """Be one worker's Runtime, after what an earlier one left was ended (REC-6).

        UsageError if an agent server is needed and there is none, or if it is open already.
        """
        if self._needs_server and context.agent_server_url is None:
            raise UsageError(
                "{agent_server_url} is used, but this worker has no agent server; start one, or leave it out"
            )
        if self._context is not None:
            raise UsageError("this CommandRuntime is open already; give each worker its own")
        self._context = context
        try:
            swept = await sweep_queue(context.queue)
            if swept:
                _log.warning(
                    "ended %d processes that an earlier worker left: %s", len(swept), ", ".join(map(str, swept))
                )
            yield self
        finally:
            self._context = None

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        """Run the program once for this prompt; a second time if it says that we were wrong about its session."""
        if not prompt.text.strip():
            return RunOutcome.failed("the prompt is blank, and agent programs do nothing with that; it was not started")
        try:
            folder = self._folder(prompt.session)
            conversation = await trio.to_thread.run_sync(self._prepare, prompt.session, folder)
            attempt = await self._attempt(prompt, conversation, folder)
            if attempt.mistaken():
                conversation = attrs.evolve(conversation, known=not conversation.known, used=None)
                attempt = await self._attempt(prompt, conversation, folder)
        except (ProgramError, OSError) as error:
            return RunOutcome.failed(self._environment.masked(str(error)))
        return self._outcome(attempt)

    def _prepare(self, session: str, folder: str) -> Conversation:
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ProgramError(
                f"the program {self._argv[0]!r} was not started: its folder {folder!r} cannot be made: {error.strerror}"
            ) from None
        return self._session.find(session)

    async def _attempt(self, prompt: RunPrompt, conversation: Conversation, folder: str) -> Attempt:
        context = self._context or RuntimeContext(queue=self._alone)
        values = {
            "session": encode_name(prompt.session),
            "session_file": conversation.session_file,
            "native_id": conversation.native_id,
            "agent_server_url": context.agent_server_url,
            "cwd": folder,
            "model": self._model,
        }
        argv = self._argv_resume if conversation.known and self._argv_resume is not None else self._argv
        attempt = Attempt(prompt, conversation, self._read(conversation), self._session)
        try:
            async with open_program(
                [fill(part, values) for part in argv],
                env=self._environment.fill(values),
                cwd=folder,
                marker=new_marker(context.queue),
                stdin=prompt.text.encode("utf-8", "replace"),
                ladder=self._stop,
                programs_lock=context.programs_lock,
                stdout=Capture(0, 0),
                stderr=attempt.stderr,
                on_stdout=attempt.take,
            ) as program:
                await attempt.watch(program, self._idle_limit, self._time_limit)
        finally:
            with trio.move_on_after(REMEMBER, shield=True):
                await attempt.remember()
        if program.ending is not None and program.ending.swept:
            left = ", ".join(map(str, program.ending.swept))
            _log.info("ended %d processes that %s left running: %s", program.ending.swept_count, self._argv[0], left)
        return attempt

    def _outcome(self, attempt: Attempt) -> RunOutcome:
        reading, exit = attempt.reading, attempt.exit
        if attempt.limited is not None:
            return RunOutcome.limited(attempt.limited, text=reading.text, usage=reading.usage)
        if attempt.stopped is not None:
            problem = f"the program {self._argv[0]!r} was stopped: {attempt.stopped}"
            return RunOutcome.failed(problem, text=reading.text, usage=reading.usage)
        outcome = attempt.verdict()
        if outcome.state is RunState.DONE:
            if exit.code != 0:
                _log.warning("%s did what it was asked, but ended with %s", self._argv[0], exit)
            return outcome
        if outcome.state is RunState.FAILED:
            said = attempt.stderr.head.decode("utf-8", "replace").strip()[:500]
            text = f"the program {self._argv[0]!r} failed: {outcome.error} ({exit})" + (
                f"; stderr: {said}" if said else ""
            )
            return attrs.evolve(outcome, error=self._environment.masked(text))
        return outcome


def _reader(
    output: str | JsonLines | Judge, max_output: int, session: SessionKind
) -> Callable[[Conversation], Reading]:
    id = session.learns
    if isinstance(output, JsonLines):
        rules = output
        if rules.usage is not None and rules.usage.cumulative and id is None:
            raise UsageError("UsageRules(cumulative=True) needs LearntSession(folder, rule), which keeps the last sum")
        return lambda conversation: RulesReading(rules, max_output, id=id, before=conversation.used)
    if callable(output):
        if inspect.iscoroutinefunction(output):
            raise UsageError(
                "the output function of a CommandRuntime must be a plain one: (records, exit) -> RunOutcome"
            )
        function = output
        return lambda conversation: FunctionReading(function, max_output, id=id)
    if output == "text":
        if id is not None:
            raise UsageError("LearntSession finds the id in records: output must be JsonLines(...) or a function")
        return lambda conversation: TextReading(max_output)
    raise UsageError(f"output must be 'text', JsonLines(...) or a function of (records, exit), not {output!r:.80}")
