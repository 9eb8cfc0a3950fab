"""The command ``concorde-trio``.

The law of this package: a command starts quickly (what is heavy is imported where it is used), says what went
wrong in one sentence on stderr, and never lets text that came from outside act on the terminal. Exit status 0:
it did what it was told; 1: it could not, or what it waited for failed; 2: the command itself was wrong; 130:
Ctrl-C; 141: whoever read its output went away.
"""

from concorde_trio.cli.entry import main

__all__ = ["main"]
