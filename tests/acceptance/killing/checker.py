"""What the journal of a kill test must show, whatever was killed when. A pure function: lines and rows in, faults out.

The journal is written by the agent programs and the handlers themselves, so it is evidence of its own; the rows are
only asked how signals settled, and at each kill which marks were set.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs


@attrs.frozen
class Cut:
    """What the database said right after a kill: the numbers of the signals that the kill could fail."""

    handling: frozenset[int]
    started: frozenset[int]
    posting: frozenset[int]

    @property
    def all(self) -> frozenset[int]:
        return self.handling | self.started | self.posting


@attrs.frozen
class Evidence:
    """``payloads`` by number, in the order of emission; ``settled``: state by number; ``left``: processes at the end."""

    journal: Sequence[Mapping[str, Any]]
    payloads: Mapping[int, Mapping[str, Any]]
    settled: Mapping[int, str]
    cuts: Sequence[Cut]
    left: Sequence[int] = ()


def faults(evidence: Evidence) -> list[str]:
    """Every rule that this evidence breaks, in words; an empty list if all is well."""
    return [*history_faults(evidence), *_wrongly_failed(evidence)]


def history_faults(evidence: Evidence) -> list[str]:
    """The same, but for which signals may have failed."""
    return [
        *_unsettled(evidence),
        *_twice(evidence),
        *_out_of_order(evidence),
        *_overlaps(evidence),
        *_post_overlaps(evidence),
        *(f"REC-6: process {pid} was left" for pid in evidence.left),
    ]


def _unsettled(evidence: Evidence) -> Iterable[str]:
    for number in evidence.payloads:
        state = evidence.settled.get(number)
        if state not in ("done", "failed"):
            yield f"SIG-4: signal {number} is {state}"
    ran = {line["run"] for line in evidence.journal if line["what"] == "run-end"}
    for number, payload in evidence.payloads.items():
        if evidence.settled.get(number) == "done":
            for index in range(len(payload["runs"])):
                if f"{number}.{index}" not in ran:
                    yield f"REC-3: signal {number} is done, but its run {number}.{index} never came to its end"


def _twice(evidence: Evidence) -> Iterable[str]:
    starts = Counter(line["run"] for line in evidence.journal if line["what"] == "run-start")
    for run, times in starts.items():
        if times > 1:
            yield f"REC-2: run {run} was started {times} times"
    for what in ("handle-start", "post-start"):
        for number, times in Counter(line["signal"] for line in evidence.journal if line["what"] == what).items():
            repeatable = what == "handle-start" and evidence.payloads[number]["kind"].startswith("repeat")
            if times > 1 and not repeatable:
                yield f"CLM-6: {what} of signal {number} happened {times} times"


def _locks(evidence: Evidence) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """For each lock, the (signal, index) of the runs that want it, in emission order."""
    locks: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for number, payload in evidence.payloads.items():
        for index, run in enumerate(payload["runs"]):
            locks["session", run["session"]].append((number, index))
            for name in run["resources"]:
                locks["resource", name].append((number, index))
    return locks


def _times(evidence: Evidence) -> dict[str, tuple[float, float]]:
    """When each run that started showed its first and its last sign of life."""
    times: dict[str, tuple[float, float]] = {}
    for line in evidence.journal:
        if line["what"].startswith("run-"):
            first, last = times.get(line["run"], (line["at"], line["at"]))
            times[line["run"]] = (min(first, line["at"]), max(last, line["at"]))
    return times


def _pairs(evidence: Evidence) -> Iterable[tuple[str, tuple[int, int], tuple[int, int], tuple[float, float], float]]:
    times = _times(evidence)
    for (space, name), runs in _locks(evidence).items():
        started = [run for run in runs if f"{run[0]}.{run[1]}" in times]
        for before, after in itertools.pairwise(started):
            one, two = times[f"{before[0]}.{before[1]}"], times[f"{after[0]}.{after[1]}"]
            yield f"{space} {name}", before, after, one, two[0]


def _out_of_order(evidence: Evidence) -> Iterable[str]:
    for lock, before, after, (start, _), start_after in _pairs(evidence):
        if start_after < start:
            yield f"LCK-2: on {lock}, run {after} started before run {before}, which was emitted earlier"


def _overlaps(evidence: Evidence) -> Iterable[str]:
    for lock, before, after, (start, last), start_after in _pairs(evidence):
        if start <= start_after <= last:
            yield f"LCK-2, REC-6: on {lock}, run {after} started while run {before} was alive"


def _post_overlaps(evidence: Evidence) -> Iterable[str]:
    posts = {line["signal"]: line["at"] for line in evidence.journal if line["what"] == "post-start"}
    ends = {line["signal"]: line["at"] for line in evidence.journal if line["what"] == "post-end"}
    for lock, before, after, _, start_after in _pairs(evidence):
        if before[0] == after[0] or before[0] not in posts:
            continue
        if start_after < ends.get(before[0], posts[before[0]]):
            yield f"LCK-4: on {lock}, run {after} started before the post of signal {before[0]} was over"


def _wrongly_failed(evidence: Evidence) -> Iterable[str]:
    for place, cut in enumerate(evidence.cuts):
        if len(cut.handling) > 1:
            yield f"CLM-6: kill {place} cut {len(cut.handling)} handles: {sorted(cut.handling)}"
    excused = frozenset().union(*(cut.all for cut in evidence.cuts))
    failed = {number for number, state in evidence.settled.items() if state == "failed"}
    for number in sorted(failed - excused):
        yield f"REC-2: signal {number} failed, but no kill had cut anything of it"
    for number in sorted(excused - failed):
        yield f"REC-2: signal {number} was cut by a kill, and is {evidence.settled.get(number)}"
