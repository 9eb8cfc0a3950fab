"""MODULE:GATEWAY to the object of that name, from the current folder as Python itself would import it.

The law: what is wrong with the name is one sentence; what the user's module raised is the user's traceback, shown
from their first line on; of an error of ours that it led to, their lines alone.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from concorde_trio.cli.show import visible
from concorde_trio.errors import UsageError

PACKAGE = Path(__file__).parents[1]
PARAM = "'MODULE:GATEWAY'"


def load_object(target: str) -> Any:
    """The object that ``module.path:name.path`` names. UsageError for a wrong name, Failed for a module that raises."""
    module_name, colon, name = target.partition(":")
    parts = module_name.split(".")
    if module_name.endswith(".py") or "/" in module_name:
        stem = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise wrong_target(f"name the module, not its file: {visible(stem)}:{visible(name) or 'gateway'}.")
    if not colon or not name or not all(part.isidentifier() for part in (*parts, *name.split("."))):
        raise wrong_target(f"expected MODULE:GATEWAY, for instance household:gateway, not {visible(target)!r}.")
    module = _import(module_name)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise wrong_target(f"module {module_name} has no {name!r}.{_gateways(module)}")
        found = getattr(found, part)
    return found


def _import(name: str) -> ModuleType:
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise wrong_target(
                f"there is no module {error.name!r}, neither in {visible(folder)} nor installed."
            ) from None
        _show_theirs(error)
        raise click.ClickException(f"module {name} could not be imported: {error}") from None
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except UsageError as error:
        # A rule of ours that they broke: the message says what to write, and where is theirs alone.
        _show_theirs_alone(error)
        raise click.ClickException(f"module {name} could not be imported: {error}") from None
    except BaseException as error:  # noqa: BLE001 - a module may raise anything, SystemExit too
        _show_theirs(error)
        what = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1]
        raise click.ClickException(f"module {name} could not be imported: {what}") from None


def _show_theirs(error: BaseException) -> None:
    """Their traceback on stderr, without our frames and the import system's."""
    frame = error.__traceback__
    while frame is not None and _not_theirs(frame.tb_frame.f_code.co_filename):
        frame = frame.tb_next
    traceback.print_exception(type(error), error, frame)


def _show_theirs_alone(error: BaseException) -> None:
    """The lines of theirs that led to ``error`` on stderr, without what we did then and what it says."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    if frames:
        print("Traceback (most recent call last):", file=sys.stderr)
        print("".join(traceback.format_list(frames)), end="", file=sys.stderr)


def _is_ours(filename: str) -> bool:
    generated = filename.startswith("<attrs generated")
    return generated or _not_theirs(filename) or Path(filename).is_relative_to(PACKAGE)


def _not_theirs(filename: str) -> bool:
    return filename == __file__ or filename.startswith("<frozen importlib") or filename == importlib.__file__


def _gateways(module: ModuleType) -> str:
    names = [name for name, value in vars(module).items() if type(value).__name__ == "Gateway" and name[0] != "_"]
    return f" It has {' and '.join(names)}." if names else ""


def wrong_target(message: str) -> click.UsageError:
    """A UsageError about the argument MODULE:GATEWAY."""
    return click.BadParameter(message, param_hint=PARAM)
