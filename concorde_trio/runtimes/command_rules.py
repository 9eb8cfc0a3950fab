"""What a program's JSON-lines output means, as data: rules that are folded over the records as they come.

The law: no record is kept, so that a stream of any length takes the memory of its longest line; a rule that finds
nothing says None, never zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from concorde_trio.errors import UsageError
from concorde_trio.records import JSON, Usage

_LONGEST = 8 * 1024 * 1024  # characters to which strings are joined; the rest is let go

When: TypeAlias = Mapping[str, Any]
"""Dotted path to the value it must have, or to a list of values of which it must have one. All paths must fit."""


@attrs.frozen(kw_only=True)
class Rule:
    """One value out of a stream of records.

    ``when``: which records count. ``take``: the dotted path of the value; ``*`` stands for every value of an object or
    list, and what is found in one record is then added (numbers) or joined (strings). ``fold``: what becomes of the
    values of several records: the ``first``, the ``last``, or their ``sum`` (strings: joined).
    """

    when: When
    take: str
    fold: str = attrs.field(default="last")

    def __attrs_post_init__(self) -> None:
        check_when(self.when)
        if not isinstance(self.take, str) or "" in self.take.split("."):
            raise UsageError(f"take must be a dotted path such as 'message.usage.input', not {self.take!r:.80}")
        if self.fold not in ("first", "last", "sum"):
            raise UsageError(f"fold must be 'first', 'last' or 'sum', not {self.fold!r:.80}")


@attrs.frozen(kw_only=True)
class UsageRules:
    """Where the stream says what the run used. ``input`` and ``output`` are tokens, ``cost`` is money.

    ``cached``: input tokens that were read from a cache. ``input_includes_cached``: whether ``input`` counts them too;
    where it does not they are added, for ``Usage.input_tokens`` are all of them. ``written``: input tokens that were put into a
    cache, where ``input`` does not count them. ``cumulative``: the program tells the sum
    over the whole conversation; what came before is subtracted, which needs LearntSession to keep it.
    """

    input: Rule
    output: Rule
    cached: Rule | None = None
    written: Rule | None = None
    cost: Rule | None = None
    input_includes_cached: bool = True
    cumulative: bool = False


@attrs.frozen(kw_only=True)
class JsonLines:
    """One JSON object a line, and what it means.

    ``end``: the record without which the stream is cut off. ``fail``: records that mean failure. ``state`` and ``ok``:
    the value (of the last such record) that must be among ``ok``. ``text``: the answer. ``error``: rules for the reason of a
    failure, the first that finds one counts. ``usage``: what was used. ``max_line``: bytes; programs write MiBs.
    """

    end: When
    fail: When | None = None
    state: Rule | None = None
    ok: Sequence[JSON] = ()
    text: Rule | None = None
    error: Sequence[Rule] = ()
    usage: UsageRules | None = None
    max_line: int = 16 * 1024 * 1024

    def __attrs_post_init__(self) -> None:
        check_when(self.end)
        if self.fail is not None:
            check_when(self.fail)
        if (self.state is None) != (not self.ok) or isinstance(self.ok, str):
            raise UsageError("state and ok belong together: a rule, and the list of values with which a run is ok")
        if self.max_line < 1024:
            raise UsageError(f"max_line is in bytes, at least 1024, not {self.max_line}")


def check_when(when: When) -> None:
    """UsageError unless it is a mapping of dotted paths without ``*``, at least one."""
    if not isinstance(when, Mapping) or not when:
        raise UsageError(
            f"when must say at least one path and its value, such as {{'type': 'result'}}, not {when!r:.80}"
        )
    for path in when:
        if not isinstance(path, str) or "" in path.split(".") or "*" in path.split("."):
            raise UsageError(f"when has dotted paths without '*' such as 'message.role', not {path!r:.80}")


def fits(when: When, record: JSON) -> bool:
    """Whether every path of ``when`` has one of its values in ``record``."""
    return all(
        any(
            _same(found, wanted)
            for found in values(record, path)
            for wanted in (value if isinstance(value, list | tuple) else (value,))
        )
        for path, value in when.items()
    )


def values(record: JSON, path: str) -> Iterator[JSON]:
    """What stands at a dotted path, nothing where it leads nowhere."""
    found = [record]
    for step in path.split("."):
        if step == "*":
            found = [
                inner
                for value in found
                for inner in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
            ]
        else:
            found = [value[step] for value in found if isinstance(value, dict) and step in value]
    return iter(found)


class Folding:
    """One rule, and what it has found so far (``value``, None if nothing)."""

    __slots__ = ("_rule", "value")

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.value: JSON = None

    def take(self, record: JSON) -> None:
        """The next record of the stream."""
        if self.value is not None and self._rule.fold == "first":
            return
        if not fits(self._rule.when, record):
            return
        found = _together([value for value in values(record, self._rule.take) if value is not None])
        if found is not None:
            self.value = (
                _together([self.value, found]) if self._rule.fold == "sum" and self.value is not None else found
            )


class Meter:
    """Usage rules, and what they have found so far. ``before``: what the conversation had used, if only the sum is told."""

    def __init__(self, rules: UsageRules, before: Usage | None = None) -> None:
        self._rules = rules
        self._before = before if rules.cumulative else None
        named = {
            "input": rules.input,
            "output": rules.output,
            "cached": rules.cached,
            "written": rules.written,
            "cost": rules.cost,
        }
        self._foldings = {name: Folding(rule) for name, rule in named.items() if rule is not None}

    def take(self, record: JSON) -> None:
        """The next record of the stream."""
        for folding in self._foldings.values():
            folding.take(record)

    @property
    def usage(self) -> Usage | None:
        """What was used, None while nothing was said of it."""
        return None if self.told is None else _since(self._before, self.told)

    @property
    def told(self) -> Usage | None:
        """The same as the program tells it."""
        found = {name: folding.value for name, folding in self._foldings.items() if _number(folding.value)}
        if not found:
            return None
        cached = int(found.get("cached", 0))
        plain = int(found.get("input", 0)) + int(found.get("written", 0))
        return Usage(
            input_tokens=plain if self._rules.input_includes_cached else plain + cached,
            output_tokens=int(found.get("output", 0)),
            cached_tokens=cached,
            cost=float(found["cost"]) if "cost" in found else None,
        )


def _since(before: Usage | None, told: Usage) -> Usage:
    """What ``told`` is more than ``before``; ``told`` itself if it is less, for then the program counts anew."""
    if before is None or told.input_tokens < before.input_tokens or told.output_tokens < before.output_tokens:
        return told
    return Usage(
        input_tokens=told.input_tokens - before.input_tokens,
        output_tokens=told.output_tokens - before.output_tokens,
        cached_tokens=max(0, told.cached_tokens - before.cached_tokens),
        cost=None if told.cost is None else max(0.0, told.cost - (before.cost or 0.0)),
    )


def _together(found: list[JSON]) -> JSON:
    if not found:
        return None
    if len(found) == 1:
        return found[0]
    if all(_number(value) for value in found):
        return sum(found)
    return "".join(value for value in found if isinstance(value, str))[:_LONGEST] or found[-1]


def _number(value: JSON) -> bool:
    """Whether it can be counted with: no bool, and nothing that a store cannot hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53


def _same(one: JSON, other: JSON) -> bool:
    """JSON's equality: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
