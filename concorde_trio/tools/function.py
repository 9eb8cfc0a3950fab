"""``@tool``: a typed Python function as something a model may call.

The law: the function is the tool. Its name, docstring and annotations are what the model is told, its arguments are
checked before it is called, and a plain function runs in a thread, so that it freezes nobody (SES-13).
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, get_args, overload

from concorde_trio._sansio.model_events import ToolSpec
from concorde_trio.errors import TooManyThreads, UsageError
from concorde_trio.sessions.tool import TIMEOUT, ExecKind, ToolContext, ToolResult
from concorde_trio.tools.docstrings import read_docstring
from concorde_trio.tools.results import as_result
from concorde_trio.tools.schema import Parameters
from concorde_trio.tools.threads import in_thread

P = ParamSpec("P")
R = TypeVar("R")

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class FunctionTool(Generic[P, R]):
    """Made by ``tool``. A Tool, and still the function when it is called."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None,
        description: str | None,
        timeout: float,
        concurrent: bool,
        kind: ExecKind,
    ) -> None:
        if isinstance(function, FunctionTool):  # under another name, say
            function = function.__wrapped__
        if not (inspect.isfunction(function) or inspect.ismethod(function)):
            raise UsageError(
                f"a tool is made of a function, plain or async, or a bound method, not of {function!r:.80}"
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(
                f"the tool {function.__name__} yields; a tool returns one result: collect it, and return it"
            )
        name = check_tool_name(function.__name__ if name is None else name)
        said = read_docstring(function.__doc__)
        parameters = Parameters(function, name, said.parameters)
        functools.update_wrapper(self, function)
        self.__wrapped__: Callable[P, R] = function
        self._parameters = parameters
        self._is_async = inspect.iscoroutinefunction(function)
        self.spec = ToolSpec(
            name=name,
            description=said.description if description is None else description,
            parameters=parameters.schema,
        )
        self.timeout = check_timeout(timeout)
        self.concurrent = concurrent
        self.kind = check_kind(kind)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself, without any check."""
        return self.__wrapped__(*args, **kwargs)

    async def call(self, arguments: Mapping[str, Any], context: ToolContext, /) -> ToolResult:
        """Check the arguments, call the function, and make a result of what it returns. What it raises is raised."""
        bound = self._parameters.bind(arguments, context)
        if isinstance(bound, str):
            return ToolResult(bound, is_error=True)
        call: Callable[[], Any] = functools.partial(self.__wrapped__, *bound.args, **bound.kwargs)
        value: Any
        if self._is_async:
            value = await call()
        else:
            try:
                value = await in_thread(call, context, self.spec.name, tell=self._told)
            except TooManyThreads as error:
                return ToolResult(str(error), is_error=True)
            if inspect.isawaitable(value):  # a plain function around an async one
                value = await value
        return as_result(value, self.spec.name)

    def _told(self, value: Any) -> str | None:
        if inspect.iscoroutine(value):
            value.close()
            return None
        return as_result(value, self.spec.name).text

    def __repr__(self) -> str:
        return f"<tool {self.spec.name}>"


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    timeout: float = ...,
    concurrent: bool = ...,
    kind: ExecKind = ...,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    timeout: float = TIMEOUT,
    concurrent: bool = False,
    kind: ExecKind = "execute",
) -> Any:
    """Make a tool of a typed function, ``@tool`` or ``@tool(timeout=5)``; what it gives can still be called.

    ``name``: 1 to 64 of ``A-Z a-z 0-9 _ -`` (default: the function's). ``description`` (default: the docstring, without its
    section of parameters, which describes those). ``timeout``: seconds that a call may take. ``concurrent``: whether its
    neighbours in a reply may run at the same time. ``kind``: what a policy is told of it (SES-18).

    The JSON Schema comes from the annotations; a parameter annotated ``ToolContext`` gets the context instead. Arguments
    that do not fit give an error result, and the function is not called. It returns a string, a JSON value, a
    ToolResult, or None. An async function runs in the session's nursery and is cancelled at its timeout. A plain one runs
    in a thread, which cannot be stopped: it may ask ``trio.from_thread.check_cancelled()``. UsageError for what can be no tool.
    """
    make = functools.partial(
        FunctionTool, name=name, description=description, timeout=timeout, concurrent=concurrent, kind=kind
    )
    return make if function is None else make(function)


def check_tool_name(name: str) -> str:
    """The name; UsageError unless every provider takes it."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"a tool's name is 1 to 64 of A-Z, a-z, 0-9, _ and -, not {name!r:.80}; give it another by name="
        )
    return name


def check_timeout(timeout: float) -> float:
    """The seconds; UsageError unless they are a finite number above 0."""
    good = isinstance(timeout, int | float) and not isinstance(timeout, bool) and 0 < timeout < math.inf
    if not good:
        raise UsageError(f"a tool's timeout is a number of seconds above 0, not {timeout!r:.80}")
    return float(timeout)


def check_kind(kind: ExecKind) -> ExecKind:
    """The kind; UsageError unless it is one."""
    if kind not in get_args(ExecKind):
        raise UsageError(f"a tool's kind is one of {', '.join(get_args(ExecKind))}, not {kind!r:.80}")
    return kind
