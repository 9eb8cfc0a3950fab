"""Why a run waits, in words (LCK-7), out of the documents of ``concorde_trio.signals.views``; and that nobody works."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from concorde_trio.cli.chain import shared_misses, view_of
from concorde_trio.cli.show import at, first_line, lasting, note
from concorde_trio.cli.sources import is_served

if TYPE_CHECKING:
    from concorde_trio.signals.documents import Document


def waits_in_short(run: Document) -> str:
    """Whom a waiting run waits for, for a table's cell; "" when it waits for nobody."""
    waits = run.get("waits_for")
    if not waits or not waits["edges"]:
        return ""
    first, *others = waits["edges"]
    more = f" and {len(others)} more" if others else ""
    return f"{first['blocker']['run_id']} on {lock_name(first)}{more}"


def lock_name(lock: Document) -> str:
    """``session "ann"``."""
    return f'{lock["space"]} "{lock["name"]}"'


def why_in_words(run: Document) -> Iterator[str]:
    """The lines that say why a run waits, or why it does not."""
    name = f"run {run['id']} of signal {run['signal_id']}"
    state, waits = run["state"], run.get("waits_for")
    if state == "running":
        stopping = run.get("stopping")
        told = "" if stopping is None else f", and was told to stop {lasting(stopping)} ago"
        yield f"{name} is running since {_since(run['started_at'])}{told}."
    elif state != "pending":
        error = first_line(run.get("error"))
        yield f"{name} is {state} since {_since(run['ended_at'])}{': ' + error if error else ''}."
    elif not waits or not waits["edges"]:
        yield f"{name} waits for no other run: it may start as soon as a worker has a place for it."
    else:
        yield f"{name} waits since {_since(waits['run']['since'])}:"
        yield from _edges_in_words(waits["edges"])
        root = waits["root"]
        yield f"  root: run {root['run_id']} of signal {root['signal_id']} ({standing(root)})"


def _edges_in_words(edges: Iterable[Document]) -> Iterator[str]:
    """One line for each run that is waited for, and each place in line behind it; the locks together."""
    same: dict[tuple[str, int], list[Document]] = {}
    for edge in edges:
        same.setdefault((edge["blocker"]["run_id"], edge["position"]), []).append(edge)
    for (blocker_id, position), missed in same.items():
        blocker = missed[0]["blocker"]
        yield (
            f"  waits for run {blocker_id} of signal {blocker['signal_id']} on {' and '.join(map(lock_name, missed))} "
            f"({standing(blocker)}); this run is {ordinal(position)} in line"
        )


def chain_in_words(chain: Sequence[Document], signals: Mapping[str, Document], now: float) -> Iterator[str]:
    """A line for each run on a chain (of ``chain_of``): its session, what it does and since when, and its place in line."""
    for run in chain:
        what = standing(view_of(run, signals))
        if run["time_limit"] is not None and run["state"] == "running" and run["started_at"] is not None:
            left = run["started_at"] + run["time_limit"] - now
            what += f", {lasting(left)} left of its {lasting(run['time_limit'])}"
        places = [
            f"{ordinal(position)} in line on {' and '.join(map(lock_name, locks))} behind {blocker}"
            for blocker, position, locks in shared_misses(run)
        ]
        yield f'run {run["id"]} in session "{run["session"]}": {"; ".join([what, *places])}'


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"


def standing(view: Document) -> str:
    """What a run in the lock table does, and since when."""
    since = _since(view["since"])
    match view["state"]:
        case "held":
            others = view.get("unended", 0) and not view["posting"]
            what = "the other runs of its signal" if others else "its signal's post phase"
            return f"ended, and held for {what} since {since}"
        case "ready":
            return f"ready since {since}"
        case state:
            return f"{state} since {since}"


def _since(moment: float | None) -> str:
    if moment is None:
        return "-"
    return f"{at(moment)} ({lasting(time.time() - moment)})"


def tell_if_unserved(path: Path, *shown: Document) -> None:
    """Say on stderr that nothing moves, where something unfinished was ``shown`` of a queue that no worker serves."""
    unfinished = ("pending", "processing", "running", "waiting", "ready", "held")
    if any(row["state"] in unfinished for row in shown) and not is_served(path):
        note("no worker serves this queue now: this is what the database says, and nothing moves")
