"""One command of the shell tool, in a task of its own that may outlive the call (SES-8, F-30).

The law: the command's block is closed before ``answered`` unless it left something running. Then that is listed, and the
block is closed when all of it has ended, or the run ends. However it goes, ``over`` comes in bounded time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import trio

from concorde_trio.errors import ConcordeError
from concorde_trio.processes.background import Background
from concorde_trio.processes.capture import Capture
from concorde_trio.processes.ending import Exit
from concorde_trio.processes.runner import open_program
from concorde_trio.processes.sweep import Swept, new_marker
from concorde_trio.sessions.tool import Leftover, ToolContext
from concorde_trio.tools.output_file import OutputFile


@attrs.frozen(kw_only=True)
class Command:
    """What to start."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    ladder: Sequence[tuple[int, float]]


class ShellJob:
    """``run`` goes to ``ToolContext.keep``. ``exit`` and ``problem`` say how it went, once ``answered`` is set."""

    def __init__(self, command: Command, context: ToolContext, output: Capture, file: OutputFile) -> None:
        self._command = command
        self._context = context
        self._scope = trio.CancelScope()
        self.output = output
        self.words = Capture(2_000, 2_000)
        """What the shell said before the command had its own output."""
        self.file = file
        self.answered = trio.Event()
        self.over = trio.Event()
        self.exit: Exit | None = None
        self.problem: ConcordeError | None = None
        self.pid: int | None = None

    async def run(self) -> None:
        """Start it, and see it to its end."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.file.serve)
                try:
                    with self._scope:
                        await self._run()
                except ConcordeError as error:
                    self.problem = error
                    if self.answered.is_set():
                        raise  # nobody else would hear of it
                finally:
                    self.file.close()
        finally:
            self.answered.set()
            self.over.set()

    async def end(self) -> None:
        """End it with all that it started; returns when that is done."""
        self._scope.cancel("the call is over")
        await self.over.wait()

    async def _run(self) -> None:
        command, background = self._command, None
        try:
            async with open_program(
                command.argv,
                env=command.env,
                cwd=command.cwd,
                marker=new_marker(self._context.queue),
                ladder=command.ladder,
                programs_lock=self._context.programs_lock,
                stdout=self.output,
                stderr=self.words,
                on_stdout=self.file.feed,
            ) as program:
                self.pid = program.pid
                exit = await program.wait()
                if exit.running:
                    background = Background(program, self._list)
                    background.add(exit.running)
                    self.file.close()  # what they print from now on is not the command's
                    await self.file.done.wait()
                    self.exit = exit
                    self.answered.set()
                    await background.all_ended()
                self.exit = exit
        except BaseException as error:
            if background is not None and not isinstance(error, ConcordeError):  # what cannot be ended stays listed
                background.close()
            raise

    def _list(self, one: Swept) -> Callable[[], None]:
        return self._context.left(Leftover("process", one.pid, f"{one.name}, left running by a shell command")).ended
