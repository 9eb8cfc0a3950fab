"""What a handler returned, as a tuple of Prompts, or an error that says what came and how to write it (CLM-4).

The law of this module: every wrong shape is refused by name, with its fix. A string, a dict or a bare Prompt would
otherwise fail later, in words about something else.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from itertools import islice

from concorde_trio.errors import InvalidHandler
from concorde_trio.records import Prompt

PROMPT_LIMIT = 100_000
"""The most prompts that one signal may give: a generator without an end must not take the worker with it."""


def plain_list(returned: object) -> tuple[Prompt, ...] | None:
    """The prompts in an ordinary list of them, as almost every handler returns; None for all that needs a look."""
    if type(returned) is list and len(returned) <= PROMPT_LIMIT:
        prompts = tuple(returned)
        if all(type(prompt) is Prompt for prompt in prompts):
            return prompts
    return None


def collect_prompts(returned: object, who: str) -> tuple[Prompt, ...]:
    """The prompts in what ``handle`` returned: any iterable of Prompt, or None for none.

    ``who`` names the handler in the message. Raises InvalidHandler for everything else (CLM-4, CLM-5); what an
    iterator of the handler's own raises travels as it is.
    """
    if returned is None:
        return ()
    found: Iterable[object] = returned if isinstance(returned, list | tuple) else _iterate(returned, who)
    prompts: list[Prompt] = []
    for index, prompt in enumerate(islice(found, PROMPT_LIMIT + 1)):
        if not isinstance(prompt, Prompt):
            rest = found if isinstance(found, list | tuple) else ()
            raise InvalidHandler(f"{who} returned {_dispose(prompt, *rest)} as prompt {index}; {_fix(prompt)}")
        prompts.append(prompt)
    if len(prompts) > PROMPT_LIMIT:
        raise InvalidHandler(
            f"{who} gave more than {PROMPT_LIMIT} prompts for one signal; emit several signals instead"
        )
    return tuple(prompts)


def _iterate(returned: object, who: str) -> Iterable[object]:
    if isinstance(returned, Prompt):
        raise InvalidHandler(f"{who} returned a bare Prompt; return a list: [prompt]")
    if isinstance(returned, str | bytes | bytearray | Mapping) or _is_async(returned):
        raise InvalidHandler(f"{who} returned {_dispose(returned)}, not a list of prompts; {_fix(returned)}")
    try:
        return iter(returned)  # type: ignore[call-overload, no-any-return]
    except TypeError:
        raise InvalidHandler(
            f"{who} returned {_dispose(returned)}, not a list of prompts; return [prompt, ...], or None for none"
        ) from None


def _is_async(value: object) -> bool:
    return inspect.isawaitable(value) or hasattr(value, "__aiter__") or hasattr(value, "__anext__")


def _dispose(value: object, *others: object) -> str:
    """What ``value`` is, for a message. Coroutines are closed: they would warn that nobody awaited them."""
    for one in (value, *others):
        if inspect.iscoroutine(one):
            one.close()
    return f"{type(value).__name__} {value!r:.80}"


def _fix(value: object) -> str:
    if isinstance(value, str | bytes | bytearray):
        return "write [Prompt(text=...)]"
    if isinstance(value, Mapping):
        return "return a list of Prompt objects: list(found.values()), or [Prompt(**fields)]"
    if inspect.isawaitable(value):
        return "await it first: its result is what belongs there"
    if _is_async(value):
        return "collect its prompts into a list and return it: [prompt async for prompt in ...]"
    if isinstance(value, list | tuple):
        return "return one flat list of prompts"
    if value is None:
        return "leave out what is None"
    return "each must be a Prompt"
