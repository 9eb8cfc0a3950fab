"""The reference: a page for each part of the package, made of signatures and docstrings.

Every public name is on exactly one page, by where its home is: a name that is added appears by itself. Its anchor is
the name as it is written.
"""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import is_typeddict

import attrs
import click

import concorde_trio
import concorde_trio.documents
import concorde_trio.errors
import concorde_trio.events
import concorde_trio.simulate
import concorde_trio.testing
from concorde_trio.cli.commands import program
from docs.site.docstrings import fields, markdown, signature
from docs.site.routes import routes

# Titles of the pages, and the homes of what is on them: the first that a home begins with.
PARTS = {
    "sessions": ("Sessions", ["sessions.model", "sessions.tool", "sessions", "conversations", "messages", "_sansio"]),
    "signals": ("Signals, handlers and runs", ["signals", "records", "gateway", "_sansio.lock_table"]),
    "runtimes": ("Runtimes", ["runtimes", "signals.runtime"]),
    "models": ("Models", ["models", "sessions.model", "_sansio.model_events"]),
    "tools": ("Tools", ["tools", "sessions.tool"]),
    "stores": ("Stores", ["stores"]),
    "server": ("The agent server and its client", ["server", "client"]),
    "watching": ("Watching it work", ["observability", "log_context"]),
}
OTHERWISE = "signals"

# What is not exported by its name, and is what an exported one takes, gives or has to be.
ALSO = {
    "signals": [
        "signals.options.WorkerOptions",
        "signals.handlers.RegisteredHandler",
        "signals.handlers.HandlerObject",
        "signals.event_bus.EventBus",
        "signals.schedules.Schedules",
        "signals.views.WaitView",
        "signals.views.WaitEdge",
        "signals.views.RunView",
        "signals.views.LockView",
        "records.Run",
        "records.RunResult",
    ],
    "stores": [
        "signals.store.SignalStore",
        "sessions.store.SessionStore",
        "signals.schedule_store.ScheduleStore",
        "signals.store.SignalFilter",
        "signals.store.RunFilter",
    ],
    "sessions": ["conversations.conversations.Conversations"],
    "runtimes": ["signals.runtime.OpenableRuntime"],
}


@attrs.frozen
class Reference:
    """Pages by their paths, and where each name stands: ``reference/x.md#Name``."""

    pages: dict[str, str]
    names: dict[str, str]


def reference() -> Reference:
    """All pages of it."""
    made = Reference({}, {})
    contents: dict[str, dict[str, object]] = {part: {} for part in PARTS}
    for name in sorted(concorde_trio.__all__, key=str.lower):
        contents[_part(concorde_trio._HOMES[name])][name] = getattr(concorde_trio, name)
    for part, paths in ALSO.items():
        contents[part] |= {path.rpartition(".")[2]: _imported(path) for path in paths}
    for part, (title, _) in PARTS.items():
        _page(made, part, title, f"Import these from `concorde_trio`{_but(part)}.", contents[part])
    _module(made, "events", "Events", concorde_trio.events, "Import these from `concorde_trio.events`.")
    _module(made, "exceptions", "Exceptions", concorde_trio.errors, "Import these from `concorde_trio.errors`.")
    _module(made, "testing", "Testing", concorde_trio.testing, "Import these from `concorde_trio.testing`.")
    _module(made, "simulate", "Simulate", concorde_trio.simulate, "Import these from `concorde_trio.simulate`.")
    _module(made, "documents", "Documents", concorde_trio.documents, "Import these from `concorde_trio.documents`.")
    made.pages["reference/routes.md"] = routes()
    made.pages["reference/commands.md"] = commands()
    return made


def _part(home: str) -> str:
    """The page of a home: the one that names the most of it."""
    found = [
        (len(prefix), part)
        for part, (_, homes) in PARTS.items()
        for prefix in homes
        if home == prefix or home.startswith((f"{prefix}.", f"{prefix}_"))
    ]
    return max(found)[1] if found else OTHERWISE


def _but(part: str) -> str:
    if part not in ALSO:
        return ""
    places = "; ".join(
        f"`{path.rpartition('.')[2]}` is in `concorde_trio.{path.rpartition('.')[0]}`" for path in ALSO[part]
    )
    return f" ({places})"


def _imported(path: str) -> object:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"concorde_trio.{module}"), name)


def _module(made: Reference, part: str, title: str, module: ModuleType, intro: str) -> None:
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__
    ]
    law = markdown((module.__doc__ or "").partition("\n\n")[0])
    _page(made, part, title, f"{law}\n\n{intro}", {name: getattr(module, name) for name in names})


def _page(made: Reference, part: str, title: str, intro: str, contents: dict[str, object]) -> None:
    path = f"reference/{part}.md"
    lines = [f"# {title}", intro]
    for name, item in contents.items():
        # An event or a document is not what somebody means who writes of a model's CallStarted, or of a session.
        made.names.setdefault(name, f"{path}#{name}")
        lines += _item(item, name)
    made.pages[path] = "\n\n".join(lines) + "\n"


def _item(item: object, name: str) -> Iterator[str]:
    yield f"## `{name}` {{ #{name} }}"
    if isinstance(item, Mapping):
        yield f"A mapping of names to functions: {', '.join(f'`{key}`' for key in item)}."
        return
    if is_typeddict(item):
        yield fields(item, name)
        yield markdown(item.__doc__ or "")
        return
    yield signature(item, name)
    yield markdown(inspect.getdoc(item) or "")
    if not inspect.isclass(item):
        return
    if issubclass(item, enum.Enum):
        yield ", ".join(f"`{member.name}` ({member.value!r})" for member in item)
        return
    for attribute in _public(item):
        value = inspect.getattr_static(item, attribute)
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        yield f"### `{name}.{attribute}` {{ #{name}.{attribute} }}"
        if isinstance(function, property):
            yield markdown(inspect.getdoc(function) or "")
        else:
            yield signature(getattr(item, attribute), f"{name}.{attribute}")
            yield markdown(inspect.getdoc(getattr(item, attribute)) or "")


def _public(item: type) -> list[str]:
    """Methods and properties with a docstring, those of bases of this package too, in the order of the source."""
    found: dict[str, None] = {}
    for owner in reversed(item.__mro__):
        if not owner.__module__.startswith("concorde_trio"):
            continue
        for attribute, value in vars(owner).items():
            function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if attribute.startswith("_") or not (isinstance(function, property) or inspect.isfunction(function)):
                continue
            if inspect.getdoc(function):
                found[attribute] = None
    return list(found)


def commands() -> str:
    """The page of the command: each with what ``--help`` says."""
    lines = ["# Commands", "What `concorde-trio COMMAND --help` says."]
    context = click.Context(program, info_name="concorde-trio", max_content_width=100)
    lines.append(f"```text\n{program.get_help(context)}\n```")
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, max_content_width=100)
        lines += [f"## `concorde-trio {name}` {{ #{name} }}", f"```text\n{command.get_help(inner)}\n```"]
    return "\n\n".join(lines) + "\n"
