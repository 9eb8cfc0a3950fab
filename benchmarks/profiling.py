"""Where the time of a suite goes, by function: cProfile in the thread that Trio runs in, and in those that it starts.

The law: a profiled suite is slower, so its figures are no figures. Threads are seen where Python lets a profiler look at each
(up to 3.11; later only the main thread). Processes that a suite starts are not seen.
"""

from __future__ import annotations

import cProfile
import io
import pstats
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LINES = 60
"""Functions in each list."""


@contextmanager
def profiled(folder: str | None, suite: str) -> Iterator[None]:
    """Write ``SUITE.prof`` (for pstats and its viewers) and ``SUITE.txt`` into ``folder``; nothing if it is None."""
    if folder is None:
        yield
        return
    threads: dict[str, cProfile.Profile] = {}

    def begin(frame: Any, event: str, argument: Any) -> None:
        profile = cProfile.Profile()
        threads[f"{threading.current_thread().name} ({len(threads) + 1})"] = profile
        profile.enable()  # takes the place of this function in its thread

    each_thread = sys.version_info < (3, 12)
    main = cProfile.Profile()
    if each_thread:
        threading.setprofile(begin)
    main.enable()
    try:
        yield
    finally:
        main.disable()
        if each_thread:
            threading.setprofile(None)
        _write(Path(folder), suite, {"main thread": main, **threads})


def _write(folder: Path, suite: str, profiles: dict[str, cProfile.Profile]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kinds: dict[str, pstats.Stats] = {}
    for name, profile in profiles.items():
        kind = name.partition(" of ")[0].partition(" (")[0]  # the writers of all stores are one kind of thread
        profile.create_stats()
        if not profile.stats:  # type: ignore[attr-defined]
            continue
        if kind in kinds:
            kinds[kind].add(profile)
        else:
            kinds[kind] = pstats.Stats(profile)
    total: pstats.Stats | None = None
    text = io.StringIO()
    for kind, stats in kinds.items():
        for order in ("tottime", "cumulative"):
            text.write(f"--- {kind}, by {order} ---\n")
            stats.stream = text  # type: ignore[attr-defined]
            stats.sort_stats(order).print_stats(LINES)
        if total is None:
            total = stats
        else:
            total.add(stats)
    if total is not None:
        total.dump_stats(str(folder / f"{suite}.prof"))
    (folder / f"{suite}.txt").write_text(text.getvalue(), encoding="utf-8")
