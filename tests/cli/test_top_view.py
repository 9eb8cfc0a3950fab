"""``top`` without a terminal: its lists, its lines at every size, and what keys do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from concorde_trio.cli.picture import Picture
from concorde_trio.cli.top_keys import Keys
from concorde_trio.cli.top_layout import share, window
from concorde_trio.cli.top_rows import brief, sections, summary
from concorde_trio.cli.top_screen import render
from concorde_trio.cli.top_view import Action, View
from tests.cli.queues import HOSTILE
from tests.cli.test_picture import EMPTY

NOW = 1_000.0


def run(name: str, state: str = "running", **more: Any) -> dict[str, Any]:
    """A run of a snapshot."""
    known: dict[str, Any] = {
        "id": name,
        "signal_id": "s1",
        "kind": "mail",
        "position": 1,
        "session": "ann",
        "resources": [],
        "state": state,
        "outcome": None,
        "since": NOW - 65,
        "queued_at": NOW - 65,
        "started_at": NOW - 65 if state == "running" else None,
        "ended_at": None,
        "time_limit": None,
        "stopping_since": None,
        "waits_for": [],
        "root": None,
    }
    return {**known, **more}


def behind(blocker: str, name: str = "ann", position: int = 1) -> dict[str, Any]:
    """A lock that is missed."""
    return {"space": "session", "name": name, "run_id": blocker, "position": position}


def session(name: str, on: str, left: float | None, **more: Any) -> dict[str, Any]:
    """A session of a snapshot."""
    waiting = {"on": on, "about": f"{on} of it", "since": 5.0, "last_progress": None, "left": left, "then": None}
    known = {"name": name, "status": on, "held": False, "queued": 0, "in_run": True, "waiting_on": waiting}
    return {**known, "holds": [], "approvals": [], "abandoned": [], "usage": None, **more}


def house(**parts: Any) -> Picture:
    """A picture of a gateway."""
    made = Picture()
    made.begin({**EMPTY, "at": NOW, **parts})
    return made


def crowd(text: str = "ann") -> Picture:
    """Some of everything; ``text`` wherever text may come from outside."""
    tool = {"what": "tool", "call_id": text, "tool": text, "kind": "execute", "since": 3.0, "last_progress": None}
    runs = [run("r1", "running", session=text, kind=text, time_limit=100.0)]
    runs += [
        run(f"r{n}", "waiting", session=text, waits_for=[behind(f"r{n - 1}", text)], root="r1") for n in range(2, 60)
    ]
    return house(
        runs=runs,
        sessions=[session(text, "tool", 30.0, holds=[{**tool, "left": 30.0}], queued=2)],
        locks=[{"space": "session", "name": text, "holders": ["r1"], "waiting": ["r2", "r3"], "more_waiting": 56}],
        pending=[{"id": "s9", "seq": 9, "kind": text, "emitted_at": NOW - 9, "retry_of": None}],
    )


def lines(view: View, picture: Picture, width: int = 120, height: int = 40) -> list[str]:
    """What stands on the terminal."""
    return [line.plain.rstrip() for line in render(view, picture, NOW, width, height, "queue.db")]


def press(view: View, picture: Picture, *keys: str) -> Action | None:
    """Press keys; what the last one leads to."""
    found = None
    for key in keys:
        found = view.press(key, picture, sections(picture, NOW))
    return found


# --- what stands there ------------------------------------------------------------------------------------------


def test_a_run_is_told_with_its_time_its_limit_and_whom_it_waits_for() -> None:
    """SRV-4, LCK-7, RUN-6."""
    runs, *_ = sections(crowd(), NOW)
    cells = [[cell.text for cell in row] for row in runs.cells(0, 3)]
    assert cells[0][:6] == ["r1", "running", "1m05s", "35s", "ann", "ann"]
    assert cells[0][6] == "tool: tool of it, 30s left"
    assert cells[1][1:4] == ["waiting", "1m05s", ""] and cells[1][6] == "r1 on session ann, 1st in line"
    assert cells[2][6] == "r2 on session ann, 1st in line; root r1"


@pytest.mark.parametrize(
    ("more", "signal", "told"),
    [
        ({"state": "held", "outcome": "done"}, {"phase": "posting", "open": 0}, "done; held for its post phase"),
        ({"state": "held", "outcome": "failed"}, {"phase": "running", "open": 2}, "failed; held for other runs of its signal"),
        ({"state": "ready"}, {"phase": "running", "open": 1}, "a place"),
        ({"state": "ended", "outcome": "failed", "error": "no money\nleft"}, {"phase": "running", "open": 0}, "failed: no money"),
    ],
)  # fmt: skip
def test_a_run_that_neither_waits_nor_runs_is_told_with_what_keeps_it(
    more: dict[str, Any], signal: dict[str, Any], told: str
) -> None:
    """LCK-3, LCK-4: a place, the other runs of its signal, or the post phase."""
    known = {"id": "s1", "kind": "mail", "runs": 1, "post_started_at": None, "error": None, "emitted_at": 0.0}
    picture = house(runs=[run("r1", **more)], signals=[{**known, **signal}])
    assert sections(picture, NOW)[0].cells(0, 1)[0][-1].text == told


def test_times_of_sessions_go_on_between_two_snapshots() -> None:
    """SES-12a: what is left of a hold is counted from the moment of the snapshot."""
    picture = crowd()
    _, sessions, *_ = sections(picture, NOW + 12)
    assert [cell.text for cell in sessions.cells(0, 1)[0][:5]] == ["ann", "tool", "17s", "18s", "2"]
    assert sessions.cells(0, 1)[0][5].text.startswith("ann 18s left; tool of it")


def test_signals_whose_runs_are_listed_are_not_listed_themselves() -> None:
    """SIG-4: those whose handle or post is called, and those that nobody has claimed."""
    known = {"kind": "mail", "post_started_at": None, "error": None, "emitted_at": NOW - 3, "seq": 1, "retry_of": None}
    picture = house(
        signals=[
            {**known, "id": "s1", "phase": "running", "runs": 2, "open": 2},
            {**known, "id": "s2", "phase": "handling", "runs": 0, "open": 0},
            {**known, "id": "s3", "phase": "posting", "runs": 1, "open": 0, "post_started_at": NOW - 2},
        ],
        pending=[{**known, "id": "s4"}],
        more_pending=True,
    )
    *_, signals = sections(picture, NOW)
    assert [[cell.text for cell in row[:3]] for row in signals.cells(0, 9)] == [
        ["s2", "handling", "3s"],
        ["s3", "posting", "2s"],
        ["s4", "pending", "3s"],
    ]
    assert signals.more == "more that wait" and "3 signals in hand, 1+ pending" in summary(picture)


@given(
    width=st.integers(1, 200),
    height=st.integers(1, 80),
    opened=st.booleans(),
    helped=st.booleans(),
    focus=st.sampled_from(["runs", "sessions", "locks", "signals"]),
    text=st.sampled_from(["ann", HOSTILE, "家族" * 40, "a" * 200]),
    down=st.integers(0, 70),
)
@example(width=80, height=24, opened=True, helped=False, focus="runs", text=HOSTILE, down=59)
def test_every_size_is_filled_and_nothing_acts_on_the_terminal(
    width: int, height: int, opened: bool, helped: bool, focus: str, text: str, down: int
) -> None:
    """SRV-4, TAG-4: as many lines as there are, none too wide, and hostile text is text."""
    view, picture = View(focus=focus, opened=opened, help=helped), crowd(text)
    if not helped:
        press(view, picture, *["down"] * down)
    drawn = render(view, picture, NOW, width, height, text)
    assert len(drawn) == height
    for line in drawn:
        assert cell_len(line.plain) <= width
        assert line.plain.isprintable() and "\u202e" not in line.plain


@given(rows=st.integers(1, 60), down=st.lists(st.sampled_from(["down", "up", "pagedown", "end", "home"]), max_size=30))
def test_the_chosen_row_stays_in_sight(rows: int, down: list[str]) -> None:
    """SRV-4: at any size, wherever the keys lead."""
    view, picture = View(), crowd()
    for key in down:
        press(view, picture, key)
        drawn = render(view, picture, NOW, 100, rows + 8, "queue.db")
        chosen = [line for line in drawn[3:] if any("reverse" == str(span.style) for span in line.spans)]
        assert any(line.plain.startswith(view.chosen["runs"] + " ") for line in chosen)


@given(
    room=st.integers(0, 60),
    wanted=st.fixed_dictionaries({name: st.integers(0, 90) for name in "abcd"}),
    focus=st.sampled_from("abcd"),
)
def test_lines_are_shared_whole_and_the_focus_comes_first(room: int, wanted: dict[str, int], focus: str) -> None:
    """SRV-4: no line is given twice, none is left while a list wants one, and who is looked at is there."""
    given_rows = share(room, wanted, focus)
    used = sum(rows + 1 for rows in given_rows.values())
    assert used <= room and all(1 <= rows <= wanted[name] for name, rows in given_rows.items())
    if room >= 2 and wanted[focus]:
        assert focus in given_rows
    if any(rows < wanted[name] for name, rows in given_rows.items()):
        assert used == room


@given(offset=st.integers(0, 99), count=st.integers(1, 99), rows=st.integers(1, 40), data=st.data())
def test_a_window_has_the_chosen_row_and_no_gap_at_its_end(
    offset: int, count: int, rows: int, data: st.DataObject
) -> None:
    """SRV-4."""
    chosen = data.draw(st.integers(0, count - 1))
    first = window(offset, count, rows, chosen)
    assert first <= chosen < first + rows and 0 <= first <= max(0, count - rows)


def test_durations_have_no_parts_of_a_second() -> None:
    """They are drawn anew each second."""
    told = [brief(seconds) for seconds in (-3, 0.9, 59.99, 60, 3599, 3600, 86399, 86400 * 4 + 3 * 3600)]
    assert told == ["0s", "0s", "59s", "1m00s", "59m59s", "1h00m", "23h59m", "4d03h"]


# --- what keys do -----------------------------------------------------------------------------------------------


def test_the_choice_stays_with_its_run_and_takes_its_place_when_it_goes() -> None:
    """SRV-4: lists move under the eyes."""
    view, picture = View(), crowd()
    lines(view, picture)
    press(view, picture, "down", "j")
    assert view.chosen["runs"] == "r3"
    picture.runs = {"r9x": run("r9x", "running"), **picture.runs}
    lines(view, picture)
    assert view.chosen["runs"] == "r3"
    del picture.runs["r3"]
    lines(view, picture)
    assert view.chosen["runs"] == "r4"


def test_enter_shows_the_whole_chain_of_the_chosen_run() -> None:
    """LCK-7: each run on it, its session, what it does, and its place in line."""
    view, picture = View(), crowd()
    press(view, picture, "down", "down", "w")
    told = lines(view, picture)
    chain = [line.strip() for line in told if line.strip().startswith("run r")]
    assert [line.split()[1] for line in chain[:4]] == ["r3", "r3", "r2", "r1"]
    assert any("left of its 1m40s" in line for line in told)
    press(view, picture, "escape")
    assert lines(view, picture) != told


def test_nothing_is_cancelled_or_interrupted_without_a_yes() -> None:
    """RUN-6, SES-12: the question names what it is about."""
    view, picture = View(), crowd()
    assert press(view, picture, "down", "c") is None
    assert lines(view, picture)[-1] == 'cancel run r2 of session "ann", which is waiting? y/n'
    assert press(view, picture, "enter") is None
    assert lines(view, picture)[-1] == "nothing was done"
    assert press(view, picture, "c", "y") == Action("cancel_run", "r2")
    assert press(view, picture, "i", "n") is None
    assert press(view, picture, "i", "Y") == Action("interrupt", "ann")
    assert press(view, picture, "tab", "i", "y") == Action("interrupt", "ann")
    assert press(view, picture, "tab", "c") is None and "choose one" in view.said and view.question is None
    assert press(view, picture, "tab", "c", "y") == Action("cancel_signal", "s9")
    assert press(view, picture, "q") == Action("quit")


def test_an_answer_is_about_what_was_asked() -> None:
    """RUN-6: the list may have moved under the question."""
    view, picture = View(), crowd()
    press(view, picture, "down", "c")
    del picture.runs["r2"]
    lines(view, picture)
    assert press(view, picture, "y") == Action("cancel_run", "r2")


def test_who_has_ended_or_is_not_served_is_not_asked_about() -> None:
    """RUN-6."""
    view, picture = View(), house(runs=[run("r1", "held", outcome="done")])
    assert press(view, picture, "c") is None and view.question is None
    assert view.said == "run r1 has ended; there is nothing to cancel"
    picture = Picture()
    picture.begin({**EMPTY, "id": None, "at": NOW, "runs": [run("r1", "running")]})
    assert press(view, picture, "i") is None and view.question is None and "no worker serves" in view.said


def test_any_key_closes_the_help_and_does_nothing_else() -> None:
    """It is read by who does not know the keys."""
    view, picture = View(), crowd()
    press(view, picture, "?")
    assert any("shows what is going on" in line for line in lines(view, picture))
    assert press(view, picture, "q") is None and not view.help


@pytest.mark.parametrize(
    ("pieces", "keys"),
    [
        ([b"q"], ["q"]),
        ([b"jk\r\t"], ["j", "k", "enter", "tab"]),
        ([b"\x1b[A\x1bOB\x1b[H\x1b[4~\x1b[5~\x1b[6~\x1b[Z"], ["up", "down", "home", "end", "pageup", "pagedown", "backtab"]),
        ([b"\x1b", b"[A"], ["up"]),
        ([b"\x1b[", b"5", b"~q"], ["pageup", "q"]),
        ([b"\x1b"], ["escape"]),
        ([b"\x1bq"], ["escape", "q"]),
        ([b"\x1b[1;5A\x1b[200~y"], ["y"]),
        ([b"\x00\x01\x7f\xff\xc3\xa4"], ["ä"]),
        ([b"\x1b[" + b"1" * 100], ["escape", "[", *"1" * 100]),
    ],
)  # fmt: skip
def test_bytes_are_read_as_keys(pieces: list[bytes], keys: list[str]) -> None:
    """What no key sends is passed over whole; an escape that nothing follows is Escape."""
    reader = Keys()
    found = [key for piece in pieces for key in reader.feed(piece)]
    assert found + reader.flush() == keys and not reader.begun


@given(st.binary(max_size=200), st.integers(0, 200))
def test_however_bytes_are_cut_they_are_the_same_keys(data: bytes, cut: int) -> None:
    """A slow line cuts sequences in two."""
    whole, parts = Keys(), Keys()
    data = data.decode("ascii", "ignore").encode()
    assert whole.feed(data) + whole.flush() == parts.feed(data[:cut]) + parts.feed(data[cut:]) + parts.flush()
