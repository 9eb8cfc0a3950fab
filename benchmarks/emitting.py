"""A process that emits into a queue when it is told to: ``python -m benchmarks.emitting DATABASE [busy]``.

It says ``ready``; then for each line of its input it emits one signal and says when the emit was called and when it returned, on
the monotonic clock that all processes of the machine share. With ``busy`` it emits without being told, as fast as it can, until
its input ends: a writer that never leaves the database alone.
"""

from __future__ import annotations

import sys
import threading
import time

from benchmarks import queue
from concorde_trio.signals.emit import emit_sync
from concorde_trio.stores.sqlite import SqliteStore


def on_demand(store: SqliteStore) -> None:
    print("ready", flush=True)
    for _ in sys.stdin:
        called = time.monotonic()
        emit_sync(store, "bench", queue.payload(0))
        print(called, time.monotonic(), flush=True)


def busily(store: SqliteStore) -> None:
    ended = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    print("ready", flush=True)
    while not ended.is_set():
        emit_sync(store, "noise", queue.payload(0))


if __name__ == "__main__":
    (busily if "busy" in sys.argv[2:] else on_demand)(SqliteStore(sys.argv[1]))
