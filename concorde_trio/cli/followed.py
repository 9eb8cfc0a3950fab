"""What can be followed: runs and signals, each as a gateway and a database list it, and in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from concorde_trio.cli.changes import RunChanges, SignalChanges
from concorde_trio.cli.follow import Follower, Mask, Row
from concorde_trio.cli.show import first_line, lasting
from concorde_trio.cli.stored_snapshot import RUNS
from concorde_trio.client.pages import Pages
from concorde_trio.records import RunState, SignalState
from concorde_trio.signals import documents
from concorde_trio.signals.store import RunFilter, SignalFilter

if TYPE_CHECKING:
    from concorde_trio.cli.queue import StoredQueue
    from concorde_trio.client.client import Client


class RunFollower(Follower):
    """Of runs."""

    name = "runs"
    unfinished = ("pending", "running")
    unheard = False

    def __init__(
        self,
        path: Path,
        *,
        signal: str | None,
        session: str | None,
        resource: str | None,
        state: str | None,
        limit: int,
        as_json: bool,
    ) -> None:
        """With the filters of ``runs``."""
        changes = RunChanges({"signal_id": signal, "session": session, "resource": resource})
        super().__init__(path, changes, state=state, limit=limit, as_json=as_json)
        self._signal, self._session, self._resource = signal, session, resource

    def of_gateway(self, client: Client, state: str | None) -> Pages[Any]:
        """GET /runs."""
        return client.runs(
            signal=self._signal, session=self._session, resource=self._resource, state=cast("Any", state)
        )

    async def of_database(
        self, store: StoredQueue, mask: Mask, state: str | None, limit: int, before: int | None
    ) -> Row:
        """The same of the rows."""
        wanted = None if state is None else RunState(state)
        where = RunFilter(
            signal_id=self._signal,
            session=self._session,
            resource=self._resource,
            state=wanted,
            limit=limit,
            before=before,
        )
        return documents.runs_document([documents.run_document(run, mask) for run in await store.runs(where)], limit)

    async def one(self, client: Client, thing: str) -> Row:
        """GET /runs/{id}."""
        return dict(await client.run(thing))

    async def present(self, client: Client) -> tuple[str, list[Row] | None]:
        """Those in the lock table; one that has ended and is held is not among what may change still."""
        found = await client.snapshot(["runs"], limit=RUNS)
        if found["more_runs"]:
            return found["id"], None
        rows = [dict(row) for row in found["runs"] if row["state"] != "held"]
        return found["id"], [{**row, "state": "running" if row["state"] == "running" else "pending"} for row in rows]

    def words(self, change: Row) -> list[str]:
        """The run, its session, and how long it waited or ran."""
        known = {**change, **self.changes.known(change["run_id"])}
        queued, started = known.get("queued_at"), known.get("started_at")
        more = ""
        match change["event"]:
            case "RunStarted" if queued is not None:
                more = f"waited {lasting(change['at'] - queued)}"
            case "RunStopping":
                more = first_line(change["reason"])
            case "RunEnded":
                took = f"ran {lasting(change['at'] - started)}" if started is not None else ""
                error = first_line(change["error"])
                more = "; ".join(each for each in (took if change["started"] else "never started", error) if each)
        return [change["run_id"], known.get("session", ""), more]


class SignalFollower(Follower):
    """Of signals."""

    name = "signals"
    unfinished = ("pending", "processing")
    unheard = True

    def __init__(self, path: Path, *, kind: str | None, state: str | None, limit: int, as_json: bool) -> None:
        """With the filters of ``signals``."""
        super().__init__(path, SignalChanges({"kind": kind}), state=state, limit=limit, as_json=as_json)
        self._kind = kind

    def of_gateway(self, client: Client, state: str | None) -> Pages[Any]:
        """GET /signals."""
        return client.signals(kind=self._kind, state=cast("Any", state))

    async def of_database(
        self, store: StoredQueue, mask: Mask, state: str | None, limit: int, before: int | None
    ) -> Row:
        """The same of the rows."""
        wanted = None if state is None else SignalState(state)
        where = SignalFilter(kind=self._kind, state=wanted, limit=limit, before=before)
        return documents.signals_document(await store.signals(where), limit, mask)

    async def one(self, client: Client, thing: str) -> Row:
        """GET /signals/{id}."""
        return dict(await client.signal(thing))

    def words(self, change: Row) -> list[str]:
        """The signal, its kind, and how long it took."""
        known = {**change, **self.changes.known(change["signal_id"])}
        more = ""
        if change["event"] == "SignalSettled":
            claimed = known.get("claimed_at")
            took = "" if claimed is None else f"took {lasting(change['at'] - claimed)}"
            more = "; ".join(each for each in (took, first_line(change["error"])) if each)
        return [change["signal_id"], known.get("kind") or "", more]
