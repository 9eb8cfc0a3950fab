"""A function's parameters as a JSON Schema, and the check of arguments against it. msgspec does both.

The law: schema and check come from the same annotations, so what a model was told is what is accepted. What cannot be in
a schema is a UsageError where the tool is defined; what does not fit is a sentence for the model, never an exception.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import msgspec

from concorde_trio.errors import UsageError
from concorde_trio.failures import describe
from concorde_trio.sessions.tool import ToolContext

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_EXACT = 2**53  # beyond it a float is no certain integer


@attrs.frozen
class Bound:
    """Arguments as the function takes them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Parameters:
    """The parameters of a function: ``schema``, a JSON Schema of an object, and ``bind``.

    ``said``: descriptions by parameter, for those whose annotation has none of its own (``Annotated[str, "what it is"]``
    or ``msgspec.Meta(description=...)``). A parameter annotated ToolContext gets the context and is not in the schema.
    """

    def __init__(self, function: Callable[..., Any], name: str, said: Mapping[str, str]) -> None:
        self._tool = name
        self._all = inspect.signature(function).parameters
        hints = _hints(function, name)
        self._context = {each for each in self._all if hints.get(each) is ToolContext}
        fields = [each for each in self._all.values() if each.name not in self._context]
        for each in fields:
            _check(each, hints, name)
        self._names = [each.name for each in fields]
        # The fields have names of ours: a parameter may be called as something that a Struct already has.
        self._struct = msgspec.defstruct(
            "arguments",
            [
                (f"p{number}", hints[each.name])
                if each.default is inspect.Parameter.empty
                else (f"p{number}", typing.Union[hints[each.name], msgspec.UnsetType], msgspec.UNSET)  # noqa: UP007
                for number, each in enumerate(fields)
            ],
            rename=dict(zip((f"p{number}" for number in range(len(fields))), self._names, strict=True)),
            forbid_unknown_fields=True,
            kw_only=True,
        )
        self.schema = self._schema(fields, hints, said)

    def _schema(
        self, fields: list[inspect.Parameter], hints: Mapping[str, Any], said: Mapping[str, str]
    ) -> dict[str, Any]:
        (top,), parts = msgspec.json.schema_components([self._struct], ref_template="#/$defs/{name}")
        schema = {key: value for key, value in parts.pop(top["$ref"].rpartition("/")[2]).items() if key != "title"}
        for each in fields:
            here = schema["properties"][each.name]
            words = _own_words(hints[each.name]) or said.get(each.name)
            if words:
                here.setdefault("description", words)
            if each.default is not inspect.Parameter.empty:
                default = _plain(each.default)
                if default is not msgspec.UNSET:
                    here["default"] = default
        if parts:
            schema["$defs"] = parts
        return schema

    def bind(self, arguments: Mapping[str, Any], context: ToolContext) -> Bound | str:
        """The arguments as the function takes them, or a sentence that says which does not fit, and what was expected."""
        try:
            values = self._convert(dict(arguments))
        except msgspec.ValidationError as error:
            return self._complaint(str(error), arguments)
        except Exception as error:  # noqa: BLE001 - a class of the user's refused its values in its own way
            return self._complaint(describe(error), arguments)
        args, kwargs = [], {}
        for parameter in self._all.values():
            name = parameter.name
            value = context if name in self._context else values[name]
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
                args.append(parameter.default if value is msgspec.UNSET else value)
            elif value is not msgspec.UNSET:
                kwargs[name] = value
        return Bound(tuple(args), kwargs)

    def _convert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            found = msgspec.convert(arguments, self._struct)
        except msgspec.ValidationError:
            folded = _integers(arguments)  # to JSON Schema 3.0 is an integer, and models write it
            if folded == arguments and repr(folded) == repr(arguments):
                raise
            found = msgspec.convert(folded, self._struct)
        return {name: getattr(found, f"p{number}") for number, name in enumerate(self._names)}

    def _complaint(self, message: str, arguments: Mapping[str, Any]) -> str:
        fault, at, place = message.partition(" - at `$")
        fault, place = fault[:1].lower() + fault[1:], place.rstrip("`")
        if at:
            fault += f" at {place.removeprefix('.')}"
            came = _walk(arguments, place)
            if came is not msgspec.UNSET:
                fault += f", and it was {_shown(came)}"
        expected = ", ".join(self._names) or "none"
        return f"{self._tool} was not run, its arguments do not fit: {fault}. Its arguments are: {expected}."


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    known = {} if "ToolContext" in scope else {"ToolContext": ToolContext}  # often imported for type checkers only
    try:
        return typing.get_type_hints(function, localns=known, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        raise UsageError(
            f"the annotations of the tool {name} cannot be read: {error}. Import or define what they name at the top of "
            "the module, outside `if TYPE_CHECKING`"
        ) from error


def _check(parameter: inspect.Parameter, hints: Mapping[str, Any], tool: str) -> None:
    """UsageError unless it can be in a schema."""
    where = f"the parameter {parameter.name} of the tool {tool}"
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        raise UsageError(f"{where} takes any number of arguments; name each one, or take a list or dict")
    if parameter.name not in hints:
        hint = ". For a method, decorate the bound one: tool(thing.method)" if parameter.name in ("self", "cls") else ""
        raise UsageError(f"{where} has no annotation; write its type, as in `{parameter.name}: str`{hint}")
    try:
        msgspec.json.schema_components([hints[parameter.name]])
        msgspec.json.Decoder(hints[parameter.name])
    except Exception as error:
        reason = str(error).strip().rpartition("\n")[2] or type(error).__name__
        raise UsageError(
            f"{where} has a type that no JSON Schema can tell: {reason}. Use str, int, float, bool, list, dict, tuple, set, "
            "Literal, an Enum, a TypedDict, a dataclass or attrs class, or a union in which JSON tells the parts apart; "
            "Any takes everything"
        ) from error


def _own_words(hint: Any) -> str | None:
    words = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, str)]
    return words[0] if words else None


def _plain(value: Any) -> Any:
    """The value as JSON holds it, UNSET if it does not."""
    try:
        plain = msgspec.to_builtins(value, str_keys=True)
        json.dumps(plain, allow_nan=False)
    except Exception:  # noqa: BLE001 - a sentinel or the like: the schema only says that it need not be given
        return msgspec.UNSET
    return plain


def _integers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    if isinstance(value, dict):
        return {key: _integers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_integers(item) for item in value]
    return value


def _walk(value: Any, path: str) -> Any:
    """What stands at a path of msgspec's, UNSET if that cannot be told."""
    end = 0
    for step in _STEP.finditer(path):
        if step.start() != end:
            return msgspec.UNSET
        end = step.end()
        try:
            value = value[step[1]] if step[1] is not None else value[int(step[2])]
        except (KeyError, IndexError, TypeError):
            return msgspec.UNSET
    return value if end == len(path) else msgspec.UNSET


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
