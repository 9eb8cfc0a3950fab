"""A queue without a running worker: its database is read, and what is asked of a worker waits there for the next."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

import pytest
import trio

from concorde_trio.records import RequestKind
from concorde_trio.stores.sqlite import SqliteStore
from tests.cli.queues import TAG, write_failed, write_line
from tests.cli.running import Command

EVERY_LOOK = (
    ("signals",),
    ("signals", "signal-1"),
    ("signals", "signal-3"),
    ("runs",),
    ("runs", "signal-1-0"),
    ("runs", "signal-3-0"),
    ("runs", "signal-4-0"),
    ("why", "signal-4-0"),
    ("why", "signal-3-0"),
    ("locks",),
)


@pytest.mark.parametrize("arguments", EVERY_LOOK, ids=" ".join)
def test_nothing_that_is_shown_acts_on_a_terminal_or_gives_a_live_tag_away(
    command: Command, household: Path, arguments: tuple[str, ...]
) -> None:
    """TAG-4: whatever is given out is masked; hostile text is text."""
    for further in ((), ("--json",)):
        done = command(*arguments, *further)
        assert done.status == 0
        assert TAG not in done.out + done.err
        assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in done.out.replace("\n", ""))
        assert "\u202e" not in done.out


@pytest.mark.parametrize("arguments", EVERY_LOOK, ids=" ".join)
def test_the_json_form_is_one_document_with_nothing_on_stderr(
    command: Command, household: Path, arguments: tuple[str, ...]
) -> None:
    """SRV-2 from a terminal."""
    done = command(*arguments, "--json")
    assert isinstance(done.json, dict)
    assert done.err == ""


def test_signals_are_listed_newest_first_with_their_states(command: Command, household: Path) -> None:
    """SIG-4."""
    done = command("signals")
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[0][:3] == ["ID", "KIND", "STATE"]
    assert [row[0] for row in rows[1:]] == [f"signal-{number}" for number in range(7, 0, -1)]
    assert [row[2] for row in rows[1:]] == ["pending"] + ["processing"] * 4 + ["done", "failed"]
    assert "\\x1b[31m[red]\\u202eend\\x9b0m" in done.out.splitlines()[-1]
    assert "second line" not in done.out


def test_what_is_unfinished_is_shown_with_a_word_that_nobody_works_on_it(command: Command, household: Path) -> None:
    """REC-1: a row may say running, and yet its worker is dead."""
    for arguments in (("signals",), ("signals", "signal-3"), ("runs",), ("runs", "signal-3-0"), ("locks",)):
        assert "no worker serves this queue now" in command(*arguments).err
    for arguments in (("signals", "--state", "done"), ("signals", "signal-1"), ("runs", "signal-2-0")):
        assert command(*arguments).err == ""


def test_signals_are_filtered_by_kind_and_state_and_counted(command: Command, household: Path) -> None:
    """SRV-2: filters and a limit."""
    found = command("signals", "--state", "processing", "--limit", "2", "--json").json
    assert [signal["id"] for signal in found["signals"]] == ["signal-6", "signal-5"]
    assert found["next"] is not None
    found = command("signals", "--kind", "kind[red]2", "--json").json
    assert [signal["id"] for signal in found["signals"]] == ["signal-2"]
    assert found["next"] is None
    done = command("signals", "--kind", "nothing")
    assert (done.status, done.out, done.err) == (0, "", "no signals\n")
    done = command("signals", "--limit", "3")
    assert done.out.count("\n") == 4 and "--limit" in done.err


def test_one_signal_is_shown_with_its_payload_its_error_and_its_runs(command: Command, household: Path) -> None:
    """SIG-4, SIG-5: what happened and why."""
    done = command("signals", "signal-1")
    assert "failed" in done.out and "interrupted" in done.out
    assert '"user": "ann"' in done.out
    assert "\\x1b[31m[red]\\u202eend\\x9b0m\\r\n  second line" in done.out
    assert "signal-1-0" in done.out
    found = command("signals", "signal-1", "--json").json
    assert found["payload"] == {"text": "\x1b[31m[red]\u202eend", "user": "ann"}
    assert [run["id"] for run in found["runs"]] == ["signal-1-0"]


def test_runs_are_listed_with_whom_a_waiting_one_waits_for(command: Command, household: Path) -> None:
    """LCK-7."""
    lines = {line.split()[0]: line for line in command("runs").out.splitlines()}
    assert list(lines)[1:] == [f"signal-{name}" for name in ("6-0", "5-0", "4-0", "3-1", "3-0", "2-0", "1-0")]
    assert 'signal-3-0 on session "ann" and 1 more' in lines["signal-4-0"]
    assert 'signal-3-0 on resource "budget"' in lines["signal-3-1"]
    assert 'signal-5-0 on session "bob"' in lines["signal-6-0"]


def test_how_long_a_run_has_waited_or_run_so_far_is_shown_with_a_plus(command: Command, here: Path) -> None:
    """LCK-7: since when, for a person who looks at it."""
    write_failed(here / "concorde.db", "it broke", time.time() - 60)
    lines = [line.split() for line in command("runs").out.splitlines()]
    assert [line[3:5] for line in lines[2:]] == [["4.00s", lines[2][4]], ["3.00s", "8.00s"]]
    assert lines[1][3].endswith("s+") and lines[1][4] == "-" and lines[2][4].endswith("s+")


def test_runs_are_filtered_by_session_resource_and_state(command: Command, household: Path) -> None:
    """SRV-2: filters."""

    def ids(*arguments: str) -> list[str]:
        return [run["id"] for run in command("runs", *arguments, "--json").json["runs"]]

    assert ids("--session", "ann") == ["signal-4-0", "signal-3-0"]
    assert ids("--resource", "budget", "--state", "pending") == ["signal-4-0", "signal-3-1"]
    assert ids("--session", "budget") == []


def test_the_runs_of_one_signal_are_listed_by_its_id(command: Command, household: Path) -> None:
    """SRV-2: filters."""
    for arguments in (("signal-3",), ("--signal", "signal-3")):
        found = command("runs", *arguments, "--json").json
        assert [run["id"] for run in found["runs"]] == ["signal-3-1", "signal-3-0"] and found["next"] is None
    assert [run["id"] for run in command("runs", "signal-3", "--limit", "1", "--json").json["runs"]] == ["signal-3-1"]
    found = command("runs", "--signal", "signal-3", "--state", "running", "--json").json
    assert [run["id"] for run in found["runs"]] == ["signal-3-0"]
    assert command("runs", "signal-7").err.startswith("no runs\n")
    done = command("runs", "--signal", "nobody")
    assert "nobody" in done.sentence() and done.status == 1


@pytest.mark.parametrize("arguments", [("signals",), ("retry",), ("runs", "--signal")], ids=" ".join)
def test_a_run_where_a_signal_is_expected_is_told_with_its_signal(
    command: Command, household: Path, arguments: tuple[str, ...]
) -> None:
    """PST-5: a signal is retried, and not a run."""
    done = command(*arguments, "signal-1-0")
    assert done.sentence() == "signal-1-0 is a run; its signal is signal-1" and done.status == 1


def test_one_run_is_shown_with_its_prompt_answer_usage_and_reason_to_wait(command: Command, household: Path) -> None:
    """RUN-5, LCK-7, TAG-4."""
    done = command("runs", "signal-2-0")
    assert "10 tokens in" in done.out and "cost 0.25" in done.out
    assert "  answer\n  in two lines" in done.out
    done = command("runs", "signal-3-0")
    assert "do it as [run tag]" in done.out
    done = command("runs", "signal-4-0")
    assert 'waits for run signal-3-0 of signal signal-3 on session "ann"' in done.out


def test_why_names_each_lock_the_nearest_run_before_and_the_root(command: Command, household: Path) -> None:
    """LCK-7: the nearest unreleased run before it, since when, its own position, and the root."""
    done = command("why", "signal-4-0")
    lines = done.out.splitlines()
    assert lines[0].startswith("run signal-4-0 of signal signal-4 waits since ")
    assert lines[1].startswith('  waits for run signal-3-0 of signal signal-3 on session "ann" (running since ')
    assert lines[1].endswith("); this run is 1st in line")
    assert lines[2].startswith('  waits for run signal-3-1 of signal signal-3 on resource "budget" (waiting since ')
    assert lines[2].endswith("); this run is 2nd in line")
    assert lines[3].startswith("  root: run signal-3-0 of signal signal-3 (running since ")
    assert len(lines) == 4
    assert "no worker" in done.err
    found = command("why", "signal-4-0", "--json").json
    assert [edge["position"] for edge in found["waits_for"]["edges"]] == [1, 2]
    assert found["waits_for"]["root"]["run_id"] == "signal-3-0"


def test_why_of_a_signal_tells_of_each_waiting_run_of_it(command: Command, household: Path) -> None:
    """LCK-7."""
    done = command("why", "signal-3")
    assert done.out.splitlines()[0].startswith("run signal-3-1 of signal signal-3 waits since ")
    assert 'waits for run signal-3-0 of signal signal-3 on resource "budget"' in done.out
    assert "run signal-3-0 of signal signal-3 is running" not in done.out and "no worker" in done.err
    found = command("why", "signal-3", "--json").json
    assert [run["id"] for run in found["runs"]] == ["signal-3-1"]
    one = command("why", "signal-3-1", "--json").json
    assert [link["run_id"] for link in one.pop("chain")] == ["signal-3-1", "signal-3-0"]
    assert found["runs"][0] == one
    assert command("why", "signal-2").out == "signal signal-2 is done: no run of it waits.\n"
    assert command("why", "signal-7").out == "signal signal-7 is pending, and not claimed yet: no run of it waits.\n"


def test_why_of_a_signal_tells_of_its_runs_in_their_order(command: Command, here: Path) -> None:
    """LCK-7: what is told is bounded."""
    write_line(here / "concorde.db", 203)
    found = command("why", "signal-1", "--json").json
    assert [run["id"] for run in found["runs"]] == [f"signal-1-{index}" for index in range(3, 203)]
    assert "the last 200 of its waiting runs" in command("why", "signal-1").err


def test_why_says_that_a_held_run_waits_for_its_post_phase(command: Command, household: Path) -> None:
    """LCK-4: post holds."""
    done = command("why", "signal-6-0")
    assert "(ended, and held for its signal's post phase since " in done.out


def test_why_of_a_run_that_does_not_wait_says_what_it_does(command: Command, household: Path) -> None:
    """LCK-7: one honest answer."""
    assert "run signal-3-0 of signal signal-3 is running since" in command("why", "signal-3-0").out
    assert "is done since" in command("why", "signal-2-0").out
    assert "is failed since" in command("why", "signal-1-0").out
    assert command("why", "signal-3-0", "--json").json["waits_for"] is None


def test_locks_are_listed_with_who_holds_them_and_who_waits_in_order(command: Command, household: Path) -> None:
    """LCK-7."""
    lines = command("locks").out.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        ["session", "ann"],
        ["session", "bob"],
        ["session", "cleo"],
        ["resource", "budget"],
    ]
    assert lines[1].endswith("signal-4-0") and "signal-3-0 (running)" in lines[1]
    assert "signal-5-0 (held)" in lines[2]
    assert lines[4].endswith("signal-3-1, signal-4-0")


def test_a_long_line_for_a_lock_is_shown_in_part_and_says_how_many_more(command: Command, here: Path) -> None:
    """LCK-7: a table of a hundred thousand waiting runs is for nobody."""
    write_line(here / "concorde.db", 103)
    found = command("locks", "--json").json
    assert [len(lock["waiting"]) for lock in found["locks"]] == [100]
    assert found["locks"][0]["more_waiting"] == 2
    assert command("locks").out.endswith(", and 2 more\n")


def test_a_signal_of_many_runs_shows_the_last_ones_and_says_so(command: Command, here: Path) -> None:
    """SRV-2: what is shown is bounded."""
    write_line(here / "concorde.db", 203)
    found = command("signals", "signal-1", "--json").json
    assert [run["index"] for run in found["runs"]] == list(range(3, 203)) and found["next"] is not None
    assert "the last 200 of its runs" in command("signals", "signal-1").err


@pytest.mark.parametrize(
    "arguments",
    [("signals", "nobody"), ("runs", "nobody"), ("why", "nobody"), ("cancel", "nobody\x1b"), ("retry", "nobody")],
    ids=" ".join,
)
def test_an_unknown_id_is_a_failure_that_names_it(
    command: Command, household: Path, arguments: tuple[str, ...]
) -> None:
    """RUN-6: what is not there cannot be cancelled."""
    done = command(*arguments)
    assert "nobody" in done.sentence() and done.status == 1


def _requests(path: Path) -> list[tuple[RequestKind, str]]:
    async def read() -> list[tuple[RequestKind, str]]:
        store = SqliteStore(path)
        async with store.open():
            return [(request.kind, request.target) for request in await store.requests()]

    return trio.run(read)


def test_a_cancel_without_a_worker_is_kept_for_the_next_one_and_says_so(command: Command, household: Path) -> None:
    """RUN-6: requests are rows, so they work from another process."""
    done = command("cancel", "signal-7")
    assert done.status == 0
    assert done.out == "asked for the end of signal signal-7, which is pending\n"
    assert "the next one will" in done.err
    done = command("cancel", "signal-4-0", "--json")
    assert done.json == {
        "id": "signal-4-0",
        "what": "run",
        "state": "pending",
        "requested": True,
        "worker": False,
    }
    assert done.err == ""
    assert _requests(household) == [
        (RequestKind.CANCEL_SIGNAL, "signal-7"),
        (RequestKind.CANCEL_RUN, "signal-4-0"),
    ]


@pytest.mark.parametrize("target", ["signal-1", "signal-2-0"])
def test_what_has_ended_cannot_be_cancelled(command: Command, household: Path, target: str) -> None:
    """RUN-6: waiting or running, pending or processing."""
    done = command("cancel", target)
    assert "already" in done.sentence() and done.status == 1
    assert _requests(household) == []


def test_retry_emits_the_same_kind_and_payload_linked_to_the_old_one(command: Command, household: Path) -> None:
    """PST-5."""
    done = command("retry", "signal-1")
    new = command("signals", done.out.strip(), "--json").json
    old = command("signals", "signal-1", "--json").json
    assert (new["kind"], new["payload"], new["state"]) == (old["kind"], old["payload"], "pending")
    assert new["retry_of"] == "signal-1"
    found = command("retry", "signal-2", "--json").json
    assert found["retry_of"] == "signal-2" and found["id"] != "signal-2"


def test_what_has_not_settled_cannot_be_retried(command: Command, household: Path) -> None:
    """PST-5."""
    done = command("retry", "signal-3")
    assert "processing" in done.sentence() and done.status == 1


def test_an_emit_prints_the_id_of_a_durable_signal(command: Command, household: Path) -> None:
    """SIG-1, SIG-8."""
    done = command("emit", "message.received", '{"user": "zoë"}')
    assert done.status == 0 and done.err == ""
    found = command("signals", done.out.strip(), "--json").json
    assert (found["kind"], found["payload"], found["state"]) == ("message.received", {"user": "zoë"}, "pending")


def test_an_emit_without_a_payload_has_null_and_dash_reads_stdin(command: Command, household: Path) -> None:
    """SIG-5: any JSON value, null included."""
    null = command("emit", "k", "--json").json["id"]
    piped = command("emit", "k", "-", stdin=b'\xef\xbb\xbf[1, 2.5, "x"]\n').out.strip()
    assert command("signals", null, "--json").json["payload"] is None
    assert command("signals", piped, "--json").json["payload"] == [1, 2.5, "x"]


def test_an_emit_with_a_key_is_stored_once(command: Command, household: Path) -> None:
    """SIG-7."""
    first = command("emit", "k", "1", "--key", "zoë-1").out
    assert command("emit", "k", "2", "--key", "zoë-1").out == first
    assert command("emit", "other", "2", "--key", "zoë-1").out != first


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("emit", ""), "kind"),
        (("emit", "a\x1bb"), "U+001B"),
        (("emit", "k" * 201), "200"),
        (("emit", "k", '"\\u0000"'), "payload"),
        (("emit", "k", '{"a": ["\\ud800"]}'), "payload.a[0]"),
        (("emit", "k", "[" * 200 + "]" * 200), "payload"),
        (("emit", "k", "1", "--key", ""), "key"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_place(
    command: Command, household: Path, arguments: tuple[str, ...], what: str
) -> None:
    """SIG-5, CLM-7: refused at emit, nothing is stored."""
    done = command(*arguments)
    assert what in done.sentence() and done.status == 2
    assert len(command("signals", "--json").json["signals"]) == 7


def test_an_emit_makes_a_database_only_when_told_to(command: Command, here: Path) -> None:
    """A misspelt path is no new queue."""
    assert command("emit", "k", "--store", "new.db").status == 2
    assert list(here.iterdir()) == []
    done = command("emit", "k", "--store", "new.db", "--create")
    assert done.status == 0
    assert command("signals", "--store", "sqlite:///new.db", "--json").json["signals"][0]["id"] == done.out.strip()
    assert "no folder" in command("emit", "k", "--store", "no/new.db", "--create").sentence()


def test_the_queue_can_be_named_by_the_environment(
    command: Command, household: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--store, then CONCORDE_STORE, then concorde.db here."""
    household.rename("other.db")
    monkeypatch.setenv("CONCORDE_STORE", f"sqlite:///{household.with_name('other.db')}")
    assert command("signals").status == 0
    assert "no database at x.db" in command("signals", "--store", "x.db").sentence()


def test_prune_removes_by_age_and_says_how_much(command: Command, household: Path) -> None:
    """STP-5."""
    done = command("prune", "--older-than", "1d", "--dry-run", "--json")
    assert done.json == {"signals": 2, "runs": 2, "sessions": 0, "before": done.json["before"], "dry_run": True}
    assert len(command("signals", "--json").json["signals"]) == 7
    done = command("prune", "--older-than", "1d", "--yes")
    assert done.out.startswith("removed 2 signals settled before ") and done.out.endswith(", and 2 runs of theirs\n")
    assert [signal["state"] for signal in command("signals", "--json").json["signals"]] == ["pending"] + 4 * [
        "processing"
    ]
    assert command("prune", "--older-than", "1d", "--yes", "--json").json["signals"] == 0


def test_prune_without_a_terminal_to_ask_on_must_be_told_yes(command: Command, household: Path) -> None:
    """STP-5: a script does not lose what its author did not mean."""
    done = command("prune", "--older-than", "1d", stdin=b"y\n")
    assert done.status == 2 and "--yes" in done.sentence()
    assert len(command("signals", "--json").json["signals"]) == 7


def test_prune_leaves_what_is_young(command: Command, household: Path) -> None:
    """STP-5: by age."""
    age = time.time() - 1_700_000_000
    assert command("prune", "--older-than", f"{age / 86400 + 1:.0f}d", "--yes", "--json").json["signals"] == 0


def test_a_database_that_another_holds_is_a_failure_that_says_so(
    command: Command, household: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """REC-5: busy can pass, and is told when it does not."""
    monkeypatch.setattr("concorde_trio.cli.queue.BUSY_TIMEOUT", 0.05)
    other = sqlite3.connect(household)
    try:
        other.execute("begin immediate")
        done = command("emit", "k")
    finally:
        other.close()
    assert done.status == 1 and "could not be written" in done.sentence()


def test_a_newer_database_is_refused_by_name(command: Command, household: Path) -> None:
    """A schema that this version does not know is not touched."""
    other = sqlite3.connect(household)
    other.execute("update concorde_meta set schema_version = 999")
    other.commit()
    other.close()
    for arguments in (("signals",), ("emit", "k"), ("prune", "--older-than", "1d", "--yes")):
        done = command(*arguments)
        assert done.status == 1 and "999" in done.sentence()


def test_a_damaged_database_is_a_failure_that_says_so(command: Command, household: Path) -> None:
    """REC-5: corrupt does not pass."""
    size = household.stat().st_size
    for path in household.parent.glob("concorde.db-*"):
        path.unlink()
    with household.open("r+b") as file:
        file.seek(100)
        file.write(os.urandom(size - 100))
    done = command("signals")
    assert done.status == 1 and "concorde.db" in done.sentence()
