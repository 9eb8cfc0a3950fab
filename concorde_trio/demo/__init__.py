"""A household on one machine, to be watched: ``concorde-trio demo``.

Three people share a budget and two workspaces, and every message of theirs becomes runs of a real agent program. The
files: ``errands`` (what is asked for), ``agent`` (the program), ``household`` (gateway, handlers, routes), ``people`` (who
send it), ``board``, ``screen`` and ``report`` (what is shown), ``evidence`` and ``check`` (whether it was right), ``play``.
"""

from __future__ import annotations

from pathlib import Path


def run_demo(*, keep: bool = False, svg: Path | None = None, as_json: bool = False) -> int:
    """Play it. The exit status: 0 if the books are right, else 1. KeyboardInterrupt after Ctrl-C.

    ``keep``: serve on at the end, until Ctrl-C. ``svg``: where to draw the timeline; otherwise a new file in the system's
    temporary folder. ``as_json``: print one JSON document and nothing else.
    """
    if not as_json:
        print("\nThree people share a kitchen, a garden and a budget. Ctrl-C ends it.", flush=True)
    # A second's import: whoever waits has something to read.
    from concorde_trio.demo.play import play_demo

    return play_demo(keep=keep, svg=svg, as_json=as_json)
