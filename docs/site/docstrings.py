"""Signatures and docstrings as Markdown.

A docstring is prose with names between two backticks each, which Markdown reads as code too; whatever else Markdown
would read as something is kept as it is written.
"""

from __future__ import annotations

import inspect
import re

CODE = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
ROLE = re.compile(r":(?:class|func|meth|mod|exc):(`[^`]+`)")
ITEM = re.compile(r"^ *(?:[-*]|\d+\.) ")
WIDTH = 100


def markdown(text: str) -> str:
    """A docstring, as Markdown."""
    lines: list[str] = []
    for line in ROLE.sub(r"\1", inspect.cleandoc(text)).split("\n"):
        # A list that follows a sentence at once is no list to every Markdown.
        if ITEM.match(line) and lines and lines[-1] and not ITEM.match(lines[-1]) and not lines[-1].startswith(" "):
            lines.append("")
        lines.append(line)
    pieces = CODE.split("\n".join(lines))
    return "".join(piece if number % 2 else _plain(piece) for number, piece in enumerate(pieces))


def _plain(text: str) -> str:
    """Prose in which no angle bracket is a tag, and no star or underscore is emphasis."""
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"(?<!^)(?<!\n)([*_])", r"\\\1", text)


def signature(item: object, name: str) -> str:
    """How it is called, as a block of Python; empty for what is not called with anything."""
    if inspect.isclass(item) and (issubclass(item, BaseException) or getattr(item, "_is_protocol", False)):
        return f"```python\nclass {name}({', '.join(base.__name__ for base in item.__bases__)})\n```"
    try:
        found = inspect.signature(item)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    shown = [_parameter(parameter) for parameter in _without_self(found)]
    kind = "async " if inspect.iscoroutinefunction(item) or inspect.isasyncgenfunction(item) else ""
    gives = (
        "" if found.return_annotation in (inspect.Signature.empty, "None", None) else f" -> {found.return_annotation}"
    )
    if len(line := f"{kind}{name}({', '.join(shown)}){gives}") > WIDTH:
        line = f"{kind}{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){gives}"
    return f"```python\n{line}\n```"


def _without_self(found: inspect.Signature) -> list[inspect.Parameter | str]:
    """The parameters, with the bare star and slash that say how they are given."""
    parameters = [parameter for parameter in found.parameters.values() if parameter.name not in ("self", "cls")]
    shown: list[inspect.Parameter | str] = []
    starred = False
    for number, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            starred = True
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
            starred = True
        shown.append(parameter)
        after = parameters[number + 1].kind if number + 1 < len(parameters) else None
        if parameter.kind is parameter.POSITIONAL_ONLY and after is not parameter.POSITIONAL_ONLY:
            shown.append("/")
    return shown


def _parameter(parameter: inspect.Parameter | str) -> str:
    if isinstance(parameter, str):
        return parameter
    # A default that is an object without a literal is told of in words; its address would be another at each build.
    text = re.sub(r"(?<== )<.*", "...", re.sub(r"(?<== )(?:NOTHING|Factory\(.*)", "...", str(parameter)))
    return re.sub(r"(?<==)<.*", "...", re.sub(r": '([^']*)'", r": \1", text))


def fields(item: object, name: str) -> str:
    """A document: its fields and their types, those of the documents that it extends too."""
    found: dict[str, str] = {}
    for key, kind in inspect.get_annotations(item).items():  # type: ignore[arg-type]
        found[key] = getattr(kind, "__forward_arg__", None) or str(kind)
    lines = "".join(f"    {key}: {kind}\n" for key, kind in found.items())
    return f"```python\nclass {name}(TypedDict):\n{lines}```"
