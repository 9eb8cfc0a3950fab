"""What is known of one row of ``top``, as lines: of a run the whole chain of who it waits for (LCK-7).

The law: it is read out of the picture alone, and says so where the picture does not know.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from concorde_trio.cli.chain import chain_of
from concorde_trio.cli.picture import Picture
from concorde_trio.cli.sessions import session_waits
from concorde_trio.cli.show import at, lasting
from concorde_trio.cli.top_rows import aged, lock_key
from concorde_trio.cli.words import chain_in_words

Row: TypeAlias = dict[str, Any]


def detail(picture: Picture, section: str, key: str, now: float) -> list[str]:
    """The lines about this row of this list; they may be wider than the terminal."""
    match section:
        case "runs":
            found = picture.runs.get(key)
            return [] if found is None else list(_run(picture, found, now))
        case "sessions":
            return list(_session(picture, key, now))
        case "locks":
            lock = next((each for each in picture.locks if lock_key(each) == key), None)
            return [] if lock is None else list(_lock(picture, lock, now))
        case _:
            return list(_signal(picture, key, now))


def _run(picture: Picture, run: Row, now: float) -> Iterator[str]:
    alone = f", alone with {', '.join(run['resources'])}" if run["resources"] else ""
    yield f'run {run["id"]} of signal {run["signal_id"]} ({run["kind"] or "?"}), session "{run["session"]}"{alone}'
    chain = chain_of(picture.runs, run["id"])
    yield "who it waits for, to the root:" if len(chain) > 1 else "it waits for no run"
    for line in chain_in_words(chain, picture.signals, now):
        yield f"  {line}"
    last = chain[-1]
    if last["waits_for"]:
        yield f"  run {last['waits_for'][0]['run_id']}, which is not among those listed; root: run {run['root']}"
    if run["state"] == "running" and run["session"] in picture.sessions:
        yield from _session(picture, run["session"], now)


def _session(picture: Picture, name: str, now: float) -> Iterator[str]:
    session = picture.sessions.get(name)
    if session is None:
        return
    since = now - picture.taken
    if session["waiting_on"] is None:
        yield f'session "{name}" was just taken into memory'
        return
    moved = [{**each, **_later(each, since)} for each in (*session["holds"], *session["approvals"])]
    shown = {
        **session,
        "waiting_on": aged(session["waiting_on"], since),
        "run": None,
        "holds": moved[: len(session["holds"])],
        "approvals": moved[len(session["holds"]) :],
    }
    yield from session_waits(shown)
    if session["queued"]:
        yield f"  {session['queued']} queued{', held until somebody resumes' if session['held'] else ''}"
    for each in session["abandoned"]:
        if each["ended"] is None:
            yield f"  left running: {each['what']} of {each['tool']} since {at(each['since'])}: {each['about']}"
    for run in picture.runs.values():
        if run["session"] == name:
            yield f"  run {run['id']}: {run['state']} for {lasting(now - run['since'])}"


def _later(hold: Row, seconds: float) -> Row:
    return {
        name: hold[name] + (-seconds if name == "left" else seconds)
        for name in ("since", "left", "last_progress")
        if hold.get(name) is not None
    }


def _lock(picture: Picture, lock: Row, now: float) -> Iterator[str]:
    yield f'{lock["space"]} "{lock["name"]}"'
    for what, run_ids in (("held by", lock["holders"]), ("waits", lock["waiting"])):
        for run_id in run_ids:
            run = picture.runs.get(run_id)
            more = (
                "" if run is None else f', session "{run["session"]}", {run["state"]} for {lasting(now - run["since"])}'
            )
            yield f"  {what}: run {run_id}{more}"
    if lock["more_waiting"]:
        yield f"  and {lock['more_waiting']:,} more wait"


def _signal(picture: Picture, signal_id: str, now: float) -> Iterator[str]:
    signal = picture.signals.get(signal_id) or picture.pending.get(signal_id)
    if signal is None:
        return
    since = "" if signal["emitted_at"] is None else f", emitted {at(signal['emitted_at'])}"
    yield f"signal {signal_id} of kind {signal['kind'] or '?'}{since}"
    if signal["retry_of"]:
        yield f"  retry of {signal['retry_of']}"
    if "phase" not in signal:
        yield "  it is pending: no worker has claimed it"
        return
    yield f"  {signal['phase']}; {signal['open']} of {signal['runs']} runs have not ended"
    if signal["post_started_at"] is not None:
        yield f"  its post phase runs for {lasting(now - signal['post_started_at'])}"
    if signal["error"]:
        yield f"  {signal['error']}"
