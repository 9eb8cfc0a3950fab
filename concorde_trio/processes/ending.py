"""How a program ended, and what it left behind."""

from __future__ import annotations

import signal

import attrs

from concorde_trio.processes.sweep import Swept


@attrs.frozen(kw_only=True)
class Exit:
    """How a program ended: its exit ``code``, or the ``signal`` that killed it; the other one is None.

    ``running``: what it had left in the background at that moment (the first 50).
    """

    code: int | None
    signal: int | None
    running: tuple[Swept, ...] = ()

    def __str__(self) -> str:
        if self.signal is None:
            hint = " (a shell's word for: command not found)" if self.code == 127 else ""
            return f"exit status {self.code}{hint}"
        try:
            return f"killed by {signal.Signals(self.signal).name}"
        except ValueError:
            return f"killed by signal {self.signal}"


@attrs.frozen(kw_only=True)
class Ending:
    """What is known once a program's tree is gone.

    ``exit``: None if the program never ran, or its guard was killed before it ended. ``swept``: what it left running
    and was ended (the first 50). ``swept_count``: how many that were.
    """

    exit: Exit | None
    swept: tuple[Swept, ...] = ()
    swept_count: int = 0
