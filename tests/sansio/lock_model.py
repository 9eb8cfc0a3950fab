"""The lock rules as slowly and plainly as they can be said: after every operation the whole list is rescanned."""

from __future__ import annotations

from collections.abc import Iterable


class LockModel:
    """A list of unreleased runs in enqueue order; nothing is kept but what the rules name."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.signal: dict[str, str] = {}
        self.locks: dict[str, list[tuple[str, str]]] = {}
        self.held: set[str] = set()
        self.permitted: set[str] = set()

    def enqueue(self, run: str, signal: str, session: str, resources: Iterable[str] = ()) -> tuple[str, ...]:
        self.runs.append(run)
        self.signal[run] = signal
        self.locks[run] = [("session", session), *(("resource", name) for name in dict.fromkeys(resources))]
        return self.rescan()

    def end(self, run: str, hold: bool) -> tuple[str, ...]:
        if hold:
            self.held.add(run)
        else:
            self.remove(run)
        return self.rescan()

    def release(self, signal: str) -> tuple[str, ...]:
        for run in [run for run in self.runs if run in self.held and self.signal[run] == signal]:
            self.remove(run)
        return self.rescan()

    def withdraw(self, run: str) -> tuple[str, ...]:
        self.remove(run)
        return self.rescan()

    def remove(self, run: str) -> None:
        self.runs.remove(run)
        self.held.discard(run)
        self.permitted.discard(run)

    def before(self, run: str, lock: tuple[str, str]) -> list[str]:
        """The unreleased runs before ``run`` on ``lock``, the nearest last."""
        return [other for other in self.runs[: self.runs.index(run)] if lock in self.locks[other]]

    def blockers(self, run: str, lock: tuple[str, str]) -> list[str]:
        """Those of them that do block: all but held ones of the same signal (LCK-4)."""
        return [
            other
            for other in self.before(run, lock)
            if not (other in self.held and self.signal[other] == self.signal[run])
        ]

    def rescan(self) -> tuple[str, ...]:
        """The runs that may start now and could not before, in enqueue order (LCK-2)."""
        freed = [
            run
            for run in self.runs
            if run not in self.permitted and not any(self.blockers(run, lock) for lock in self.locks[run])
        ]
        self.permitted.update(freed)
        return tuple(freed)

    def missing(self, run: str) -> list[tuple[tuple[str, str], str, int]]:
        """For each lock that ``run`` misses: the lock, the nearest blocker, how many stand before it (LCK-7)."""
        return [
            (lock, self.blockers(run, lock)[-1], len(self.before(run, lock)))
            for lock in self.locks[run]
            if self.blockers(run, lock)
        ]

    def root(self, run: str) -> str:
        while missing := self.missing(run):
            run = missing[0][1]
        return run
