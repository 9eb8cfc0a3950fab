"""The command group: names, in the order in which they are told of, and where each command's module is.

A command's module is imported when it is called (or when the list of all of them is printed).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from concorde_trio.cli.show import PipeClosed

COMMANDS = {
    "init": "init",
    "serve": "serve",
    "emit": "emit",
    "signals": "listing",
    "runs": "listing",
    "why": "locks",
    "locks": "locks",
    "schedules": "schedules",
    "schedule": "schedules",
    "unschedule": "schedules",
    "top": "top",
    "sessions": "sessions",
    "send": "send",
    "chat": "chat",
    "interrupt": "steer",
    "approve": "steer",
    "deny": "steer",
    "cancel": "change",
    "retry": "change",
    "prune": "prune",
    "fleet": "fleet",
    "copy": "copy",
    "doctor": "doctor",
    "openapi": "openapi",
    "simulate": "simulate",
    "demo": "demo",
}


class Program(click.Group):
    """Imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        command = getattr(import_module(f"concorde_trio.cli.{COMMANDS[cmd_name]}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise PipeClosed from error


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"concorde-trio {version('concorde-trio')}")
        except PackageNotFoundError:
            print("concorde-trio (not installed)")
        ctx.exit()


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 done, 1 it failed, 2 the command was wrong, 130 Ctrl-C.",
)
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Say which.")
def program() -> None:
    """Run many AI-agent tasks in parallel, in order where they share something.

    Commands find the queue by --store, by CONCORDE_STORE, or as concorde.db in
    the current folder. A running worker is asked; without one the database is
    read.

    \b
    Examples:
      concorde-trio demo
      concorde-trio init workshop
      concorde-trio serve household:gateway
      concorde-trio emit message.received '{"user": "ann", "text": "hi"}'
      concorde-trio top
      concorde-trio signals
      concorde-trio why RUN
    """
