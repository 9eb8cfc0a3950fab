"""Short words for scenarios of sessions, and what is looked at in a result."""

from __future__ import annotations

from typing import Any

from concorde_trio.simulate import simulate

Step = list[Any]
END: Step = [0, {"end": True}]


def say(at: float, text: str) -> dict[str, Any]:
    """A person says something."""
    return {"at": at, "text": text}


def interrupt(at: float) -> dict[str, Any]:
    """A person interrupts."""
    return {"at": at, "interrupt": True}


def text(after: float, words: str) -> Step:
    """More of the answer."""
    return [after, {"text": words}]


def event(after: float, **given: Any) -> Step:
    """Any event: ``event(1, reasoning="hm")``."""
    return [after, given]


def call(after: float, call_id: str, name: str = "look", arguments: Any = None) -> Step:
    """A call."""
    return [after, {"call": {"id": call_id, "name": name, "arguments": {} if arguments is None else arguments}}]


def answer(after: float, words: str) -> list[Step]:
    """A whole answer."""
    return [text(after, words), END]


def calls(after: float, *ids: str) -> list[Step]:
    """A reply that is calls of the tool look, all at once."""
    return [*(call(after if place == 0 else 0, one) for place, one in enumerate(ids)), END]


def play(inputs: list[dict[str, Any]], model: list[list[Step]], **more: Any) -> dict[str, Any]:
    """The result of this scenario."""
    return simulate({"inputs": inputs, "model": model, **more})


def said(result: dict[str, Any]) -> list[str]:
    """The transcript in short: ``user a``, ``assistant ok [x y]``, ``tool x ok: X``."""
    lines = []
    for each in result["transcript"]:
        if each["role"] == "tool":
            lines.append(f"tool {each['call']} {each['outcome']}: {each['text']}")
        elif each["role"] == "assistant" and each["calls"]:
            lines.append(f"assistant {each['text']} [{' '.join(each['calls'])}]")
        else:
            lines.append(f"{each['role']} {each['text']}")
    return lines


def outcomes(result: dict[str, Any]) -> list[str]:
    """The transcript in short, without the words of results: ``tool x timeout``."""
    return [line.partition(":")[0] if line.startswith("tool ") else line for line in said(result)]


def turns(result: dict[str, Any]) -> list[tuple[float, float, str]]:
    """When each turn started and ended, and how."""
    return [(turn["started"], turn["ended"], turn["outcome"]) for turn in result["turns"]]
