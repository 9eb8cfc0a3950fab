"""Random scenarios of sessions, with few and whole times, so that many things fall on one instant."""

from __future__ import annotations

import json
from random import Random
from typing import Any

LONG = {"llm_timeout", "llm_ceiling", "summarizing_timeout", "max_backoff", "backoff", "backoff_cap", "stop_wait"}


def random_session(random: Random) -> dict[str, Any]:
    """A scenario; inputs are called ``i0``, ``i1``, ... in the order of their times."""
    times = sorted(random.randrange(40) for _ in range(random.randint(1, 7)))
    inputs: list[dict[str, Any]] = [
        {"at": at, "interrupt": True} if random.random() < 0.25 else {"at": at, "text": f"i{number}"}
        for number, at in enumerate(times)
    ]
    ids = iter(f"c{number}" for number in range(1000))
    model = [_reply(random, ids) for _ in range(random.randint(1, 12))]
    made = [step[1]["call"]["id"] for reply in model for step in reply if "call" in step[1]]
    return {
        "inputs": inputs,
        "model": model,
        "toolset": {
            "look": {"timeout": random.randint(1, 8), "concurrent": random.random() < 0.5},
            "dig": {"timeout": 3},
        },
        "tools": {one: _call(random) for one in made},
        "summaries": [_summary(random) for _ in range(6)],
        "settings": {
            "llm_timeout": random.randint(2, 8),
            "llm_ceiling": random.choice([None, 6, 12]),
            "summarizing_timeout": random.randint(1, 5),
            "summarize_over": 10,
            "truncate_to": 4,
            "backoff": 1,
            "backoff_cap": 60,
            "max_backoff": 20,
            "stop_wait": 10,
            "on_interrupt": random.choice(["run_queue", "hold_queue"]),
        },
        "usage_limit": random.choice([None, 30]),
    }


def _reply(random: Random, ids: Any) -> list[Any]:
    steps: list[Any] = []
    for _ in range(random.randint(0, 4)):
        after = random.randrange(4)
        kind = random.choice(["text", "call", "call", "reasoning", "usage", "ping"])
        event: dict[str, Any] = {kind: True if kind == "ping" else "t"}
        if kind == "call":
            name = random.choice(["look", "look", "look", "dig", "nope"])
            event = {"call": {"id": next(ids), "name": name, "arguments": random.choice([{}, {}, "{"])}}
        elif kind == "usage":
            event = {"usage": {"input": random.randrange(20), "output": 1}}
        steps.append([after, event])
    last = random.random()
    if last < 0.75:
        steps.append([random.randrange(3), {"end": True}])
    elif last < 0.9:
        error = {"status": random.choice([429, 500, 400]), "retry_after": random.choice([None, 2, 5, 50])}
        steps.append([random.randrange(3), {"error": error}])
    return steps


def _call(random: Random) -> dict[str, Any]:
    if random.random() < 0.1:
        return {"never": True}
    return {"takes": random.randrange(7), "output": random.choice(["r", "r", "a long output"])}


def _summary(random: Random) -> dict[str, Any]:
    return random.choice([{"after": random.randrange(5), "text": "s"}, {"never": True}, {"error": {"status": 500}}])


def in_tenths(scenario: dict[str, Any]) -> dict[str, Any]:
    """The same scenario with every second a tenth of one."""
    made: dict[str, Any] = json.loads(json.dumps(scenario))
    for given in made["inputs"]:
        given["at"] /= 10
    for reply in made["model"]:
        for step in reply:
            step[0] /= 10
            if step[1].get("error", {}).get("retry_after"):
                step[1]["error"]["retry_after"] /= 10
    for tool in made["toolset"].values():
        tool["timeout"] /= 10
    for given in [*made["tools"].values(), *made["summaries"]]:
        for name in {"takes", "after"} & given.keys():
            given[name] /= 10
    for name in LONG:
        if made["settings"][name] is not None:
            made["settings"][name] /= 10
    return made
