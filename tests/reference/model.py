"""What the rules say, as slowly and plainly as they can be said: a reference for the real worker.

Written from the rules alone. It imports nothing of the package, keeps no lock table (every start rescans all runs
from the head), and knows time only as exact fractions. One instant is a series of rounds; a round takes together
what was due when it began, and applies it in the order of LCK-5.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

STATES = {"ok": "done", "fail": "failed", "limited": "limited"}
STOP_GRACE = 10


def exact(seconds: float) -> Fraction:
    """``seconds`` as the decimal number that was written down: 0.1 is one tenth."""
    return Fraction(str(seconds))


def well_formed(tag: str) -> bool:
    """TAG-6."""
    return 16 <= len(tag) <= 128 and all("!" <= character <= "~" and character != "," for character in tag)


class Reference:
    """One scenario, played."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.claim_ahead = scenario.get("claim_ahead", 100_000)
        self.max_running = scenario.get("max_running")
        self.unknown = scenario.get("unknown_kinds", [])
        self.stop = scenario.get("stop")
        self.stopped: str | None = None
        self.stop_at = exact(self.stop["at"]) if self.stop else None
        self.signals = [self.signal(given) for given in scenario["signals"]]
        self.inbox = sorted(self.signals, key=lambda signal: signal["at"])  # stable: file order within an instant
        self.runs: list[dict[str, Any]] = []  # in emission order: a run joins at the tail and never leaves
        self.handling: dict[str, Any] | None = None
        self.start_order: list[str] = []

    def signal(self, given: dict[str, Any]) -> dict[str, Any]:
        return given | {"at": exact(given["at"]), "state": "pending", "settled": None, "outcome": None, "runs": []}

    def play(self) -> dict[str, Any]:
        now: Fraction | None = Fraction(0)
        while now is not None:
            while self.round(now):
                pass
            now = self.next_instant(now)
        return self.result()

    def next_instant(self, now: Fraction) -> Fraction | None:
        times = [signal["at"] for signal in self.inbox] + [run["due"] for run in self.runs if run["state"] == "running"]
        times += [signal["post_due"] for signal in self.signals if signal["state"] == "posting"]
        times += [self.handling["handle_due"]] if self.handling else []
        times += [self.stop_at] if self.stop_at is not None else []
        return min((time for time in times if time > now), default=None)

    def round(self, now: Fraction) -> bool:
        """LCK-5: ends in run order, posts, handles, starts in emission order, stop, claims. True if one did anything."""
        ends = [run for run in self.runs if run["state"] == "running" and run["due"] <= now]
        posts = [signal for signal in self.signals if signal["state"] == "posting" and signal["post_due"] <= now]
        handled = self.handling if self.handling and self.handling["handle_due"] <= now else None
        for run in ends:
            if run["gives"] == "cut":  # RUN-6: its scope is cancelled; it has ended once that has had its effect
                run["gives"] = "cut off"
            else:
                self.end(run, "failed" if run["gives"] == "cut off" else run["gives"], now)
        for signal in posts:
            self.settle(signal, now, failed=signal["outcome"]["failed"] or signal.get("fail_post", False))
        if handled:
            self.handling = None
            self.queue(handled, now)
        started = self.stopped is None and self.starts(now)
        stopping = self.stop_at is not None and self.stop_at <= now
        if stopping:
            self.apply_stop(now)
        claimed = self.claims(now)
        return bool(ends or posts or handled or started or stopping or claimed)

    def claims(self, now: Fraction) -> bool:
        claimed = False
        while self.handling is None and self.open_at(now) and self.inbox and self.inbox[0]["at"] <= now:
            waiting = sum(run["state"] == "pending" for run in self.runs)
            if self.claim_ahead is not None and waiting > self.claim_ahead:  # CLM-2
                break
            signal = self.inbox.pop(0)
            claimed = True
            if signal["kind"] in self.unknown:  # CLM-3: no handle, no post
                self.settle(signal, now, failed=True)
            else:
                signal["state"] = "handling"
                signal["handle_due"] = now + exact(signal.get("handle", 0))
                self.handling = signal
        return claimed

    def open_at(self, now: Fraction) -> bool:
        return self.stop is None or now < exact(self.stop["at"])

    def queue(self, signal: dict[str, Any], now: Fraction) -> None:
        signal["state"] = "running"
        fresh = {f"run_{run['id']}" for run in self.runs if run.get("session") is None}
        for prompt in [] if signal.get("fail_handle") else signal.get("prompts", []):
            own = ("fresh", f"run_{prompt['id']}")  # LCK-1
            named = ("fresh" if prompt.get("session") in fresh else "session", prompt.get("session"))
            locks = {own if prompt.get("session") is None else named}
            locks |= {("resource", name) for name in prompt.get("resources", [])}
            run = prompt | {"signal": signal, "state": "pending", "locks": locks, "holds": True, "queued": now}
            run |= {"started": None, "ended": None, "gives": STATES[prompt.get("outcome", "ok")]}
            self.runs.append(run)
            signal["runs"].append(run)
        for run in [run for run in signal["runs"] if run.get("tag") and not well_formed(run["tag"])]:
            run |= {"state": "failed", "ended": now, "holds": False}  # TAG-6: fails as it is queued
        self.conclude(signal, now)

    def starts(self, now: Fraction) -> bool:
        """LCK-2: from the head, every waiting run that no earlier unreleased run shares a lock with."""
        changed = False
        for place, run in enumerate(self.runs):
            running = sum(other["state"] == "running" for other in self.runs)
            if run["state"] != "pending" or any(self.blocks(other, run) for other in self.runs[:place]):
                continue
            if self.max_running is not None and running >= self.max_running:  # LCK-3
                break
            changed = True
            tags = {other.get("tag") for other in self.runs if other["state"] == "running"} - {None}
            if run.get("tag") in tags:  # TAG-2: it never started, so it holds nothing for its post
                self.end(run, "failed", now)
                continue
            run |= {"state": "running", "started": now, "due": now + exact(run["duration"])}
            limit = run.get("time_limit")
            if limit is not None and exact(limit) < exact(run["duration"]):  # RUN-6
                run |= {"due": now + exact(limit), "gives": "cut"}
            self.start_order.append(run["id"])
        return changed

    def blocks(self, earlier: dict[str, Any], run: dict[str, Any]) -> bool:
        ended_sibling = earlier["ended"] is not None and earlier["signal"] is run["signal"]  # LCK-4
        return bool(earlier["holds"] and not ended_sibling and earlier["locks"] & run["locks"])

    def end(self, run: dict[str, Any], state: str, now: Fraction) -> None:
        held = run["started"] is not None and run["signal"].get("post") is not None  # LCK-4
        run |= {"state": state, "ended": now, "holds": held}
        self.conclude(run["signal"], now)

    def conclude(self, signal: dict[str, Any], now: Fraction) -> None:
        """PST-1: once all its runs have ended, or there were none, post runs, if there is one."""
        if any(run["ended"] is None for run in signal["runs"]):
            return
        failed = bool(signal.get("fail_handle")) or any(run["state"] != "done" for run in signal["runs"])
        limited = any(run["state"] == "limited" for run in signal["runs"])
        if signal.get("post") is None:
            self.settle(signal, now, failed=failed)
        elif self.stopped != "cancel":  # STP-3: a post that had not begun is left to the next start
            signal |= {"state": "posting", "post_due": now + exact(signal["post"])}
            signal["outcome"] = {"started": float(now), "failed": failed, "limited": limited}

    def settle(self, signal: dict[str, Any], now: Fraction, *, failed: bool) -> None:
        signal |= {"state": "failed" if failed else "done", "settled": now}
        for run in signal["runs"]:
            run["holds"] = False

    def apply_stop(self, now: Fraction) -> None:
        self.stop_at = None
        if self.stop["mode"] != "drain":  # a drain only claims nothing more
            self.stopped = self.stop["mode"]
        if self.stopped != "cancel":
            return
        if self.handling is not None:  # STP-3: a handle in flight fails its signal
            signal, self.handling = self.handling, None
            signal |= {"state": "running", "fail_handle": True}
            self.conclude(signal, now)
        for run in [run for run in self.runs if run["state"] == "running"]:
            self.end(run, "failed" if run["gives"] == "cut off" else "cancelled", now)
        for signal in self.signals:
            if signal["state"] == "posting" and signal["post_due"] > now + STOP_GRACE:
                signal["state"] = "processing"

    def result(self) -> dict[str, Any]:
        def seconds(time: Fraction | None) -> float | None:
            return None if time is None else float(time)

        runs = {
            run["id"]: {"state": run["state"]} | {key: seconds(run[key]) for key in ("queued", "started", "ended")}
            for run in self.runs
        }
        shown = {"handling": "processing", "running": "processing", "posting": "processing"}
        signals = {
            signal["id"]: {
                "state": shown.get(signal["state"], signal["state"]),
                "settled": seconds(signal["settled"]),
                "post": signal["outcome"],
            }
            for signal in self.signals
        }
        return {"runs": runs, "signals": signals, "start_order": self.start_order}
