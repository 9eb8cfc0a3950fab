"""The Jinja environment of template handlers: sandboxed, strict, and bounded in what it may make.

The law of this module: what a template makes is measured before it is made. Jinja's sandbox keeps a template from
reaching Python; it does not keep ``'x' * 10**10`` or a doubled string from taking the worker's memory. The bound is
against accidents and the usual tricks of a payload; it is no wall against the author of the template.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

from jinja2 import StrictUndefined, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

LIMIT = 1_000_000
"""The most characters or items that one value, or the whole text, may have."""
BITS_LIMIT = 100_000
"""The most bits that a whole number may have."""
STEPS_LIMIT = 1_000_000
"""The most steps that all ranges of one rendering may have together."""

_BIG_NUMBER = re.compile(r"\d{7,}")
_WIDTH_FROM_VALUES = re.compile(r"\{[^{}]*\{|%[^%a-zA-Z]*\*")


class TooLarge(OverflowError):
    """A template would have made something larger than it may."""


class _Concatenation(CodeGenerator):
    """Compiles ``~``, which Jinja offers no way to intercept."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.concatenate((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """No loader, nothing escaped, every undefined name an error, every value bounded."""

    intercepted_binops = frozenset({"*", "**", "+", "%"})
    code_generator_class = _Concatenation

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
        del self.globals["lipsum"]
        for name in ("batch", "center", "format", "indent", "join", "replace", "round", "slice", "wordwrap"):
            self.filters[name] = _bounded(name, self.filters[name])

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            for sequence, times in ((left, right), (right, left)):
                if isinstance(times, int) and (size := _size(sequence)):
                    _check(size * times)
            if isinstance(left, int) and isinstance(right, int):
                _check_bits(left.bit_length() + right.bit_length())
        elif operator == "**":
            if isinstance(left, int) and isinstance(right, int) and right > 0:
                _check_bits(left.bit_length() * right)
        elif operator == "+":
            _check(_size(left) + _size(right))
        elif isinstance(left, str):
            _check_format(left, right if isinstance(right, tuple) else (right,))
        return super().call_binop(context, operator, left, right)

    def concatenate(self, parts: Iterable[Any]) -> str:
        """``a ~ b ~ c``."""
        texts = [str(part) for part in parts]
        _check(sum(map(len, texts)))
        return "".join(texts)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, str | bytes) and attr == "translate":
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        method = getattr(obj, "__wrapped__", obj)  # str.format is wrapped by the sandbox
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str | bytes):
            args = _check_call(method.__name__, owner, args, kwargs)
        return super().call(context, obj, *args, **kwargs)


def bounded_range() -> Callable[..., range]:
    """A ``range`` for one rendering: nested ranges share its bound, which Jinja's own has for each by itself."""
    left = STEPS_LIMIT

    def take(*arguments: int) -> range:
        nonlocal left
        wanted = range(*arguments)
        left -= len(wanted)
        if left < 0:
            raise TooLarge(f"the ranges of one template may have {STEPS_LIMIT} steps together, this is more")
        return wanted

    return take


def _bounded(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    skip = 1 if hasattr(original, "jinja_pass_arg") else 0

    @functools.wraps(original)
    def bounded(*args: Any, **kwargs: Any) -> Any:
        if len(args) > skip:
            value, *rest = args[skip:]
            if name == "join":
                value = list(value)
            args = (*args[:skip], value, *_check_call(name, value, tuple(rest), kwargs))
        return original(*args, **kwargs)

    return bounded


def _check_call(name: str, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Measure a method of a string, or a filter, before it is called; the arguments, iterators made into lists."""
    given = (*args, *kwargs.values())
    if name == "join":
        return _check_join(owner, args, kwargs)
    if name in ("format", "format_map"):
        values = given[0].values() if name == "format_map" and given and isinstance(given[0], dict) else given
        _check_format(str(owner), values)
        return args
    for value in given:
        if isinstance(value, int):
            _check(value)
    if name == "replace" and len(given) >= 2:
        old, new = str(given[0]), str(given[1])
        _check(len(str(owner)) + str(owner).count(old) * len(new))
    elif name in ("indent", "wordwrap"):
        lines = str(owner).count("\n") + 1 if name == "indent" else len(str(owner))
        width = max((_size(value) or (value if name == "indent" else 0) for value in given), default=0)
        _check(len(str(owner)) + lines * width)
    return args


def _check_join(owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    if isinstance(owner, list):  # the filter: a list, joined by its first argument
        parts, between = owner, str(args[0]) if args else str(kwargs.get("d", ""))
    else:  # the method: a string, which joins its first argument
        parts, between = list(args[0]) if args else [], owner
        args = (parts, *args[1:])
    _check(sum(_size(part) for part in parts) + len(between) * len(parts))
    return args


def _check_format(text: str, values: Iterable[Any]) -> None:
    values = tuple(values)
    if found := _BIG_NUMBER.search(text):
        raise TooLarge(f"a width of {found.group()} in a format is more than a template may make ({LIMIT})")
    if _WIDTH_FROM_VALUES.search(text):  # otherwise a large number is just a number to be written
        for value in values:
            if isinstance(value, int):
                _check(value)
    _check(len(text) + sum(map(_size, values)) * (text.count("{") + text.count("%")))


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else 0


def _check(size: int) -> None:
    if size > LIMIT:
        raise TooLarge(f"a value of {size} characters, items or units is more than a template may make ({LIMIT})")


def _check_bits(bits: int) -> None:
    if bits > BITS_LIMIT:
        raise TooLarge(f"a number of {bits} bits is more than a template may make ({BITS_LIMIT})")
