"""What is going on, of a snapshot and the events after it: what ``top`` shows (SRV-4).

The law: it knows what the snapshot said and what events have told since, and guesses nothing: a run that has ended stays, as
"ended", until the next snapshot says whether its locks are held. A snapshot may be older than what was heard meanwhile; what
it cannot know is told it again. What no event tells (who waits for whom, how long a hold lasts) makes the picture ``stale``.

Pure: no clock, no I/O. Rows are those of ``GET /snapshot``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]

PARTS = ("signals", "pending", "runs", "sessions", "locks")
KEPT = 20_000
"""Events that are told to a snapshot again; the server keeps fewer."""


class Picture:
    """Of one gateway at a time. ``served`` is False for what was read from the database while nobody works."""

    def __init__(self) -> None:
        self.served = False
        self.stale = False
        self.taken = 0.0  # when the snapshot was
        self.worker: Row = {"status": "unknown", "stop_mode": None, "last_error": None}
        self.runs: dict[str, Row] = {}
        self.signals: dict[str, Row] = {}
        self.pending: dict[str, Row] = {}
        self.sessions: dict[str, Row] = {}
        self.locks: list[Row] = []
        self.more: dict[str, int | bool] = dict.fromkeys(PARTS, 0)
        self._boot = ""
        self._number = 0  # up to this event all is in it
        self._since: deque[tuple[int, str, Row]] = deque(maxlen=KEPT)
        self._runs_of: dict[str, set[str]] = {}

    def begin(self, snapshot: Mapping[str, Any]) -> None:
        """A snapshot, with all of its parts. Its ``id`` is null when it was made of the database's rows."""
        boot, number = _place(snapshot["id"])
        heard = [each for each in self._since if each[0] > number] if boot == self._boot else []
        self._boot, self._number = boot, number
        self._since.clear()
        self.served, self.stale = bool(boot), False
        self.taken, self.worker = snapshot["at"], dict(snapshot["worker"])
        self.runs = {row["id"]: dict(row) for row in snapshot["runs"]}
        self.signals = {row["id"]: dict(row) for row in snapshot["signals"]}
        self.pending = {row["id"]: dict(row) for row in snapshot["pending"]}
        self.sessions = {row["name"]: dict(row) for row in snapshot["sessions"]}
        self.locks = list(snapshot["locks"])
        self.more = {part: snapshot[f"more_{part}"] for part in PARTS}
        self._runs_of = {}
        for run in self.runs.values():
            self._runs_of.setdefault(run["signal_id"], set()).add(run["id"])
        for number, name, event in heard:
            self._hear(number, name, event)

    def take(self, event_id: str, name: str, event: Row) -> bool:
        """The next event; whether it is of the gateway that the snapshot is of, and was not in it already."""
        boot, number = _place(event_id)
        if boot != self._boot:
            self.stale = True
            return False
        if number <= self._number:
            return False
        self._hear(number, name, event)
        return True

    def _hear(self, number: int, name: str, event: Row) -> None:
        self._number = number
        self._since.append((number, name, event))
        self.stale = True
        told = _TOLD.get(name)
        if told is not None:
            told(self, event)

    def lost(self) -> None:
        """Nobody is heard any more."""
        self.worker = {**self.worker, "status": "gone"}

    # --- what events tell ------------------------------------------------------------------------------------------

    def _signal(self, signal_id: str, kind: str | None = None) -> Row:
        found = self.signals.get(signal_id)
        if found is None:
            known = self.pending.get(signal_id, {})
            found = self.signals[signal_id] = {
                "id": signal_id,
                "seq": known.get("seq"),
                "kind": known.get("kind"),
                "emitted_at": known.get("emitted_at"),
                "retry_of": known.get("retry_of"),
                "phase": "handling",
                "runs": 0,
                "open": 0,
                "post_started_at": None,
                "error": None,
            }
        self.pending.pop(signal_id, None)
        if kind is not None:
            found["kind"] = kind
        return found

    def _claimed(self, event: Row) -> None:
        self._signal(event["signal_id"], event["kind"])

    def _handle_failed(self, event: Row) -> None:
        self._signal(event["signal_id"])["error"] = event["error"]

    def _queued(self, event: Row) -> None:
        signal = self._signal(event["signal_id"])
        if event["run_id"] in self.runs:
            return
        self._run(event, "waiting", resources=list(event["resources"]), queued_at=event["at"])
        signal["phase"] = "running" if signal["phase"] == "handling" else signal["phase"]
        signal["runs"] += 1
        signal["open"] += 1

    def _started(self, event: Row) -> None:
        if event["run_id"] not in self.runs:
            self._run(event, "running")
        run = self.runs[event["run_id"]]
        if run["state"] in ("waiting", "ready"):
            run.update(state="running", waits_for=[], root=None, since=event["at"], started_at=event["at"])

    def _stopping(self, event: Row) -> None:
        run = self.runs.get(event["run_id"])
        if run is not None and run["state"] == "running" and run["stopping_since"] is None:
            run["stopping_since"] = event["at"]

    def _ended(self, event: Row) -> None:
        run = self.runs.get(event["run_id"])
        if run is None or run["state"] in ("held", "ended"):
            return
        run.update(state="ended", waits_for=[], root=None, since=event["at"], ended_at=event["at"])
        run.update(outcome=event["state"], stopping_since=None, error=event["error"])
        signal = self.signals.get(event["signal_id"])
        if signal is not None:
            signal["open"] = max(0, signal["open"] - 1)

    def _post_started(self, event: Row) -> None:
        signal = self._signal(event["signal_id"])
        signal.update(phase="posting", post_started_at=signal["post_started_at"] or event["at"])

    def _settled(self, event: Row) -> None:
        for run_id in self._runs_of.pop(event["signal_id"], ()):
            self.runs.pop(run_id, None)
        self.signals.pop(event["signal_id"], None)
        self.pending.pop(event["signal_id"], None)

    def _loaded(self, event: Row) -> None:
        if event["session"] not in self.sessions:
            self.sessions[event["session"]] = {
                "name": event["session"],
                "status": "waiting_for_input",
                "held": False,
                "queued": event["queued"],
                "in_run": False,
                "waiting_on": None,
                "holds": [],
                "approvals": [],
                "abandoned": [],
                "usage": None,
            }

    def _unloaded(self, event: Row) -> None:
        self.sessions.pop(event["session"], None)

    def _worker_stopping(self, event: Row) -> None:
        self.worker.update(status="stopping", stop_mode=event["mode"])

    def _worker_stopped(self, event: Row) -> None:
        self.worker["status"] = "stopped"

    def _run(self, event: Row, state: str, **known: Any) -> None:
        """A run that only an event has told of."""
        signal = self.signals.get(event["signal_id"])
        self._runs_of.setdefault(event["signal_id"], set()).add(event["run_id"])
        self.runs[event["run_id"]] = {
            "id": event["run_id"],
            "signal_id": event["signal_id"],
            "kind": None if signal is None else signal["kind"],
            "position": None,
            "session": event["session"],
            "resources": [],
            "state": state,
            "outcome": None,
            "since": event["at"],
            "queued_at": None,
            "started_at": event["at"] if state == "running" else None,
            "ended_at": None,
            "time_limit": None,
            "stopping_since": None,
            "waits_for": [],
            "root": None,
            **known,
        }


_TOLD: Mapping[str, Callable[[Picture, Row], None]] = {
    "SignalClaimed": Picture._claimed,
    "HandleFailed": Picture._handle_failed,
    "RunQueued": Picture._queued,
    "RunStarted": Picture._started,
    "RunStopping": Picture._stopping,
    "RunEnded": Picture._ended,
    "PostStarted": Picture._post_started,
    "SignalSettled": Picture._settled,
    "SessionLoaded": Picture._loaded,
    "SessionUnloaded": Picture._unloaded,
    "WorkerStopping": Picture._worker_stopping,
    "WorkerStopped": Picture._worker_stopped,
}


def _place(event_id: str | None) -> tuple[str, int]:
    """The boot and the number in an event id; ("", 0) for none."""
    boot, _, number = (event_id or "").rpartition("-")
    return (boot, int(number)) if boot and number.isdigit() else ("", 0)
