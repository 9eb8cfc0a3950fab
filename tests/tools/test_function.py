"""``@tool``: what a model is told of a function, and what becomes of its arguments and results."""

from __future__ import annotations

import dataclasses
import enum
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import attrs
import pytest
import trio

from concorde_trio import ToolContext, ToolResult, tool
from concorde_trio.errors import UsageError
from concorde_trio.testing.tool_context import tool_context


class Unit(enum.Enum):
    CELSIUS = "C"
    KELVIN = "K"


@attrs.frozen
class Place:
    city: str
    country: str | None = None


@dataclasses.dataclass
class Span:
    days: int = 1


class Extra(TypedDict, total=False):
    note: str


async def forecast(
    place: Place,
    /,
    span: Span | None = None,
    *,
    unit: Unit = Unit.CELSIUS,
    detail: Literal["low", "high"] = "low",
    tags: Annotated[set[str], "words to look for"] = frozenset(),  # type: ignore[assignment]
    extra: Extra | None = None,
    limits: dict[str, tuple[int, int]] | None = None,
    context: ToolContext,
) -> dict[str, Any]:
    """Tell the weather.

    More of it:
    in two lines.

    Args:
        place: Where. It may
            be abroad.
        span (Span): How long.

    Returns:
        What it will be.
    """
    return {"place": place, "span": span, "unit": unit, "tags": tags, "of": context.session}


async def call(function: Any, **arguments: Any) -> ToolResult:
    async with tool_context(session="ann") as context:
        return await (function if hasattr(function, "spec") else tool(function)).call(arguments, context)


def test_the_schema_comes_from_annotations_and_docstring() -> None:
    """SES-13: what a model is told is what is accepted; the context is not in it."""
    spec = tool(forecast).spec
    assert spec.name == "forecast"
    assert spec.description == "Tell the weather.\n\nMore of it:\nin two lines.\n\nReturns: What it will be."
    schema = spec.parameters
    assert schema["type"] == "object"
    assert schema["required"] == ["place"]
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == {"place", "span", "unit", "detail", "tags", "extra", "limits"}
    assert schema["properties"]["place"]["description"] == "Where. It may\nbe abroad."
    assert schema["properties"]["span"]["description"] == "How long."
    assert schema["properties"]["unit"]["default"] == "C"
    assert schema["properties"]["detail"] == {"enum": ["high", "low"], "default": "low"}
    assert schema["properties"]["tags"]["description"] == "words to look for"
    assert set(schema["$defs"]) == {"Place", "Span", "Unit", "Extra"}


@pytest.mark.parametrize(
    "docstring",
    [
        "Say.\n\n    Args:\n        text (str): What.\n    ",
        "Say.\n\n    Parameters\n    ----------\n    text : str\n        What.\n    ",
        "Say.\n\n    :param text: What.\n    :type text: str\n    ",
    ],
)
def test_the_three_styles_of_docstrings_are_read(docstring: str) -> None:
    """Google, numpy, Sphinx."""

    def say(text: str) -> None: ...

    say.__doc__ = docstring
    spec = tool(say).spec
    assert (spec.description, spec.parameters["properties"]["text"]["description"]) == ("Say.", "What.")


async def test_arguments_come_as_the_types_that_the_function_names() -> None:
    """Nested classes, enums and sets; defaults are the function's own."""
    result = await call(forecast, place={"city": "Rome"}, span={"days": 3.0}, unit="K", tags=["x"])
    assert not result.is_error
    assert result.text == (
        '{"place": {"city": "Rome", "country": null}, "span": {"days": 3}, "unit": "K", "tags": ["x"], "of": "ann"}'
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, ["missing required field `place`"]),
        ({"place": {"city": 3}}, ["expected `str`, got `int`", "place.city", "it was 3"]),
        ({"place": {"city": "x"}, "extra": 1}, ["expected `object", "got `int`", "extra"]),
        ({"place": {"city": "x"}, "detail": "much"}, ["'much'", "detail"]),
        ({"place": {"city": "x"}, "span": {"days": 1.5}}, ["expected `int`, got `float`", "span.days", "1.5"]),
        ({"place": {"city": "x"}, "span": {"days": True}}, ["expected `int`, got `bool`"]),
        ({"place": {"city": "x"}, "when": "now"}, ["unknown field `when`", "place, span, unit"]),
        ({"place": {"city": "x" * 500}, "tags": [1]}, ["expected `str`, got `int`"]),
    ],
)
async def test_arguments_that_do_not_fit_are_an_error_result_and_nothing_is_called(
    arguments: dict[str, Any], words: list[str]
) -> None:
    """SES-13: the place, what was expected, what came."""
    called = False

    async def look(place: Place, span: Span | None = None, detail: Literal["low"] = "low", tags: list[str] | None = None, extra: Extra | None = None, unit: int = 0) -> None:  # fmt: skip
        nonlocal called
        called = True

    result = await call(forecast if "when" in arguments else look, **arguments)
    assert result.is_error
    assert not called
    assert "was not run" in result.text
    for each in words:
        assert each in result.text


@attrs.frozen
class Fickle:
    value: int

    def __attrs_post_init__(self) -> None:
        raise RuntimeError("never on a Monday")


async def test_a_class_that_refuses_its_values_is_an_error_result() -> None:
    """Its own words are in it."""
    result = await call(lambda_of(Fickle), thing={"value": 1})
    assert result.is_error
    assert "never on a Monday" in result.text


def lambda_of(kind: Any) -> Any:
    async def take(thing: Any) -> None: ...

    take.__annotations__ = {"thing": kind}
    return tool(take)


class Opaque:
    """Something that JSON cannot tell."""


class Shelf:
    """Has a method that is a tool."""

    def __init__(self) -> None:
        self.books = ["one"]

    async def lend(self, number: int) -> str:
        """Lend a book."""
        return self.books[number]


def _generator(x: int) -> Iterator[int]:
    yield x


async def _async_generator(x: int) -> AsyncIterator[int]:
    yield x


def _no_annotation(x) -> None: ...  # type: ignore[no-untyped-def]


def _any_number(*x: int) -> None: ...


def _opaque(x: list[Opaque]) -> None: ...


def _function(x: Callable[[], Awaitable[None]]) -> None: ...


def _path(where: Path) -> None: ...


def _union(x: Place | Span) -> None: ...


def _unknown(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tool(_no_annotation), ["parameter x of the tool _no_annotation", "x: str"]),
        (lambda: tool(Shelf.lend), ["self", "tool(thing.method)"]),
        (lambda: tool(_any_number), ["parameter x", "any number"]),
        (lambda: tool(_opaque), ["parameter x", "Opaque", "Use str"]),
        (lambda: tool(_function), ["parameter x", "Use str"]),
        (lambda: tool(_path), ["parameter where", "Path"]),
        (lambda: tool(_union), ["parameter x", "unions"]),
        (lambda: tool(_unknown), ["_unknown", "Nowhere", "TYPE_CHECKING"]),
        (lambda: tool(_generator), ["yields"]),
        (lambda: tool(_async_generator), ["yields"]),
        (lambda: tool(Opaque()), ["a function"]),  # type: ignore[call-overload]
        (lambda: tool(name="a b")(_path), ["'a b'", "1 to 64"]),
        (lambda: tool(lambda: None), ["<lambda>", "name="]),
        (lambda: tool(timeout=0)(forecast), ["seconds above 0"]),
        (lambda: tool(timeout=float("inf"))(forecast), ["seconds above 0"]),
        (lambda: tool(kind="delete")(forecast), ["read, write, execute, network"]),  # type: ignore[arg-type, call-overload]
    ],
)
def test_what_can_be_no_tool_is_refused_where_it_is_defined(make: Callable[[], object], words: list[str]) -> None:
    """The parameter and the fix are named."""
    with pytest.raises(UsageError) as caught:
        make()
    for each in words:
        assert each in str(caught.value)


async def test_a_tool_is_still_its_function_and_a_bound_method_can_be_one() -> None:
    """``tool(other)`` gives it under another name."""
    lend = tool(Shelf().lend)
    assert await lend(0) == "one"
    assert (await call(lend, number=0)).text == "one"
    assert (lend.__name__, lend.__doc__) == ("lend", "Lend a book.")
    other = tool(name="borrow", description="Borrow one.", timeout=5, concurrent=True, kind="read")(lend)
    assert (other.spec.name, other.spec.description, other.timeout, other.concurrent, other.kind) == (
        "borrow", "Borrow one.", 5, True, "read",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text", "is_error"),
    [
        ("as it is\n", "as it is\n", False),
        (ToolResult("mine", is_error=True, path="/x"), "mine", True),
        (None, "done", False),
        ([1, {"a": None}, "é"], '[1, {"a": null}, "é"]', False),
        ({1: Place("x")}, '{"1": {"city": "x", "country": null}}', False),
        (False, "false", False),
        (b"raw", "neither text nor JSON", True),
        (float("nan"), "neither text nor JSON", True),
        (Opaque(), "Opaque", True),
    ],
)
async def test_what_a_function_returns_becomes_text(value: Any, text: str, is_error: bool) -> None:
    """A string as it is, other values as JSON, what is neither as an error that says so."""

    async def give() -> Any:
        return value

    result = await call(give)
    assert result.is_error is is_error
    assert text in result.text
    assert is_error or result.text == text


async def test_a_value_that_contains_itself_is_an_error_result() -> None:
    """It is no crash."""

    async def give() -> Any:
        value: list[Any] = []
        value.append(value)
        return value

    assert (await call(give)).is_error


async def test_a_plain_function_runs_in_a_thread_that_says_whose_it_is() -> None:
    """SES-13: in a thread of its own; what it raises is raised."""

    def who() -> str:
        """Say."""
        return threading.current_thread().name

    def broken() -> str:
        raise LookupError("gone")

    assert (await call(who)).text == "who of ann"
    with pytest.raises(LookupError, match="gone"):
        await call(broken)


async def test_a_plain_function_around_an_async_one_is_awaited() -> None:
    """In Trio's own thread."""

    async def inner() -> str:
        await trio.lowlevel.checkpoint()
        return threading.current_thread().name

    def outer() -> Any:
        return inner()

    assert (await call(outer)).text == threading.current_thread().name
