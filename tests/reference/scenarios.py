"""Random scenarios, as nasty as they come: ties at every instant, nothing that takes time, names that collide."""

from __future__ import annotations

from random import Random
from typing import Any

TAGS = ("tag-aaaaaaaaaaaaaaaa", "tag-bbbbbbbbbbbbbbbb")
BAD_TAG = "too short"

COARSE = (0, 0, 0, 1, 1, 2, 3)
DECIMAL = (0, 0.1, 0.2, 0.3, 0.1, 0.7)


def random_scenario(random: Random, *, stops: bool = True) -> dict[str, Any]:
    """One scenario, in JSON, from a source of random numbers."""
    times = random.choice((COARSE, COARSE, DECIMAL))
    sessions = ["ann", "bob", "cat"][: random.randint(1, 3)]
    resources = ["ann", "w", "x"][: random.randint(0, 3)]
    kinds = ["task", "chore", "typo"]
    tagged, fresh, posts, fails = (random.choice((0, 0, 0.3, 0.8)) for _ in range(4))
    signals: list[dict[str, Any]] = []
    runs = 0
    for number in range(random.randint(0, 7)):
        signal: dict[str, Any] = {
            "id": f"s{number}",
            "kind": random.choice(kinds),
            "at": random.choice(times),
            "handle": random.choice((0, 0, random.choice(times))),
            "fail_handle": random.random() < fails / 4,
            "post": random.choice(times) if random.random() < posts else None,
            "fail_post": random.random() < fails / 4,
            "prompts": [],
        }
        for _ in range(random.choice((0, 1, 1, 2, 3))):
            prompt: dict[str, Any] = {
                "id": f"r{runs}",
                "session": None if random.random() < fresh else random.choice(sessions),
                "resources": [random.choice(resources) for _ in range(random.randint(0, 2))] if resources else [],
                "duration": random.choice(times),
                "outcome": random.choice(("ok", "fail", "limited")) if random.random() < fails else "ok",
            }
            if runs and random.random() < fresh / 2:
                prompt["session"] = f"run_r{random.randrange(runs)}"  # continues a fresh session, if it was one
            if random.random() < tagged:
                prompt["tag"] = random.choice((*TAGS, *TAGS, BAD_TAG))
            if random.random() < fails / 4:
                prompt["time_limit"] = random.choice((0.1, 1, 2))
            signal["prompts"].append(prompt)
            runs += 1
        signals.append(signal)
    scenario: dict[str, Any] = {
        "claim_ahead": random.choice((0, 0, 1, 2, 3, None)),
        "max_running": random.choice((None, None, 1, 2, 3)),
        "unknown_kinds": ["typo"] if random.random() < 0.3 else [],
        "signals": signals,
    }
    if stops and random.random() < 0.4:
        scenario["stop"] = {"at": random.choice(times), "mode": random.choice(("drain", "park", "cancel"))}
    return scenario
