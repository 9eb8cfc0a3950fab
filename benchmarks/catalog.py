"""The suites by name, what each measures, and where it stands. A suite is imported only in the process that measures it."""

from __future__ import annotations

import importlib

import attrs

from benchmarks.bench import Suite


@attrs.frozen
class Entry:
    """``home``: module and function in ``benchmarks.suites``. ``about``: one line for ``--list``."""

    home: str
    about: str

    def load(self) -> Suite:
        """Its function."""
        module, _, function = self.home.partition(":")
        suite: Suite = getattr(importlib.import_module(f"benchmarks.{module}"), function)
        return suite


SUITES: dict[str, Entry] = {
    "lock-table": Entry("suites.lock_table:suite", "the lock table: 10 to 1,000,000 waiting, 1 to 8 locks"),
    "session-lock": Entry("suites.session_lock:suite", "a session's leases, touches, tools and sweeps"),
    "repeatable": Entry("suites.worker:repeatable", "signals a second of a repeatable handler, SQLite, 1 and 3 locks"),
    "strict": Entry("suites.worker:strict", "signals a second of a strict handler, SQLite"),
    "runs": Entry("suites.worker:runs", "runs of 20 ms a second over 50 sessions"),
    "stores": Entry("suites.stores:suite", "the worker by store, number of locks, and post or none"),
    "release": Entry("suites.release:suite", "from the release of a lock to the next start"),
    "wake": Entry("suites.wake:suite", "from an emit (here, in another process, by HTTP) to the start of its run"),
    "head-of-line": Entry("suites.head_of_line:suite", "100 users beside one with 10,000 waiting runs"),
    "makespan": Entry("suites.makespan:suite", "recorded and synthetic workloads beside their critical path"),
    "recovery": Entry("suites.recovery:suite", "from a start to the lock table rebuilt, by queue size"),
    "memory": Entry("suites.memory:suite", "bytes of a waiting run and of a live session"),
    "sessions": Entry("suites.sessions:suite", "idle sessions, leases that expire at once, streams"),
    "server": Entry("suites.server:suite", "requests, attribution, and events to 100 readers"),
    "fleet": Entry("suites.fleet:suite", "members of a fleet on PostgreSQL, in processes of their own"),
    "peers": Entry("peers.suite:suite", "2,000 jobs over 50 keys: this, other queues, and limits"),
}
