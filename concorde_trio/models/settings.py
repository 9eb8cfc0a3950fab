"""What model clients are told when they are made: checked there and then, so that no request finds it out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from concorde_trio.errors import UsageError
from concorde_trio.records import Usage

CACHE_WRITE = 1.25
"""What a token that is written to a cache costs, where the provider counts those: this much of an input token."""

_MOST = 2**53
"""More tokens than this nobody has used. The sum of as many reports as there may be stays below 2**63."""


@attrs.frozen
class Prices:
    """What a million tokens cost: input, output, input read from a cache."""

    input: float
    output: float
    cached: float

    def cost(self, usage: Usage, written: int = 0) -> float:
        """Of that usage, of whose input ``written`` tokens went into a cache."""
        fresh = max(0, usage.input_tokens - usage.cached_tokens - written)
        return (
            (fresh + CACHE_WRITE * written) * self.input
            + usage.cached_tokens * self.cached
            + usage.output_tokens * self.output
        ) / 1_000_000


def check_prices(prices: Sequence[float] | None) -> Prices | None:
    """Three numbers, or None; otherwise UsageError."""
    if prices is None:
        return None
    values = tuple(prices) if isinstance(prices, Sequence) and not isinstance(prices, str) else ()
    if len(values) != 3 or not all(_is_number(value) and math.isfinite(value) and value >= 0 for value in values):
        raise UsageError(
            "prices must be three numbers, what a million tokens cost: (input, output, cached input), "
            f"not {prices!r:.80}"
        )
    return Prices(*map(float, values))


def check_tokens(value: object, what: str) -> int | None:
    """A whole number of tokens of at least 1, or None; otherwise UsageError."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    raise UsageError(f"{what} must be a whole number of tokens of at least 1, or None, not {value!r:.80}")


def check_model_name(name: object) -> str:
    """A name that is not empty; otherwise UsageError."""
    if isinstance(name, str) and name.strip():
        return name
    raise UsageError(f"a model is named by what its provider calls it, a string, not {name!r:.80}")


def check_options(options: object) -> dict[str, Any]:
    """A mapping from names to JSON values, copied; otherwise UsageError."""
    if not isinstance(options, Mapping) or not all(isinstance(key, str) for key in options):
        raise UsageError(f"options must be a mapping of request fields, like {{'temperature': 0}}, not {options!r:.80}")
    ours = sorted({"messages", "model", "stream", "tools", "system"} & set(options))
    if ours:
        raise UsageError(f"options cannot have {ours[0]!r}: that is made from the request")
    return dict(options)


def body_with(body: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """``body`` with what the options say in its place; an option of None takes its field out."""
    merged = {**body, **{key: value for key, value in options.items() if key not in ("extra_headers", "extra_query")}}
    return {key: value for key, value in merged.items() if value is not None}


def count(value: object) -> int:
    """A number of tokens as a server gives it; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MOST else 0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
