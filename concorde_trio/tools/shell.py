"""The shell tool: one command, in the session's workspace, under the guard (SES-8). The law:

- Its time, an interrupt and the end of the run end the whole tree. What the command printed until then is in the result.
- The end of the command is the end of the call, whoever still holds its pipes; what it left running is listed.
- The environment is what is named here, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Optional

import msgspec
import trio

from concorde_trio._sansio.model_events import ToolSpec
from concorde_trio.errors import TooManyThreads, UsageError
from concorde_trio.processes.capture import Capture
from concorde_trio.processes.program import DRAIN, PATIENCE
from concorde_trio.processes.runner import LADDER
from concorde_trio.processes.start import check_program
from concorde_trio.sessions.tool import TIMEOUT, ExecKind, Leftover, ToolContext, ToolResult
from concorde_trio.tools.function import check_timeout, check_tool_name
from concorde_trio.tools.output_file import OutputFile
from concorde_trio.tools.schema import Parameters
from concorde_trio.tools.shell_job import Command, ShellJob
from concorde_trio.tools.threads import in_thread
from concorde_trio.tools.workspace import Workspace

INHERIT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER")
"""Variables of ours that commands get unless said otherwise."""

_LONGEST = 128 * 1024 - 1  # bytes in one argument; the kernel takes no more
_ENDING = 10.0  # seconds, beyond the stop ladder's, that an end may take before the session stops waiting
_MERGED = 'exec "$0" -c "$1" 2>&1'  # stderr goes where stdout goes, so that both come in their order


class ShellTool:
    """Lets a model run shell commands: ``ShellTool("/srv/agents/{session}", timeout=60)``.

    ``workspace``: an absolute folder in which they run, made if need be; ``{session}`` in it is the session's name, encoded.
    It is where they begin, not a fence: a command may do what this process's user may. ``timeout``: seconds, after which
    the whole tree is ended, with what it printed as the result. ``env``, and ``inherit``, names of variables of
    this process: all that commands get, besides ``ToolContext.env``. ``max_output``: bytes of output in a result; a longer one is cut in the
    middle, and a file holds ``max_file`` bytes of it. ``stop``: the stop ladder. ``shell``: absolute path (default:
    bash if there is one, else sh). UsageError for what can never be right.
    """

    kind: ExecKind = "execute"
    concurrent = False

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        *,
        timeout: float = TIMEOUT,
        name: str = "shell",
        env: Mapping[str, str] | None = None,
        inherit: Iterable[str] = INHERIT,
        max_output: int = 32_000,
        max_file: int = 100_000_000,
        stop: Sequence[tuple[int, float]] = LADDER,
        shell: str | None = None,
    ) -> None:
        self._workspace = Workspace(workspace)
        self._limit = check_timeout(timeout)
        self._name = check_tool_name(name)
        if isinstance(inherit, str):
            raise UsageError(f"inherit is a list of names of environment variables, not one string: [{inherit!r:.80}]")
        if max_output < 1_000 or max_file < max_output:
            raise UsageError(
                f"max_output is in bytes, at least 1,000, and max_file at least as much; not {max_output}, {max_file}"
            )
        self._env = dict(env or {})
        self._inherit = tuple(inherit)
        if "CONCORDE_RUN_ID" in {*self._env, *self._inherit}:
            raise UsageError("CONCORDE_RUN_ID marks the processes of a run; it is set by the tool and by nobody else")
        self._max_output, self._max_file = max_output, max_file
        self._stop = tuple(stop)
        self._shell = _found_shell(shell)
        check_program([self._shell, *self._inherit], self._env, "/", self._stop)
        self._grace = sum(seconds for _, seconds in self._stop)
        self._parameters = _parameters(self._name, self._limit)
        self.spec = ToolSpec(
            name=self._name, description=_description(self._shell, self._limit), parameters=self._parameters.schema
        )

    @property
    def timeout(self) -> float:
        """Seconds until a session stops waiting: the command's own, and those in which its tree is ended."""
        return self._limit + self._grace + _ENDING

    async def call(self, arguments: Mapping[str, Any], context: ToolContext, /) -> ToolResult:
        """Run one command. The result is an error if its exit status is not 0, and says how it ended."""
        bound = self._parameters.bind(arguments, context)
        if isinstance(bound, str):
            return ToolResult(bound, is_error=True)
        command, limit = bound.kwargs["command"], bound.kwargs.get("timeout") or self._limit
        if fault := _fault(command):
            return ToolResult(f"The command was not run: {fault}", is_error=True)
        try:
            folder = await in_thread(lambda: self._workspace.make(context.session), context, self._name)
        except (OSError, TooManyThreads) as error:
            return ToolResult(f"The command was not run, its workspace cannot be used: {error}", is_error=True)
        inherited = {name: os.environ[name] for name in self._inherit if name in os.environ}
        head = self._max_output // 2
        job = ShellJob(
            Command(
                argv=["/bin/sh", "-c", _MERGED, self._shell, command],
                env={"PATH": os.defpath, **inherited, **context.env, **self._env},
                cwd=folder,
                ladder=self._stop,
            ),
            context,
            Capture(head, self._max_output - head),
            OutputFile(context, self._name, after=self._max_output, most=self._max_file),
        )
        context.keep(job.run)
        try:
            with trio.move_on_after(limit):
                await job.answered.wait()
        finally:
            late = not job.answered.is_set()
            if late:
                with trio.move_on_after(self._grace + PATIENCE + DRAIN + _ENDING, shield=True):
                    await job.end()
                self._list_what_stays(job, context)
        return _result(job, limit if late else None)

    def _list_what_stays(self, job: ShellJob, context: ToolContext) -> None:
        """What could not be ended has to be seen by somebody."""
        if job.pid is not None and (job.problem is not None or not job.over.is_set()):
            about = str(job.problem or "a shell command that does not end, though it was killed")
            context.left(Leftover("process", job.pid, about))

    def __repr__(self) -> str:
        return f"<ShellTool {self._name}>"


def _result(job: ShellJob, timed_out: float | None) -> ToolResult:
    text = job.words.text() + job.output.text()
    if text and not text.endswith("\n"):
        text += "\n"
    if job.output.cut:
        text += f"[the output was cut; {job.file.about()}]\n"
    exit, failed = job.exit, True
    if timed_out is not None:
        text += f"[ended: the command took longer than {timed_out:g} s; it and all that it started was stopped]"
        if job.problem is not None:
            text += f"\n[{job.problem}]"
    elif exit is None:
        text += f"[{job.problem or 'the command was ended from outside: the run is over'}]"
    else:
        failed = exit.code != 0
        text += f"[{exit}]"
        if exit.running:
            names = ", ".join(map(str, exit.running))
            text += f"\n[left running: {names}. The end of the run ends it; what it prints from now on is not kept]"
    return ToolResult(text, is_error=failed, path=job.file.path)


def _fault(command: str) -> str | None:
    if "\0" in command:
        return "it has a NUL character, which no command can have."
    size = len(command.encode("utf-8", "surrogatepass"))
    if size > _LONGEST:
        return f"it has {size:,} bytes, and {_LONGEST:,} are possible. Write long text to a file first."
    try:
        command.encode()
    except UnicodeEncodeError:
        return "it has a lone surrogate, which is no character."
    return None if command.strip() else "it is empty."


def _found_shell(shell: str | None) -> str:
    if shell is None:
        return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"
    if not os.path.isabs(shell) or not os.access(shell, os.X_OK) or Path(shell).is_dir():
        raise UsageError(
            f"shell is the absolute path of a program that is there, such as '/bin/sh', not {shell!r:.200}"
        )
    return shell


def _parameters(name: str, limit: float) -> Parameters:
    def shell(command: Any, timeout: Any = None) -> None: ...

    seconds = msgspec.Meta(gt=0, le=limit)
    shell.__annotations__ = {
        "command": Annotated[str, "The command, as the shell takes it; it may have several lines."],
        "timeout": Optional[Annotated[float, seconds]],  # noqa: UP045 - a value, not an annotation
    }
    return Parameters(shell, name, {"timeout": f"Seconds it may take, at most {limit:g}."})


def _description(shell: str, limit: float) -> str:
    return (
        f"Run a command with {shell}, in a new shell each time, which starts in your workspace. Standard output and "
        "standard error come together, with the exit status at the end; standard input is empty. "
        f"The command is stopped after {limit:g} seconds. What you start in the background is stopped when your work "
        "is over; send its output to a file to read it later."
    )
