"""Who waits for whom and why, as documents: what /locks, ``why`` and the picture show (LCK-7).

The same documents are made of a live worker's table and of a table rebuilt from stored rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.live import LiveRun
from concorde_trio._sansio.lock_table import Lock, Why
from concorde_trio.records import RunState, SignalPhase, Unfinished


@attrs.frozen(kw_only=True)
class RunView:
    """A run in the lock table. ``state``: waiting, ready (waits for a place, LCK-3), running, or held (LCK-4).

    ``since``: wall-clock seconds at which that state began. ``posting``: its signal's post phase is in flight.
    ``unended``: how many runs of its signal have not ended.
    """

    run_id: str
    signal_id: str
    session: str
    resources: tuple[str, ...]
    state: str
    since: float
    posting: bool = False
    unended: int = 0

    def as_json(self) -> dict[str, Any]:
        """As a JSON object with these names."""
        return {**attrs.asdict(self), "resources": list(self.resources)}


@attrs.frozen(kw_only=True)
class WaitEdge:
    """One lock that a run misses: the nearest unreleased run before it there, and its own place in that line."""

    space: str
    name: str
    blocker: RunView
    position: int

    def as_json(self) -> dict[str, Any]:
        """As a JSON object with these names."""
        return {"space": self.space, "name": self.name, "blocker": self.blocker.as_json(), "position": self.position}


@attrs.frozen(kw_only=True)
class WaitView:
    """Why a run waits: every edge, and the run at the end of the chain. No edges: nothing holds it back."""

    run: RunView
    edges: tuple[WaitEdge, ...]
    root: RunView

    def as_json(self) -> dict[str, Any]:
        """As a JSON object with these names."""
        return {
            "run": self.run.as_json(),
            "edges": [edge.as_json() for edge in self.edges],
            "root": self.root.as_json(),
        }


@attrs.frozen(kw_only=True)
class LockView:
    """One lock: who holds it, and who waits for it, in order; ``more_waiting`` more wait behind those listed."""

    space: str
    name: str
    holders: tuple[RunView, ...]
    waiting: tuple[RunView, ...]
    more_waiting: int = 0

    def as_json(self) -> dict[str, Any]:
        """As a JSON object with these names."""
        return {
            "space": self.space,
            "name": self.name,
            "holders": [run.as_json() for run in self.holders],
            "waiting": [run.as_json() for run in self.waiting],
            "more_waiting": self.more_waiting,
        }


class LockViews:
    """Views of a dispatcher's table."""

    def __init__(self, core: Dispatcher) -> None:
        self._core = core

    def why(self, run_id: str) -> WaitView | None:
        """Why this run waits; None when it is not in the table."""
        return self.why_all((run_id,)).get(run_id)

    def why_all(self, run_ids: Iterable[str]) -> dict[str, WaitView]:
        """The same for several runs, at hardly more than the cost of one; those not in the table are left out."""
        table = self._core.table
        found = [run_id for run_id in run_ids if run_id in table]
        return {run_id: self._why(run_id, why) for run_id, why in zip(found, table.why_all(found), strict=True)}

    def _why(self, run_id: str, why: Why[str]) -> WaitView:
        edges = tuple(
            WaitEdge(
                space=missing.lock.space,
                name=missing.lock.name,
                blocker=self._run(missing.blocker),
                position=missing.position,
            )
            for missing in why.missing
        )
        return WaitView(run=self._run(run_id), edges=edges, root=self._run(why.root))

    def locks(self, shown: int | None = None) -> list[LockView]:
        """Every lock that a run holds or waits for, by space and name; the first ``shown`` that wait for it are listed."""
        views = sorted(self._core.table.locks(shown), key=lambda view: _order(view.lock))
        return [
            LockView(
                space=view.lock.space,
                name=view.lock.name,
                holders=tuple(self._run(run_id) for run_id in view.holders),
                waiting=tuple(self._run(run_id) for run_id in view.waiting),
                more_waiting=view.more,
            )
            for view in views
        ]

    def _run(self, run_id: str) -> RunView:
        live = self._find(run_id)
        run, table = live.run, self._core.table
        if live.state is RunState.RUNNING:
            state, since = "running", live.started_at
        elif live.ended_at is not None:
            state, since = "held", live.ended_at
        else:
            state, since = "ready" if table.may_start(run_id) else "waiting", run.queued_at
        return RunView(
            run_id=run_id,
            signal_id=run.signal_id,
            session=run.session,
            resources=run.resources,
            state=state,
            since=run.queued_at if since is None else since,
            posting=live.signal.phase is SignalPhase.POSTING,
            unended=live.signal.open,
        )

    def _find(self, run_id: str) -> LiveRun:
        live = self._core.runs.get(run_id)
        if live is not None:
            return live
        signal = self._core.live[run_id.rpartition("-")[0]]
        return next(run for run in signal.runs if run.run.id == run_id)


def _order(lock: Lock) -> tuple[bool, str]:
    return (lock.space != "session", lock.name)


def rebuilt_locks(unfinished: Iterable[Unfinished]) -> LockViews:
    """Views of the table that these rows describe: what a worker's table is, or would be if one started.

    Nothing is settled by this: a run that is stored as running stays so, whether its worker lives or not.
    """
    core = Dispatcher({})
    core.rebuild(unfinished)
    return LockViews(core)
