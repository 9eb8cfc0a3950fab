"""The session lock as slowly and plainly as it can be said: a list of holds, and every question rescans it."""

from __future__ import annotations

import math
from typing import Any

LLM = "llm"
SUMMARIZING = "summarizing"
TOOL = "tool"


class SessionLockModel:
    """Each hold is a dict of what the rules name, in the order they were granted; nothing else is kept."""

    def __init__(self, last_epoch: int = 0, last_registration: int = 0) -> None:
        self.now = 1000.0
        self.epoch = last_epoch
        self.registration = last_registration
        self.holds: list[dict[str, Any]] = []

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [hold for hold in self.holds if hold["kind"] == kind]

    def lease(self, kind: str, timeout: float, ceiling: float | None) -> int | None:
        if self.of(kind):
            return None
        self.epoch += 1
        self.holds.append(
            {
                "kind": kind,
                "name": self.epoch,
                "acquired": self.now,
                "started": self.now,
                "timeout": timeout,
                "ceiling": math.inf if ceiling is None else ceiling,
            }
        )
        return self.epoch

    def touch(self, kind: str, epoch: int) -> bool:
        for hold in self.of(kind):
            if hold["name"] == epoch:
                hold["started"] = self.now
                return True
        return False

    def end(self, kind: str, epoch: int) -> bool:
        for hold in self.of(kind):
            if hold["name"] == epoch:
                self.holds.remove(hold)
                return True
        return False

    def register(self, call_id: str, timeout: float) -> int:
        self.registration += 1
        self.holds.append(
            {
                "kind": TOOL,
                "name": self.registration,
                "call_id": call_id,
                "acquired": self.now,
                "started": self.now,
                "timeout": timeout,
                "ceiling": math.inf,
                "exec_kind": None,
            }
        )
        return self.registration

    def tool(self, call_id: str, registration: int | None) -> dict[str, Any] | None:
        for hold in self.of(TOOL):
            if hold["call_id"] == call_id and registration in (None, hold["name"]):
                return hold
        return None

    def deadline(self, hold: dict[str, Any]) -> float:
        return float(min(hold["started"] + hold["timeout"], hold["acquired"] + hold["ceiling"]))

    def next_deadline(self) -> float:
        return min((self.deadline(hold) for hold in self.holds), default=math.inf)

    def sweep(self) -> list[tuple[str, int, float, str]]:
        """What expired, in the order of LSE-7: kind, epoch or registration, waited, reason."""
        found = []
        for kind in (LLM, SUMMARIZING, TOOL):
            gone = [hold for hold in self.of(kind) if self.now >= self.deadline(hold)]
            for hold in sorted(gone, key=lambda hold: (self.deadline(hold), hold["name"])):
                found.append(self.expire(hold))
        return found

    def expire(self, hold: dict[str, Any]) -> tuple[str, int, float, str]:
        """One hold is taken, whatever its deadline (SES-3); told as a sweep tells it."""
        self.holds.remove(hold)
        reason = "timeout" if hold["kind"] == TOOL else "progress"
        since = hold["started"]
        if hold["acquired"] + hold["ceiling"] < hold["started"] + hold["timeout"]:
            reason, since = "ceiling", hold["acquired"]
        return hold["kind"], hold["name"], self.now - since, reason
