"""Small agent programs for the tests, as shell and Python, and a Runtime that runs them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from concorde_trio.records import RunPrompt
from concorde_trio.runtimes.command import CommandRuntime
from concorde_trio.runtimes.command_rules import JsonLines, Rule, UsageRules
from tests.processes.census import PATH, Census

RULES = JsonLines(
    end={"type": "end"},
    fail={"type": "failed"},
    text=Rule(when={"type": "end"}, take="text"),
    error=[Rule(when={"type": "failed"}, take="why")],
    usage=UsageRules(
        input=Rule(when={"type": "usage"}, take="in", fold="sum"),
        output=Rule(when={"type": "usage"}, take="out", fold="sum"),
    ),
)


def prompt(text: str = "hello", session: str = "ann", usage_limit: int | None = None) -> RunPrompt:
    return RunPrompt(session=session, text=text, usage_limit=usage_limit)


def shell(census: Census, folder: Path, code: str, **more: Any) -> CommandRuntime:
    """A Runtime whose program is a piece of shell; $LABEL is the census's."""
    options: dict[str, Any] = {"cwd": str(folder), "env": {"PATH": PATH, "LABEL": census.label}, **more}
    return CommandRuntime(["sh", "-c", code], **options)


def python(census: Census, folder: Path, code: str, *arguments: str, **more: Any) -> CommandRuntime:
    """A Runtime whose program is a piece of Python."""
    options: dict[str, Any] = {"cwd": str(folder), "env": {"PATH": PATH, "LABEL": census.label}, **more}
    return CommandRuntime([sys.executable, "-c", code, *arguments], **options)


def records(*those: dict[str, Any]) -> str:
    """Shell that prints these records."""
    return "".join(f"echo '{json.dumps(one)}'; " for one in those)


END = {"type": "end", "text": "done"}
