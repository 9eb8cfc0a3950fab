"""The installed program as a shell sees it: terminals, colours, pipes that close, full disks, what it imports."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.queues import FAILED, TAG, WAITING, write_failed
from tests.cli.running import Command, script

pytestmark = pytest.mark.slow

STYLE = re.compile(r"\x1b\[[0-9;]*m")


def _on_terminal(*arguments: str, answer: bytes = b"", columns: str = "100", **env: str) -> tuple[int, str]:
    """The status and output of the program on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        [script(), *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm-256color", "COLUMNS": columns, "LANG": "C.UTF-8", **env},
        start_new_session=True,
    )
    os.close(theirs)
    if answer:
        os.write(ours, answer)
    output = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    os.close(ours)
    return process.wait(timeout=20), output.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "arguments",
    [("signals",), ("signals", "signal-1"), ("runs",), ("runs", "signal-1-0"), ("why", "signal-4-0"), ("locks",)],
    ids=" ".join,
)
def test_a_terminal_gets_styles_of_ours_and_no_other_escape(household: Path, arguments: tuple[str, ...]) -> None:
    """TAG-4: hostile text is text on a terminal too."""
    status, output = _on_terminal(*arguments)
    assert status == 0
    plain = STYLE.sub("", output)
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in plain.replace("\n", ""))
    assert "\u202e" not in plain and TAG not in plain
    # Red is for failed alone: the escape of the payload that says red was not let through.
    assert "\x1b[31m[red]" not in output


def test_a_terminal_gets_a_table_in_colours_with_whole_ids(household: Path) -> None:
    """SIG-4: states in colour."""
    status, output = _on_terminal("signals")
    assert status == 0
    assert STYLE.search(output)
    assert "kind[red]1" in STYLE.sub("", output)
    for number in range(1, 8):
        assert f"signal-{number}" in output


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("what", ["runs", "signals"])
def test_a_long_error_leaves_ids_states_and_times_whole(here: Path, columns: str, what: str) -> None:
    """RUN-7: an error may be long, and the rows beside it are still for reading and copying."""
    began = time.time() - 60
    write_failed(here / "concorde.db", "something went wrong, as it does " * 60, began)
    status, output = _on_terminal(what, columns=columns)
    lines = STYLE.sub("", output).partition("no worker serves")[0].splitlines()
    assert status == 0 and max(map(len, lines)) <= int(columns)
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.strip()}
    if what == "signals":
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(began)).split()
        assert rows[FAILED][1:5] == ["failed", *when, "12.0s"] and rows[FAILED][5].startswith("someth")
        assert rows[WAITING][1:] == ["processing", *when, "-"]
        return
    assert rows[f"{FAILED}-1"][:5] == ["ann", "failed", "3.00s", "8.00s", "something"]
    assert rows[f"{WAITING}-1"][:3] == ["cleo", "running", "4.00s"] and rows[f"{WAITING}-1"][3].endswith("+")
    session, state, waited, ran, blocker, *_ = rows[f"{WAITING}-2"]
    assert (session, state, ran, blocker) == ("cleo", "pending", "-", f"{WAITING}-1") and waited.endswith("+")


def test_no_color_is_respected(household: Path) -> None:
    """https://no-color.org"""
    for arguments in (("signals",), ("signals", "signal-1")):
        status, output = _on_terminal(*arguments, NO_COLOR="1")
        assert status == 0
        assert not re.search(r"\x1b\[(?:\d+;)*(?:3[0-9]|9[0-7])", output)


def test_the_json_form_has_no_style_on_a_terminal_either(household: Path) -> None:
    """Exactly one JSON document."""
    import json

    status, output = _on_terminal("signals", "--json")
    assert status == 0 and "\x1b" not in output
    assert len(json.loads(output)["signals"]) == 7


def test_prune_asks_on_a_terminal_and_removes_nothing_without_a_yes(household: Path, command: Command) -> None:
    """STP-5: people do not lose what they did not mean."""
    status, output = _on_terminal("prune", "--older-than", "1d", answer=b"\n")
    assert status == 1 and "Remove 2 signals" in output and "nothing was removed" in output
    assert len(command("signals", "--json").json["signals"]) == 7
    status, output = _on_terminal("prune", "--older-than", "1d", answer=b"y\n")
    assert status == 0 and "removed 2 signals" in output
    status, output = _on_terminal("prune", "--older-than", "1d")
    assert status == 0 and "nothing was settled before" in output


def test_prune_with_yes_does_not_ask_on_a_terminal(household: Path) -> None:
    """STP-5."""
    status, output = _on_terminal("prune", "--older-than", "1d", "--yes")
    assert status == 0 and "Remove" not in output and "removed 2 signals" in output


def test_a_reader_that_goes_away_ends_a_command_quietly(household: Path, here: Path) -> None:
    """As any program of a shell does."""
    process = subprocess.Popen([script(), "runs"], cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=20) == 141
    assert err == b""


def test_a_full_disk_is_a_failure_that_says_so(household: Path, here: Path) -> None:
    """An answer that was not written is no success."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([script(), "runs"], cwd=here, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr == b"concorde-trio: No space left on device\n"


def test_a_locale_without_letters_gets_escapes_and_no_traceback(household: Path, here: Path) -> None:
    """Every terminal can show ASCII."""
    subprocess.run([script(), "emit", "家", "1"], cwd=here, check=True, stdout=subprocess.DEVNULL)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([script(), "signals"], cwd=here, env=environment, capture_output=True, check=False)
    assert done.returncode == 0 and b"Traceback" not in done.stderr
    assert b"\\u5bb6" in done.stdout


def test_an_emit_imports_nothing_of_the_web_and_no_rich(household: Path, here: Path) -> None:
    """Startup is quick: what is heavy is imported where it is used."""
    program = (
        "import sys; from concorde_trio.cli import main\n"
        "status = main(['emit', 'message.received', 'null'])\n"
        "heavy = ('quart', 'quart_trio', 'hypercorn', 'werkzeug', 'rich', 'jinja2', 'asyncio', 'concorde_trio.signals.worker')\n"
        "print(status, [name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=here, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "0 []"


def test_an_importable_package_does_not_import_the_web_by_itself(here: Path) -> None:
    """``import concorde_trio`` is what every producer pays for."""
    program = "import sys, concorde_trio; print([name for name in ('quart', 'hypercorn') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_fault_of_the_program_is_one_sentence_that_asks_for_a_report(
    command: Command, household: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never a traceback, but a way to get it."""

    def broken(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("by zero\nat last")

    monkeypatch.setattr("concorde_trio.cli.listing.open_source", broken)
    done = command("signals")
    assert done.status == 1
    assert "please report it: ZeroDivisionError: by zero at last (CONCORDE_TRACEBACK=1" in done.sentence()
    monkeypatch.setenv("CONCORDE_TRACEBACK", "1")
    assert "Traceback" in command("signals").err
