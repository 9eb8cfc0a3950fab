"""A request as its declaration reads it: every field checked before anything is done, every wrong one named at once (SRV-5).

The law: an unknown field, one that came twice, and a value outside its range are refused with a sentence that says which
are allowed; nothing is ignored, guessed or clamped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any, TypeAlias

import attrs
from quart import Blueprint, Response, request

from concorde_trio.errors import UsageError
from concorde_trio.server.bodies import MAX_BYTES, read_nothing, read_object, unknown_members
from concorde_trio.server.declarations import Field, Operation, describe
from concorde_trio.server.problems import FieldFault, Problem
from concorde_trio.server.session_paths import segment
from concorde_trio.server.values import Unfit


@attrs.frozen
class Asked:
    """A request that was read by its declaration: ``asked["kind"]``."""

    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """The value of a field; its default when it was not given."""
        return self.values[name]


Handler: TypeAlias = Callable[[Asked], Awaitable[Response]]
Check: TypeAlias = Callable[[Any], object]


def serve(
    routes: Blueprint, operation: Operation, *, max_body: int = MAX_BYTES, checks: Mapping[str, Check] | None = None
) -> Callable[[Handler], Handler]:
    """Have a handler answer the operation; what it is asked has been read, and every wrong field refused at once.

    ``max_body``: bytes. ``checks``: by field name, what the handler itself will refuse in a value, by a UsageError. They are
    asked only when another field is wrong, so that all wrong ones are named at once.
    """

    def served(handler: Handler) -> Handler:
        async def view(**segments: str) -> Response:
            return await handler(await read_request(operation, segments, max_body=max_body, checks=checks or {}))

        view.__doc__ = handler.__doc__
        routes.add_url_rule(operation.path, operation.name, describe(operation)(view), methods=[operation.method])
        return handler

    return served


def check_parameters(operation: Operation) -> None:
    """Problem 400 for parameters that are not declared, or wrong; for a view that reads its own body."""
    reading = _Reading()
    reading.query(operation.of("query"))
    if reading.faults:
        raise Problem.of_fields(reading.faults)


async def read_request(
    operation: Operation, segments: Mapping[str, str], *, max_body: int, checks: Mapping[str, Check]
) -> Asked:
    """What the current request asks. Problem 400 with every wrong field; 408, 413 or 415 for its body."""
    reading = _Reading()
    for field in operation.of("path"):
        reading.read(field, segment(segments[field.name]))
    reading.query(operation.of("query"))
    for field in operation.of("header"):
        if field.read:
            reading.header(field)
    members = operation.of("body")
    if members:
        await reading.body(members, max_body)
    elif operation.changes:
        await reading.nothing()
    if reading.faults:
        reading.check(operation.fields, checks)
        raise Problem.of_fields(reading.faults)
    return Asked(reading.values)


class _Reading:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.faults: list[FieldFault] = []

    def read(self, field: Field, given: Any) -> None:
        try:
            self.values[field.name] = field.kind.read(field.name, given)
        except (Unfit, UsageError) as error:
            self._refuse(field, str(error), place=getattr(error, "place", None))

    def check(self, fields: tuple[Field, ...], checks: Mapping[str, Check]) -> None:
        for field in fields:
            value = self.values.get(field.name)
            if field.name in checks and value is not None:
                try:
                    checks[field.name](value)
                except UsageError as error:
                    self._refuse(field, str(error), place=getattr(error, "place", None))

    def query(self, fields: tuple[Field, ...]) -> None:
        known = {field.name: field for field in fields}
        for name in islice((name for name in request.args if name not in known), 20):
            there = f"there are: {', '.join(known)}" if known else "there are none here"
            message = f"unknown parameter {name!r:.80}; {there}"
            self.faults.append(FieldFault(within="query", field=name[:80], message=message))
        for name, field in known.items():
            self._once(field, request.args.getlist(name), f"the parameter {name} came more than once; give it once")

    def header(self, field: Field) -> None:
        given: list[str] = []
        for value in request.headers.getlist(field.name):
            try:
                # HTTP hands headers on as bytes, here each as a character; text is UTF-8 as everybody writes it today.
                given.append(str(value).encode("latin-1").decode("utf-8"))
            except UnicodeError:
                self._refuse(field, f"the {field.name} header is not UTF-8")
                return
        self._once(field, given, f"there is more than one {field.name} header; send one")

    async def body(self, fields: tuple[Field, ...], max_body: int) -> None:
        names = [field.name for field in fields]
        try:
            given = await read_object(*names, max_bytes=max_body, strict=False)
        except Problem as problem:
            if problem.document.status != 400:
                raise
            self._refuse_body(problem)
            return
        self.faults += unknown_members(given, names)
        for field in fields:
            value = given.get(field.name)
            if field.name in given and not (value is None and field.nullable):
                self.read(field, value)
            else:
                self._missing(field)

    async def nothing(self) -> None:
        try:
            await read_nothing()
        except Problem as problem:
            if problem.document.status != 400:
                raise
            self._refuse_body(problem)

    def _once(self, field: Field, given: list[str], twice: str) -> None:
        if len(given) > 1:
            self._refuse(field, twice)
        elif given:
            self.read(field, given[0])
        else:
            self._missing(field)

    def _missing(self, field: Field) -> None:
        self.values[field.name] = field.default
        if field.required:
            where = "the body must have" if field.place == "body" else f"the {field.place} must have"
            self._refuse(field, f'{where} "{field.name}": {field.about[0].lower()}{field.about[1:]}')

    def _refuse(self, field: Field, message: str, *, place: str | None = None) -> None:
        self.values.pop(field.name, None)
        self.faults.append(FieldFault(within=field.place, field=field.name, message=message, place=place))

    def _refuse_body(self, problem: Problem) -> None:
        found = problem.document
        self.faults.append(FieldFault(within="body", field="", message=found.detail, place=found.place))
