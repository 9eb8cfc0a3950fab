"""What holds for any scenario of a session, whatever happens in it and however much of it at one instant."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from concorde_trio.simulate import simulate
from tests.simulate.session_random import in_tenths, random_session

pytestmark = pytest.mark.slow

SEEDS = range(40)


def shape(result: dict[str, Any]) -> list[Any]:
    """The transcript without the words of results."""
    return [
        {key: value for key, value in each.items() if key != "text" or each["role"] != "tool"}
        for each in result["transcript"]
    ]


def tenths(result: Any) -> Any:
    """The result with ten times its times."""
    if isinstance(result, dict):
        times = {"started", "ended", "waited", "at", "since"}
        return {
            key: round(value * 10, 9) if key in times and value is not None else tenths(value)
            for key, value in result.items()
        }
    return [tenths(each) for each in result] if isinstance(result, list) else result


@pytest.mark.parametrize("seed", SEEDS)
def test_any_session_keeps_its_promises(seed: int) -> None:
    """SES-9, SES-10a, LSE-1: nothing lost, repeated or reordered, one result a call, and nothing held in the end."""
    scenario = random_session(Random(seed))
    result = simulate(scenario)
    texts = [each["text"] for each in result["transcript"] if each["role"] == "user"]
    heard = [
        word for text in texts for word in text.replace("---", "").split() if word[0] == "i" and word[1:].isdigit()
    ]
    sent = [given["text"] for given in scenario["inputs"] if "text" in given]
    assert heard == sent[: len(heard)]
    if scenario["settings"]["on_interrupt"] == "run_queue":
        assert heard == sent
    waiting: list[str] = []
    for each in result["transcript"]:
        if each["role"] == "tool":
            assert each["call"] == waiting.pop(0)
        else:
            assert not waiting
            waiting = list(each.get("calls", []))
    assert not waiting
    assert (result["status"], result["locked"]) == ("waiting_for_input", False)
    edges = [edge for turn in result["turns"] for edge in (turn["started"], turn["ended"])]
    assert edges == sorted(edges)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_becomes_of_late_work_changes_nothing_else(seed: int) -> None:
    """SES-2, SES-7: a host that cannot stop its work hears of it later; the session goes the same way."""
    scenario = random_session(Random(seed))
    here, there = simulate(scenario), simulate(scenario | {"remote": True})
    assert shape(there) == shape(here)
    for name in ("turns", "expired", "requests", "status"):
        assert there[name] == here[name]
    assert here["dropped"] == here["abandoned"] == []
    over = {each["call"] for each in there["dropped"] if each["kind"] == "result"}
    assert over == {each["call"] for each in there["abandoned"] if each["ended"] is not None}


@pytest.mark.parametrize("seed", SEEDS)
def test_times_are_exact_and_the_heartbeat_shows_nowhere(seed: int) -> None:
    """SES-4, LSE-2: a tenth of every time gives a tenth of every time, though 0.1 + 0.2 is no 0.3 to a computer."""
    scenario = random_session(Random(seed))
    expected = simulate(scenario)
    smaller = in_tenths(scenario)
    smaller["settings"]["heartbeat"] = 0.37
    found = simulate(smaller)
    assert tenths({**found, "transcript": shape(found)}) == {**expected, "transcript": shape(expected)}
