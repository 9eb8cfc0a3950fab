"""The lists of ``top``, of a picture at one moment: runs, sessions, locks, and signals that no run stands for.

The law: a row is told by what it is called, so that who looks stays with it while others come and go. Times are counted from
the moment that the picture is of. Texts are as they came; whoever prints them makes them visible.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from concorde_trio.cli.picture import Picture
from concorde_trio.cli.show import STYLES, Cell, first_line, id_cell, name_cell, plural, time_cell
from concorde_trio.cli.words import ordinal

Row: TypeAlias = dict[str, Any]

RUN_STYLES: Mapping[str, str] = {
    "running": "cyan",
    "stopping": "magenta",
    "held": "blue",
    "ready": "green",
    "waiting": "yellow",
    "ended": "dim",
}
SECTIONS = ("runs", "sessions", "locks", "signals")
OTHER_HOLDS = 3
"""Holds of a session that stand in its row."""


@attrs.frozen
class Section:
    """One list. ``keys`` name its rows. ``more``: what there is that the snapshot does not list, in words; "" for nothing.

    Cells are made of the rows that are shown, and of no others.
    """

    name: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    more: str
    _rows: Sequence[Row]
    _made: Callable[[Row], tuple[Cell, ...]]

    def cells(self, first: int, last: int) -> list[tuple[Cell, ...]]:
        """Of the rows from this one up to that one, without it."""
        return [self._made(row) for row in self._rows[first:last]]


def sections(picture: Picture, now: float) -> list[Section]:
    """All of them, in the order of SECTIONS."""
    runs, sessions = list(picture.runs.values()), list(picture.sessions.values())
    signals = [
        row
        for row in (*picture.signals.values(), *picture.pending.values())
        if row.get("phase") != "running" or not row["runs"]  # the runs of the others are in the list of runs
    ]
    return [
        Section(
            "runs",
            ("RUN", "STATE", "FOR", "LEFT", "SESSION", "KIND", "WAITS FOR"),
            tuple(run["id"] for run in runs),
            _more(picture, "runs"),
            runs,
            lambda run: _run(run, picture, now),
        ),
        Section(
            "sessions",
            ("SESSION", "WAITS ON", "FOR", "LEFT", "QUEUED", "HOLDS, AND WHAT IT IS"),
            tuple(session["name"] for session in sessions),
            _more(picture, "sessions"),
            sessions,
            lambda session: _session(session, now - picture.taken),
        ),
        Section(
            "locks",
            ("LOCK", "NAME", "HELD BY", "WAIT", "IN ORDER"),
            tuple(map(lock_key, picture.locks)),
            _more(picture, "locks"),
            picture.locks,
            _lock,
        ),
        Section(
            "signals",
            ("SIGNAL", "STATE", "FOR", "KIND", "ERROR"),
            tuple(signal["id"] for signal in signals),
            _more(picture, "signals"),
            signals,
            lambda signal: _signal(signal, now),
        ),
    ]


def lock_key(lock: Row) -> str:
    """What a lock is called among locks."""
    return f"{lock['space']} {lock['name']}"


def _run(run: Row, picture: Picture, now: float) -> tuple[Cell, ...]:
    state = "stopping" if run["stopping_since"] is not None else run["state"]
    left = ""
    if run["time_limit"] is not None and run["state"] == "running" and run["started_at"] is not None:
        left = brief(run["started_at"] + run["time_limit"] - now)
    return (
        id_cell(run["id"]),
        Cell(state, RUN_STYLES.get(state, ""), fixed=True),
        time_cell(brief(now - run["since"])),
        time_cell(left),
        name_cell(run["session"]),
        name_cell(run["kind"] or ""),
        Cell(*_waits(run, picture, now), whole=True),
    )


def _waits(run: Row, picture: Picture, now: float) -> tuple[str, str]:
    """For whom, or what, in short; and a style."""
    if run["waits_for"]:
        first, *others = run["waits_for"]
        more = f" and {len(others)} more" if others else ""
        place = f"{first['run_id']} on {first['space']} {first['name']}{more}, {ordinal(first['position'])} in line"
        return place + (f"; root {run['root']}" if run["root"] != first["run_id"] else ""), ""
    if run["state"] == "held":
        signal = picture.signals.get(run["signal_id"], {})
        others = signal.get("open", 0) and signal.get("phase") != "posting"
        return f"{run['outcome']}; held for {'other runs of its signal' if others else 'its post phase'}", ""
    if run["state"] == "ended":
        return f"{run['outcome']}{': ' if run.get('error') else ''}{first_line(run.get('error'))}", STYLES.get(
            run["outcome"], ""
        )
    session = picture.sessions.get(run["session"])
    if run["state"] == "running" and session is not None and session["waiting_on"] is not None:
        waiting = aged(session["waiting_on"], now - picture.taken)
        left = "" if waiting["left"] is None else f", {brief(waiting['left'])} left"
        return f"{waiting['on']}{': ' if waiting['about'] else ''}{first_line(waiting['about'])}{left}", ""
    return ("a place", "") if run["state"] == "ready" else ("", "")


def _session(session: Row, since: float) -> tuple[Cell, ...]:
    waiting = session["waiting_on"]
    shown: Row = {"on": "", "about": None, "since": None, "left": None}
    if waiting is not None:
        shown = aged(waiting, since)
    holds = [f"{hold.get('tool', hold['what'])} {brief(hold['left'] - since)} left" for hold in session["holds"]]
    holds += [f"asks about {each['tool']}, {brief(each['left'] - since)} left" for each in session["approvals"]]
    if running := sum(each["ended"] is None for each in session["abandoned"]):
        holds.append(f"{running} left running")
    about = [*holds[:OTHER_HOLDS], *(["…"] if len(holds) > OTHER_HOLDS else []), first_line(shown["about"])]
    return (
        Cell(session["name"], "bold", whole=True),
        Cell(shown["on"], "" if shown["on"] == "input" else "cyan", fixed=True),
        time_cell("" if shown["since"] is None else brief(shown["since"])),
        time_cell("" if shown["left"] is None else brief(shown["left"])),
        time_cell(f"{session['queued']}{' held' if session['held'] else ''}" if session["queued"] else ""),
        Cell("; ".join(each for each in about if each), whole=True),
    )


def aged(waiting: Row, seconds: float) -> Row:
    """What a session waits for, so many seconds later."""
    moved = {name: waiting[name] + seconds for name in ("since", "last_progress") if waiting[name] is not None}
    left = None if waiting["left"] is None else waiting["left"] - seconds
    return {**waiting, **moved, "left": left}


def _lock(lock: Row) -> tuple[Cell, ...]:
    waiting = len(lock["waiting"]) + lock["more_waiting"]
    return (
        Cell(lock["space"], fixed=True),
        Cell(lock["name"], "bold", whole=True),
        Cell(", ".join(lock["holders"]), whole=True),
        Cell(str(waiting) if waiting else "", "yellow", fixed=True),
        Cell(", ".join(lock["waiting"]), whole=True),
    )


def _signal(signal: Row, now: float) -> tuple[Cell, ...]:
    state = signal.get("phase") or "pending"
    began = signal.get("post_started_at") or signal["emitted_at"]
    return (
        id_cell(signal["id"]),
        Cell(state, STYLES.get(state, "cyan"), fixed=True),
        time_cell("" if began is None else brief(now - began)),
        name_cell(signal["kind"] or ""),
        Cell(first_line(signal.get("error")), "red"),
    )


def _more(picture: Picture, name: str) -> str:
    more = picture.more[name]
    if name != "signals":
        return f"{more:,} more" if more else ""
    known = f"{more:,} more" if more else ""
    return ", ".join(each for each in (known, "more that wait" if picture.more["pending"] else "") if each)


def summary(picture: Picture) -> str:
    """How much there is of each, in one line."""
    states = [run["state"] for run in picture.runs.values()]
    stopping = sum(run["stopping_since"] is not None for run in picture.runs.values())
    running = f"{states.count('running')} running" + (f" ({stopping} stopping)" if stopping else "")
    ready = f", {states.count('ready')} may start" if "ready" in states else ""
    waiting = f"{states.count('waiting')}{'+' if picture.more['runs'] else ''} waiting"
    busy = sum(session["in_run"] for session in picture.sessions.values())
    pending = f"{len(picture.pending)}{'+' if picture.more['pending'] else ''} pending"
    return (
        f"{running}, {states.count('held')} held{ready}, {waiting}; {plural(len(picture.signals), 'signal')} in hand, "
        f"{pending}; {plural(len(picture.sessions), 'session')}, {busy} at work"
    )


def standing_of(worker: Row) -> str:
    """What the worker does, in words."""
    mode = f" ({worker['stop_mode']})" if worker["stop_mode"] else ""
    error = f"; the last error: {worker['last_error']}" if worker["last_error"] else ""
    said = {
        "none": "no worker serves this queue now; this is what the database says",
        "unasked": "the worker was not asked; this is what the database says",
        "gone": "the worker is gone; this is the last that was heard",
        "unknown": "looking for a worker",
    }
    return said.get(worker["status"], f"worker {worker['status']}{mode}{error}")


def brief(seconds: float) -> str:
    """A duration without parts of a second: 5s, 3m05s, 2h07m, 4d03h."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"
