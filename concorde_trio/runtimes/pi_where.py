"""Where a pi is: behind a listener that an operator runs, or a program of our own.

The law: each run has a connection (or a process) of its own, opened for it and closed after it, whatever the outcome.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit

import trio

from concorde_trio._sansio.encoded_names import encode_name
from concorde_trio.errors import ProgramError, UsageError
from concorde_trio.failures import describe
from concorde_trio.processes.capture import Capture
from concorde_trio.processes.program import Program
from concorde_trio.processes.runner import LADDER, open_program
from concorde_trio.processes.start import check_ladder
from concorde_trio.processes.sweep import new_marker
from concorde_trio.runtimes.command_environment import Environment
from concorde_trio.runtimes.command_template import Folder, check_arguments, check_folder, fill, placeholder
from concorde_trio.runtimes.pi_conversation import PiConversation
from concorde_trio.signals.runtime import RuntimeContext

Connect: TypeAlias = Callable[[], Awaitable[trio.abc.Stream]]
"""Opens a new stream to a pi of its own."""

CONNECT = 10.0
"""Seconds for a connection to be made."""

_LEAVE = 2.0  # seconds for a pi to go by itself, and for a stream to be closed
_PIECE = 65536


class PiPlace(Protocol):
    """What both have in common. ``str`` of it says where it is."""

    @property
    def needs_server(self) -> bool:
        """Whether it can't be used without an agent server."""
        ...

    def open(
        self, conversation: PiConversation, session: str, context: RuntimeContext
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """A pi for one conversation. ProgramError or OSError, saying where it looked, if there is none."""
        ...

    def masked(self, text: str) -> str:
        """``text`` without the secrets that this pi was given."""
        ...


class PiListener:
    """A pi behind a listener that gives each connection a pi of its own."""

    needs_server = False

    def __init__(self, where: str | Connect) -> None:
        self._connect, self._name = (_address(where), where) if isinstance(where, str) else (where, "its stream")

    def __str__(self) -> str:
        return self._name

    def masked(self, text: str) -> str:
        """It was given none."""
        return text

    @contextlib.asynccontextmanager
    async def open(self, conversation: PiConversation, session: str, context: RuntimeContext) -> AsyncIterator[None]:
        """A connection of this conversation's own."""
        stream = await self._connected()
        service = trio.CancelScope(shield=True)  # a cancelled run's pi is still told to abort, and listened to
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_exchange, stream, conversation, service)
                try:
                    yield
                finally:
                    service.cancel("the conversation is over")
        finally:
            with trio.move_on_after(_LEAVE, shield=True):
                await stream.aclose()

    async def _connected(self) -> trio.abc.Stream:
        try:
            with trio.fail_after(CONNECT):
                return await self._connect()
        except Exception as error:  # noqa: BLE001 - whatever an operator's own function raises, TLS that was refused among it.
            cause = error.__cause__ or error
            why = f"nothing answered for {CONNECT:g} s" if isinstance(error, trio.TooSlowError) else describe(cause)
            raise ProgramError(
                f"no pi was reached at {self}: {why}. It needs a listener that gives each connection a pi of its own, "
                "such as: socat TCP-LISTEN:PORT,bind=127.0.0.1,reuseaddr,fork 'EXEC:pi --mode rpc'"
            ) from None


class PiProgram:
    """A pi of our own for each run, started under the guard and ended with the run (REC-6).

    ``argv``: the program and its arguments, with the placeholders {session}, {cwd} and {agent_server_url} as whole arguments.
    ``cwd``, ``env``, ``inherit`` and ``stop`` are those of CommandRuntime; AGENT_SERVER_URL and CONCORDE_RUN_ID are added as there. pi
    needs HOME or PI_CODING_AGENT_DIR for its settings, and PATH to find node and the programs its tools start.
    """

    def __init__(
        self,
        argv: Sequence[str] = ("pi", "--mode", "rpc"),
        *,
        cwd: Folder,
        env: Mapping[str, str] | None = None,
        inherit: Sequence[str] = (),
        stop: Sequence[tuple[int, float]] = LADDER,
    ) -> None:
        self._argv = check_arguments(argv, "argv")
        used = {placeholder(part) for part in self._argv}
        if other := used - {None, "session", "cwd", "agent_server_url"}:
            raise UsageError(
                f"{{{other.pop()}}} is none of PiProgram's placeholders: {{session}}, {{cwd}}, {{agent_server_url}}"
            )
        self._folder = check_folder(cwd)
        self._environment = Environment(env, inherit)
        check_ladder(stop)
        self._stop = tuple(stop)
        self.needs_server = "agent_server_url" in used | self._environment.placeholders

    def __str__(self) -> str:
        return f"the program {self._argv[0]!r}"

    def masked(self, text: str) -> str:
        """Without the values of its secret-looking variables."""
        return self._environment.masked(text)

    @contextlib.asynccontextmanager
    async def open(self, conversation: PiConversation, session: str, context: RuntimeContext) -> AsyncIterator[None]:
        """A process of this conversation's own."""
        folder = self._folder(session)
        try:
            await trio.to_thread.run_sync(lambda: Path(folder).mkdir(parents=True, exist_ok=True))
        except OSError as error:
            raise ProgramError(
                f"{self} was not started: its folder {folder!r} cannot be made: {error.strerror}"
            ) from None
        values = {"session": encode_name(session), "cwd": folder, "agent_server_url": context.agent_server_url}
        async with (
            open_program(
                [fill(part, values) for part in self._argv],
                env=self._environment.fill(values),
                cwd=folder,
                marker=new_marker(context.queue),
                stdin=conversation.commands,
                ladder=self._stop,
                programs_lock=context.programs_lock,
                stdout=Capture(0, 0),
                stderr=Capture(16384, 16384),
                on_stdout=conversation.feed,
            ) as program,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(_until_ended, program, conversation)
            try:
                yield
            finally:
                conversation.hang_up()  # at the end of its stdin it goes by itself
                with trio.move_on_after(_LEAVE, shield=True), contextlib.suppress(ProgramError):
                    await program.wait()
            nursery.cancel_scope.cancel("the conversation is over")


async def _until_ended(program: Program, conversation: PiConversation) -> None:
    try:
        exit = await program.wait()
    except ProgramError as error:
        conversation.lost(str(error))
        return
    said = program.stderr.text().strip()[:500]
    conversation.lost(f"it ended before its turn did ({exit})" + (f"; stderr: {said}" if said else ""))


async def _exchange(stream: trio.abc.Stream, conversation: PiConversation, service: trio.CancelScope) -> None:
    with service:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_write, stream, conversation)
            await _read(stream, conversation)
            nursery.cancel_scope.cancel("it cannot be heard any more")


async def _write(stream: trio.abc.Stream, conversation: PiConversation) -> None:
    with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # the reader hears why
        async for piece in conversation.commands:
            await stream.send_all(piece)


async def _read(stream: trio.abc.Stream, conversation: PiConversation) -> None:
    try:
        while data := await stream.receive_some(_PIECE):
            conversation.feed(bytes(data))
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        conversation.lost(f"the connection broke before its turn ended: {describe(error.__cause__ or error)}")
    else:
        conversation.lost("the connection was closed before its turn ended")


def _address(where: str) -> Connect:
    """What opens a stream there; UsageError for what is no address."""
    try:
        parts = urlsplit(where)
        host, port, path = parts.hostname, parts.port, parts.path
    except ValueError:
        host = port = None
        path = ""
    if where.startswith("tcp://") and host and port and path in ("", "/"):
        return partial(trio.open_tcp_stream, host, port)
    if where.startswith("unix:///") and len(path) > 1:
        return partial(trio.open_unix_socket, path)
    raise UsageError(f"a pi is at 'tcp://HOST:PORT' or 'unix:///PATH', not {where!r:.200}")
