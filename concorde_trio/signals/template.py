"""``template_handler``: a handler written as a text with holes, one prompt a signal.

The law of this module: a template is data, so it is compiled and checked where it is written, rendered strictly
(a name that is not there is an error, never an empty place) and never escaped: a prompt is no HTML.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs
from jinja2 import Template, TemplateSyntaxError, meta

from concorde_trio.errors import InvalidHandler, TemplateError
from concorde_trio.records import JSON, Prompt, Signal
from concorde_trio.signals.handlers import PostFunction, SignalHandler, is_async_function
from concorde_trio.signals.template_sandbox import LIMIT, BoundedEnvironment, bounded_range

T = TypeVar("T")

_FILE = "<prompt template>"


def template_handler(
    text: str,
    *,
    session: str | Callable[[Signal], str | None] | None = None,
    data: Mapping[str, Any] | Callable[[Signal], Mapping[str, Any]] | None = None,
    resources: Sequence[str] | Callable[[Signal], Sequence[str]] = (),
    tag: str | Callable[[Signal], str | None] | Callable[[], str] | None = None,
    usage_limit: int | Callable[[Signal], int | None] | None = None,
    context: JSON | Callable[[Signal], JSON] = None,
    time_limit: float | Callable[[Signal], float | None] | None = None,
    post: PostFunction | None = None,
) -> SignalHandler:
    """A handler that makes one prompt of each signal, by a Jinja template. It is repeatable (CLM-6).

    ``text`` sees ``signal`` (id, seq, kind, payload, emitted_at), ``tag`` if there is one, ``data``, and the fields
    of ``data`` by their own names. ``data`` is the payload when that is an object, unless said otherwise. A field
    called signal, tag or data is reached as ``data["tag"]``: what comes from outside can't stand in for them.

    The other arguments are those of Prompt. Each is a value or a plain function of the signal, or one without
    arguments: ``tag=new_tag``. Because handle may be run again after a crash, they should have no effects.

    Raises TemplateError, with the line, for a template that does not compile, and InvalidHandler, InvalidPrompt or
    InvalidName for wrong arguments. When a signal is handled, a template that can't be rendered gives a TemplateError
    that names the kind; what the functions raise travels as it is. The sandbox is bounded: see ``template_sandbox``.
    """
    template = _compile(text)
    given = {
        "session": session,
        "resources": resources,
        "tag": tag,
        "usage_limit": usage_limit,
        "context": context,
        "time_limit": time_limit,
    }
    functions = {name: _function(name, value) for name, value in given.items() if callable(value)}
    values: dict[str, Any] = {name: value for name, value in given.items() if not callable(value)}
    Prompt(text="", **values)  # What is wrong already is said now.
    if not callable(data) and not isinstance(data, Mapping | None):
        raise InvalidHandler(f"data must be a mapping, or a function of the signal that gives one, not {data!r:.80}")
    return SignalHandler(
        handle=_TemplateHandle(
            template=template,
            values=values,
            functions=functions,
            data=_function("data", data) if callable(data) else data,
        ),
        post=post,
        repeatable=True,
    )


@attrs.frozen(kw_only=True)
class _TemplateHandle:
    """The handle phase: functions first, then the text."""

    template: Template
    values: Mapping[str, Any]
    functions: Mapping[str, Callable[[Signal], Any]]
    data: Mapping[str, Any] | Callable[[Signal], Any] | None

    def __call__(self, signal: Signal) -> list[Prompt]:
        fields = {**self.values}
        for name, function in self.functions.items():
            fields[name] = function(signal)
        names = {**self._data(signal)}
        names |= {"data": dict(names), "signal": signal, "range": bounded_range()}
        if fields["tag"] is None:
            names.pop("tag", None)  # A template that wants a tag where there is none is wrong.
        else:
            names["tag"] = fields["tag"]
        return [Prompt(text=self._render(signal.kind, names), **fields)]

    def _data(self, signal: Signal) -> Mapping[str, Any]:
        if self.data is None:
            return signal.payload if isinstance(signal.payload, dict) else {}
        if not callable(self.data):
            return self.data
        found = self.data(signal)
        if not isinstance(found, Mapping):
            raise TemplateError(
                f"data of the template handler of {signal.kind!r} gave {type(found).__name__} {found!r:.80}, not a mapping"
            )
        return found

    def _render(self, kind: str, names: dict[str, Any]) -> str:
        parts: list[str] = []
        size = 0
        try:
            for part in self.template.generate(names):
                size += len(part)
                if size > LIMIT:
                    raise OverflowError(f"its text has more than {LIMIT} characters")
                parts.append(part)
        except Exception as error:
            raise TemplateError(
                f"the template of {kind!r} could not be rendered{_line(error)}: {type(error).__name__}: {error}"
            ) from error
        return "".join(parts)


@functools.cache
def _environment() -> BoundedEnvironment:
    return BoundedEnvironment()


def _compile(text: str) -> Template:
    if not isinstance(text, str):
        fix = "; read it first: path.read_text()" if hasattr(text, "read_text") else ""
        raise TemplateError(f"a template must be text, not {type(text).__name__} {text!r:.80}{fix}")
    environment = _environment()
    try:
        parsed = environment.parse(text)
        if any(True for _ in meta.find_referenced_templates(parsed)):
            raise TemplateError("a template can't include, import or extend another; put it all into one text")
        code = environment.compile(parsed, filename=_FILE)
    except TemplateSyntaxError as error:
        lines = text.splitlines()
        shown = lines[error.lineno - 1].strip() if 0 < error.lineno <= len(lines) else ""
        raise TemplateError(
            f"the template does not compile: line {error.lineno}: {error.message}: {shown!r:.120}"
        ) from error
    return Template.from_code(environment, code, environment.globals)


def _line(error: BaseException) -> str:
    traceback, line = error.__traceback__, 0
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _FILE:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return f" (line {line})" if line else ""


def _function(name: str, function: Callable[..., T]) -> Callable[[Signal], T]:
    """``function`` as a function of the signal. Raises InvalidHandler if it is none."""
    if is_async_function(function):
        raise InvalidHandler(
            f"{name} of a template handler must be a plain function; write an async handle function instead"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return function  # Some built-ins have none to look at.
    for arguments in (("signal",), ()):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return function if arguments else lambda signal: function()
    raise InvalidHandler(f"{name} of a template handler must be callable as {name}(signal), this is {name}{signature}")
