"""What is wrong with a command is one clear sentence on stderr; status 2 for misuse, 1 for failure, never a traceback."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from concorde_trio.cli.commands import COMMANDS
from tests.cli.running import Command

QUEUE_COMMANDS = {
    "emit": ("emit", "kind"),
    "signals": ("signals",),
    "runs": ("runs",),
    "why": ("why", "x-1"),
    "locks": ("locks",),
    "cancel": ("cancel", "x"),
    "retry": ("retry", "x"),
    "prune": ("prune", "--older-than", "1d", "--yes"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_each_command_has_an_example_and_its_json_form(command: Command, name: str) -> None:
    """SRV-3 from a terminal: nobody has to look elsewhere."""
    done = command(name, "--help")
    assert done.status == 0 and done.err == ""
    assert f"Examples:\n    concorde-trio {name}" in done.out
    assert "--json" in done.out
    assert max(map(len, done.out.splitlines())) <= 100


def test_the_help_of_the_program_names_each_command(command: Command) -> None:
    """SRV-3 from a terminal."""
    done = command("--help")
    assert done.status == 0
    for name in COMMANDS:
        assert f"\n  {name} " in done.out
    assert "Examples:" in done.out


def test_no_command_at_all_shows_the_help_as_misuse(command: Command) -> None:
    """Status 2 is misuse."""
    done = command()
    assert done.status == 2 and done.out == "" and "Usage:" in done.err


def test_the_version_is_one_line(command: Command) -> None:
    """A bug report begins with it."""
    done = command("--version")
    assert done.status == 0 and done.out.startswith("concorde-trio ") and done.out.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("emitt",), "No such command 'emitt'"),
        (("\x1b[31m",), "\\x1b[31m"),
        (("emit",), "Missing argument 'KIND'"),
        (("emit", "k", "{}", "more"), "more"),
        (("emit", "k", "{nope"), "line 1, column 2"),
        (("emit", "k", "--nope"), "--nope"),
        (("signals", "--limit", "0"), "--limit"),
        (("signals", "--limit", "201"), "--limit"),
        (("runs", "--limit", "many"), "--limit"),
        (("signals", "--state", "running"), "running"),
        (("runs", "--state", "processing"), "processing"),
        (("signals", "abc", "--kind", "k"), "--kind filters a list"),
        (("runs", "abc-1", "--session", "s"), "--session filters a list"),
        (("runs", "abc", "--signal", "abc"), "--signal filters a list"),
        (("sessions", ""), "a session name must have 1 to 200 characters"),
        (("sessions", "ann", "--prefix", "a"), "--prefix filters a list"),
        (("interrupt", ""), "a session name must have"),
        (("approve", ""), "a session name must have"),
        (("deny", ""), "a session name must have"),
        (("send", "", "hi"), "a session name must have"),
        (("send", "ann", "hi", "--id", ""), "an input id must have 1 to 200 characters"),
        (("emit", "k", "--key", ""), "a key must have"),
        (("prune",), "--older-than"),
        (("prune", "--older-than", "30"), "such as 30d"),
        (("why",), "RUN"),
        (("cancel",), "ID"),
        (("retry",), "SIGNAL"),
        (("serve",), "MODULE:GATEWAY"),
        (("serve", "nothing"), "expected MODULE:GATEWAY"),
        (("serve", "nothing.py:gateway"), "nothing:gateway"),
        (("serve", "no_such_module_here:gateway"), "no module 'no_such_module_here'"),
        (("serve", "json.nothing:gateway"), "no module 'json.nothing'"),
        (("serve", "json:gateway"), "has no 'gateway'"),
        (("serve", "json:dumps"), "not a Gateway"),
        (("serve", "json:dumps", "--port", "65536"), "--port"),
        (("serve", "json:dumps", "--drain-for", "soon"), "such as 30d"),
        (("serve", "json:dumps", "--log-level", "loud"), "--log-level"),
        (("simulate",), "FILE"),
        (("simulate", "missing.json"), "no file missing.json"),
        (("simulate", "."), "is a folder"),
    ],
)
def test_misuse_is_told_in_one_sentence(command: Command, arguments: tuple[str, ...], what: str) -> None:
    """SRV-5: a message a person can act on."""
    done = command(*arguments)
    assert what in done.sentence()
    assert "\x1b" not in done.err
    assert done.status == 2


@pytest.mark.parametrize("name", QUEUE_COMMANDS)
def test_without_a_queue_each_command_says_how_to_name_one(command: Command, name: str) -> None:
    """A queue is named by --store, CONCORDE_STORE, or concorde.db here."""
    done = command(*QUEUE_COMMANDS[name])
    sentence = done.sentence()
    assert done.status == 2
    assert "--store" in sentence and "CONCORDE_STORE" in sentence and "concorde.db" in sentence


@pytest.mark.parametrize(
    ("store", "what", "status"),
    [
        ("missing.db", "no database at missing.db", 2),
        ("sqlite:///missing.db", "no database at missing.db", 2),
        ("mysql://localhost/q", "expected a path, sqlite:///PATH or postgresql://", 2),
        ("sqlite://missing.db", "expected a path, sqlite:///PATH or postgresql://", 2),
        (":memory:", "in memory", 2),
        ("", "in memory", 2),
        (".", "is a folder", 2),
        ("text.db", "no SQLite database", 1),
        ("short.db", "no SQLite database", 1),
        ("empty.db", "no queue in the database empty.db", 2),
        ("other.db", "no queue in the database other.db", 2),
        ("pipe.db", "no ordinary file", 1),
        ("a\x1bb.db", "a\\x1bb.db", 2),
    ],
)
def test_what_is_no_queue_is_refused_with_its_reason(
    command: Command, here: Path, store: str, what: str, status: int
) -> None:
    """REC-5: an error that cannot pass is a clear one."""
    (here / "text.db").write_text("This is a letter to my aunt, and no database.")
    (here / "short.db").write_text("SQLite")
    (here / "empty.db").touch()
    with closing(sqlite3.connect(here / "other.db")) as other:
        other.execute("create table orders (id integer)")
    before = (here / "other.db").read_bytes()
    os.mkfifo(here / "pipe.db")
    for arguments in QUEUE_COMMANDS.values():
        done = command(*arguments, "--store", store)
        assert what in done.sentence()
        assert done.status == status
    assert sorted(path.name for path in here.iterdir()) == ["empty.db", "other.db", "pipe.db", "short.db", "text.db"]
    assert (here / "other.db").read_bytes() == before and (here / "empty.db").read_bytes() == b""


def test_a_module_that_raises_shows_its_own_traceback_and_one_sentence(command: Command, here: Path) -> None:
    """The user's fault is shown where the user can see it."""
    (here / "broken_household.py").write_text("import json\n\njson.loads('{')\n")
    done = command("serve", "broken_household:gateway")
    assert done.status == 1
    assert done.out == ""
    assert 'broken_household.py", line 3' in done.err
    assert "concorde_trio/cli" not in done.err and "importlib" not in done.err
    assert done.err.splitlines()[-1].startswith("concorde-trio: module broken_household could not be imported: json")


def test_a_rule_of_ours_that_a_module_breaks_is_told_once_with_its_own_lines(command: Command, here: Path) -> None:
    """CLM-3: where and why, without what our own code did."""
    (here / "doubled_household.py").write_text(
        "from concorde_trio import Prompt\n\n\ndef ask(name):\n    return Prompt(session=name, text='x')\n\n\nask('')\n"
    )
    done = command("serve", "doubled_household:gateway")
    assert done.status == 1 and done.out == ""
    lines = done.err.splitlines()
    assert [line.partition(", ")[2] for line in lines if "File " in line] == ["line 8, in <module>", "line 5, in ask"]
    assert lines[-1].startswith("concorde-trio: module doubled_household could not be imported: ")
    assert done.err.count(lines[-1].partition("imported: ")[2]) == 1 and "InvalidName" not in done.err


def test_a_module_that_misses_another_names_the_other(command: Command, here: Path) -> None:
    """The user's fault is shown where the user can see it."""
    (here / "lonely_household.py").write_text("import a_library_nobody_has\n")
    done = command("serve", "lonely_household:gateway")
    assert done.status == 1
    assert "No module named 'a_library_nobody_has'" in done.err.splitlines()[-1]


def test_a_module_that_exits_is_not_taken_for_a_stop(command: Command, here: Path) -> None:
    """A module may raise anything."""
    (here / "exiting_household.py").write_text("raise SystemExit(0)\n")
    done = command("serve", "exiting_household:gateway")
    assert done.status == 1
    assert "could not be imported: SystemExit: 0" in done.err.splitlines()[-1]
