"""What a route takes and what it answers, said once: requests are read by it, and the OpenAPI document says it (SRV-5).

The law: a route without a declaration does not pass the tests, and what a declaration says is what the route does: its
fields are read and refused by their kinds, and every answer and error that it can give is in it.

To add a route, declare it and serve it::

    WATCH = Operation(
        "GET",
        "/things/<thing>/watch",
        "watch_thing",
        "Everything that one thing does.",
        tag="Things",
        fields=(
            path("thing", Name("thing"), "Its name."),
            query("kind", Name("kind"), "Only what is of this kind."),
            header("Last-Event-ID", Text(), "The last event that was seen."),
        ),
        answers=(Answer(200, "Events until the server stops.", media_type="text/event-stream"),),
        refusals={404: "There is no such thing."},
    )

    @serve(routes, WATCH)          # of ``asked``; routes: a Blueprint
    async def watch(asked: Asked) -> Response:
        kind = asked["kind"]       # read and checked; None, or the field's default, when it was not given

A route that reads its request itself (a page, a form) is only described, between Quart's decorator and the function; it must
refuse by itself what is not declared::

    @routes.post("/form")
    @describe(FORM)
    async def form() -> Response:
        check_parameters(FORM)     # of ``asked``, too

What every route of its ``scope`` and method can answer (400, 401, 403, 413, 421, 431, 503, ...) need not be said. Kinds of
fields are in ``values``; shapes of answers are TypedDicts, in ``concorde_trio.documents``.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar, cast

import attrs

from concorde_trio.server.values import DEFAULT_LIMIT, LARGEST_LIMIT, Kind, Schema, Whole

Place: TypeAlias = Literal["path", "query", "header", "body"]
Method: TypeAlias = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
ViewT = TypeVar("ViewT", bound=Callable[..., Awaitable[Any]])

JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"


class Scope(enum.StrEnum):
    """Who may ask (SRV-6): operators; agents, who need no token on loopback; anybody."""

    OPERATOR = "operator"
    AGENT = "agent"
    OPEN = "open"


@attrs.frozen(kw_only=True)
class Field:
    """One thing that a request may hold. ``default``: its value when it is not given.

    ``nullable``: a body may say null for that. ``read``: False if something else reads it, and nothing refuses it.
    """

    place: Place
    name: str
    kind: Kind
    about: str
    required: bool = False
    nullable: bool = False
    default: Any = None
    read: bool = True


def path(name: str, kind: Kind, about: str) -> Field:
    """A segment of the path, ``<name>`` in the rule."""
    return Field(place="path", name=name, kind=kind, about=about, required=True)


def query(name: str, kind: Kind, about: str, *, default: Any = None) -> Field:
    """A parameter; it may come once."""
    return Field(place="query", name=name, kind=kind, about=about, default=default)


def header(name: str, kind: Kind, about: str, *, read: bool = True) -> Field:
    """A header that may come once, in UTF-8."""
    return Field(place="header", name=name, kind=kind, about=about, read=read)


def member(
    name: str, kind: Kind, about: str, *, required: bool = False, nullable: bool = False, default: Any = None
) -> Field:
    """A member of the JSON object in the body. ``nullable``: null is as good as leaving it out."""
    return Field(place="body", name=name, kind=kind, about=about, required=required, nullable=nullable, default=default)


@attrs.frozen
class Answer:
    """An answer that is no error. ``shape``: the type of its JSON document, or the schema of another body."""

    status: int
    about: str
    shape: Any = None
    media_type: str | None = attrs.field(kw_only=True)
    headers: Mapping[str, str] = attrs.field(kw_only=True, factory=dict)

    @media_type.default
    def _media_type(self) -> str | None:
        return None if self.shape is None else JSON_TYPE


@attrs.frozen
class Operation:
    """One method of one path. ``path``: Quart's rule; ``name``: unique, a Python name; ``about``: a sentence or more.

    ``tag``: the group that it is shown in. ``answers``: but for errors, whose statuses are in ``refusals``, with why.
    ``body_rules``: what the schema of the body says beside its members. ``body_types``: content types of the body.
    """

    method: Method
    path: str
    name: str
    about: str
    tag: str = attrs.field(kw_only=True)
    scope: Scope = attrs.field(kw_only=True, default=Scope.OPERATOR)
    fields: tuple[Field, ...] = attrs.field(kw_only=True, default=())
    answers: tuple[Answer, ...] = attrs.field(kw_only=True)
    refusals: Mapping[int, str] = attrs.field(kw_only=True, factory=dict)
    body_rules: Schema = attrs.field(kw_only=True, factory=dict)
    body_types: tuple[str, ...] = attrs.field(kw_only=True, default=(JSON_TYPE,))

    def __attrs_post_init__(self) -> None:
        names = [field.name for field in self.fields]
        assert len(set(names)) == len(names), f"{self.name} has two fields of one name"

    def of(self, place: Place) -> tuple[Field, ...]:
        """Its fields in one place."""
        return tuple(field for field in self.fields if field.place == place)

    @property
    def changes(self) -> bool:
        """Whether it can change something."""
        return self.method != "GET"


def describe(operation: Operation) -> Callable[[ViewT], ViewT]:
    """Say of a Quart view function what it takes and answers."""

    def described(view: ViewT) -> ViewT:
        vars(view)["concorde_trio_operation"] = operation
        return view

    return described


def operation_of(view: object) -> Operation | None:
    """What was said of a view function."""
    return cast("Operation | None", getattr(view, "concorde_trio_operation", None))


LIMIT = query(
    "limit",
    Whole(1, LARGEST_LIMIT, f"1 to {LARGEST_LIMIT}"),
    "How many at most. A page may be shorter; only a next of null says that it is the last.",
    default=DEFAULT_LIMIT,
)
