"""The options that commands share, and how their words are read. A wrong one is refused by what was expected."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from concorde_trio.cli.show import visible

Command = TypeVar("Command", bound=Callable[..., Any])

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhdw])", re.ASCII)
LIMIT = 200
"""The most rows a listing gives, the same as the agent server's (SRV-2)."""


if TYPE_CHECKING:
    _ParamType = click.ParamType[float]
else:
    _ParamType = click.ParamType


class Duration(_ParamType):
    """``30d``, ``12h``, ``45m``, ``90s``, or several together (``1h30m``): seconds. A number needs its unit."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds that ``value`` means."""
        if isinstance(value, float):
            return value
        text = str(value)
        parts = _DURATION.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text or len(text) > 30:
            self.fail(f"expected a duration such as 30d, 12h, 45m or 90s, not {visible(text)!r:.60}.", param, ctx)
        return sum(float(number) * _UNITS[unit] for number, unit in parts)


def json_option(command: Command) -> Command:
    """``--json``: one JSON document on stdout instead of words and tables."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def store_option(command: Command) -> Command:
    """``--store``: how a command is told which queue it is about."""
    return click.option(
        "--store",
        envvar="CONCORDE_STORE",
        show_envvar=True,
        metavar="DATABASE",
        help="The queue's database, a path, sqlite:///PATH or postgresql://USER@HOST/DB.  [default: concorde.db in this folder]",
    )(command)


def queue_options(command: Command) -> Command:
    """``--store`` and ``--direct``, for commands that ask a running worker when there is one."""
    return store_option(
        click.option(
            "--direct", is_flag=True, help="Read and write the database itself, even while a worker serves it."
        )(command)
    )


def limit_option(command: Command) -> Command:
    """``--limit``: how many rows, newest first."""
    return click.option(
        "--limit",
        type=click.IntRange(1, LIMIT),
        default=50,
        show_default=True,
        help="The most to show, newest first.",
    )(command)


def follow_option(command: Command) -> Command:
    """``--follow``: go on after the list."""
    return click.option(
        "--follow", "following", is_flag=True, help="Then print each change as it happens, until Ctrl-C."
    )(command)


def read_json(text: str, param: str) -> Any:
    """The JSON value in ``text``, or in stdin when it is ``-``; UsageError says where it is none."""
    if text == "-":
        return parse_json(decode(sys.stdin.buffer.read(), "stdin", param), "stdin", param)
    hint = "; a JSON string keeps its double quotes: '\"...\"'" if re.fullmatch(r"[\w .,!?-]+", text) else ""
    return parse_json(text, "the payload", param, hint)


def decode(data: bytes, what: str, param: str) -> str:
    """``data`` as UTF-8 text (a byte order mark is dropped); UsageError names the byte that is none."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_json(f"{what} is not UTF-8 at byte {error.start}", param) from None


def parse_json(text: str, what: str, param: str, hint: str = "") -> Any:
    """The JSON value in ``text``, called ``what`` in the UsageError that says where it is none."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=_whole_number)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise _not_json(f"{what} is not JSON: {error.msg} at {place}{hint}", param) from None
    except ValueError as error:
        raise _not_json(f"{what} is not JSON: {error}", param) from None
    except RecursionError:
        raise _not_json(f"{what} is nested too deep", param) from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _whole_number(digits: str) -> int:
    if len(digits) > 4300:
        raise ValueError(f"a number with {len(digits)} digits is too long")
    return int(digits)


def _not_json(message: str, param: str) -> click.UsageError:
    return click.BadParameter(f"{message}.", param_hint=f"'{param}'")
