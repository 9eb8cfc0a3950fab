"""What a CommandRuntime refuses where it is written."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from concorde_trio.errors import UsageError
from concorde_trio.records import RunOutcome
from concorde_trio.runtimes.command import CommandRuntime
from concorde_trio.runtimes.command_rules import JsonLines, Rule
from concorde_trio.runtimes.command_session import DerivedSession, NoSession, SessionFile
from concorde_trio.runtimes.command_template import LiteralArgument
from concorde_trio.signals.runtime import RuntimeContext


async def _async(records: Any, exit: Any) -> RunOutcome:
    return RunOutcome.ok()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"argv": "pi --mode json"}, "not one string"),
        ({"argv": []}, "at least the program"),
        ({"argv": [""]}, "at least the program"),
        ({"argv": ["pi", 7]}, "must be a string without NUL, not int"),
        ({"argv": ["pi", "a\0"]}, "must be a string without NUL"),
        ({"argv": ["{session}"]}, "the program in argv must be fixed"),
        ({"argv": ["pi", "--session={session}"]}, "a whole part of argv"),
        ({"argv": ["pi", "{prompt}"]}, "the prompt goes to the program on stdin"),
        ({"argv": ["pi", "-p={text}"]}, "the prompt goes to the program on stdin"),
        ({"argv": ["pi", "{run_tag}"]}, r"unknown placeholder \{run_tag\}; there are \{session\}, \{session_file\}"),
        ({"argv": ["pi", "{session_file}"]}, r"needs session=SessionFile"),
        ({"argv": ["pi", "{native_id}"]}, r"needs session=DerivedSession"),
        ({"argv": ["pi", "{model}"]}, "so give model="),
        ({"argv": ["pi"], "session": SessionFile("/s")}, r"put \{session_file\} into argv"),
        ({"argv": ["pi"], "argv_resume": ["pi", "-c"]}, "never be used with NoSession"),
        ({"argv": ["c", "{native_id}"], "session": DerivedSession("x", "/s")}, "needs argv_resume"),
        ({"argv": ["pi"], "env": {"A=B": "x"}}, "without '=' and NUL"),
        ({"argv": ["pi"], "env": {"A": 7}}, "variable A must be a string"),
        (
            {"argv": ["pi"], "env": {"A": "{model}"}},
            r"unknown placeholder \{model\}; there are \{agent_server_url\}, \{session\}",
        ),
        ({"argv": ["pi"], "env": {"A": "x-{session}"}}, "a whole part of the environment variable A"),
        ({"argv": ["pi"], "env": {"CONCORDE_RUN_ID": "x"}}, "set by the runtime"),
        ({"argv": ["pi"], "inherit": "PATH"}, "inherit is a list"),
        ({"argv": ["pi"], "inherit": ["CONCORDE_RUN_ID"]}, "inherit is a list"),
        ({"argv": ["pi"], "cwd": "work/{session}"}, "must be an absolute folder"),
        ({"argv": ["pi"], "cwd": "/work/{model}"}, r"\{session\} only, not \{model\}"),
        ({"argv": ["pi"], "output": "json"}, "output must be 'text'"),
        ({"argv": ["pi"], "output": _async}, "must be a plain one"),
        ({"argv": ["pi"], "stop": [signal.SIGTERM]}, "a stop ladder is a list"),
        ({"argv": ["pi"], "idle_limit": 0}, "idle_limit must be seconds above 0"),
        ({"argv": ["pi"], "time_limit": -1}, "time_limit must be seconds above 0"),
        ({"argv": ["pi"], "max_output": 10}, "max_output is in bytes"),
    ],
)
def test_misuse_of_a_command_runtime_is_refused_where_it_is_written(arguments: dict[str, Any], says: str) -> None:
    """RUN-4: with what to write instead."""
    with pytest.raises(UsageError, match=says):
        CommandRuntime(**{"cwd": "/work", **arguments})


@pytest.mark.parametrize(
    "arguments",
    [
        {"argv": ["awk", LiteralArgument("{print}")]},
        {"argv": ["sh", "-c", "echo ${home} ${HOME} {} {a,b} { echo; }"]},
        {"argv": ["x", '{"a": 1}', "{A}", "{1}"]},
        {"argv": ["x"], "cwd": "/work/{session}/in"},
        {"argv": ["x"], "cwd": Path("/work")},
        {"argv": ["x"], "env": {"CONFIG": '{"a": {"b": 1}}', "URL": "{agent_server_url}"}},
    ],
)
def test_what_only_looks_like_a_placeholder_is_left_alone(arguments: dict[str, Any]) -> None:
    """RUN-4: JSON, shells and awk have braces too."""
    CommandRuntime(**{"cwd": "/work", **arguments})


def test_wrong_rules_are_refused_where_they_are_written() -> None:
    """RUN-5: a rule that can find nothing helps nobody."""
    for wrong, says in (
        (lambda: Rule(when={}, take="a"), "at least one path"),
        (lambda: Rule(when={"a.*": 1}, take="a"), r"without '\*'"),
        (lambda: Rule(when={"a": 1}, take="a..b"), "dotted path"),
        (lambda: Rule(when={"a": 1}, take="a", fold="max"), "fold must be"),
        (lambda: JsonLines(end={}), "at least one path"),
        (lambda: JsonLines(end={"a": 1}, ok=[True]), "belong together"),
        (lambda: JsonLines(end={"a": 1}, state=Rule(when={"a": 1}, take="b")), "belong together"),
        (lambda: JsonLines(end={"a": 1}, max_line=10), "at least 1024"),
        (lambda: SessionFile("sessions"), "must be absolute"),
        (lambda: DerivedSession("x", "/s", missing="("), "no regular expression"),
    ):
        with pytest.raises(UsageError, match=says):
            wrong()


async def test_a_runtime_that_needs_an_agent_server_is_not_opened_without_one() -> None:
    """RUN-4: found at the start of the worker, not at its first run."""
    for arguments in ({"argv": ["x", "{agent_server_url}"]}, {"argv": ["x"], "env": {"U": "{agent_server_url}"}}):
        runtime = CommandRuntime(cwd="/work", session=NoSession(), **arguments)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="no agent server"):
            async with runtime.open(RuntimeContext(queue="q")):
                pass


async def test_a_runtime_is_open_once_at_a_time() -> None:
    """RUN-4: it is opened by one worker and closed with it."""
    runtime = CommandRuntime(["x"], cwd="/work")
    async with runtime.open(RuntimeContext(queue="q")):
        with pytest.raises(UsageError, match="open already"):
            async with runtime.open(RuntimeContext(queue="q")):
                pass
    async with runtime.open(RuntimeContext(queue="q")):
        pass
