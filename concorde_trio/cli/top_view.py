"""What somebody looks at in ``top``, and what their keys do: which row is chosen, what is open, what is asked.

The law: nothing is cancelled or interrupted without a question that names it, and an answer is about what the question named,
whatever the lists have become meanwhile. A choice stays with its row; when that goes, with its place.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from concorde_trio.cli.picture import Picture
from concorde_trio.cli.top_rows import SECTIONS, Section

PAGE = 10
"""Rows that Page Up and Page Down move by."""
UNSERVED = "no worker serves this queue now, so there is nobody to"


@attrs.frozen
class Action:
    """What is to be done. ``what``: quit, cancel_run, cancel_signal or interrupt; ``name``: of whom."""

    what: str
    name: str = ""


@attrs.frozen
class Question:
    """What is asked before it is done."""

    text: str
    action: Action


@attrs.define
class View:
    """``focus``: the list in which the choice moves. ``opened``: the details of the chosen row are shown."""

    focus: str = SECTIONS[0]
    opened: bool = False
    help: bool = False
    question: Question | None = None
    said: str = ""
    chosen: dict[str, str] = attrs.field(factory=dict)
    offsets: dict[str, int] = attrs.field(factory=dict)
    _places: dict[str, int] = attrs.field(factory=dict)

    def place(self, section: Section) -> int:
        """The index of the chosen row of a list; -1 when it is empty."""
        keys = section.keys
        if not keys:
            return -1
        key = self.chosen.get(section.name)
        found = keys.index(key) if key in keys else min(self._places.get(section.name, 0), len(keys) - 1)
        self.chosen[section.name] = keys[found]
        self._places[section.name] = found
        return found

    def press(self, key: str, picture: Picture, lists: Sequence[Section]) -> Action | None:
        """A key. ``lists``: as they are shown."""
        if self.question is not None:
            return self._answer(key)
        self.said = ""
        if self.help:
            self.help = False
            return None
        match key:
            case "q" | "Q":
                return Action("quit")
            case "?" | "h":
                self.help = True
            case "tab" | "backtab":
                self._turn(1 if key == "tab" else -1, lists)
            case "enter" | "w":
                self.opened = not self.opened
            case "escape":
                self.opened = False
            case "i" | "c":
                self._ask(key, picture, lists)
            case _:
                self._move(key, lists)
        return None

    def _move(self, key: str, lists: Sequence[Section]) -> None:
        section = next(each for each in lists if each.name == self.focus)
        here = self.place(section)
        last = len(section.keys) - 1
        steps = {"up": -1, "k": -1, "down": 1, "j": 1, "pageup": -PAGE, "pagedown": PAGE}
        ends = {"home": 0, "g": 0, "end": last, "G": last}
        if here < 0 or key not in {**steps, **ends}:
            return
        there = ends.get(key, here + steps.get(key, 0))
        self._places[self.focus] = there = max(0, min(last, there))
        self.chosen[self.focus] = section.keys[there]

    def _turn(self, step: int, lists: Sequence[Section]) -> None:
        """To the next list that has something."""
        names = [each.name for each in lists if each.keys or each.name == self.focus]
        self.focus = names[(names.index(self.focus) + step) % len(names)]

    def _ask(self, key: str, picture: Picture, lists: Sequence[Section]) -> None:
        section = next(each for each in lists if each.name == self.focus)
        at = self.place(section)
        name = "" if at < 0 else section.keys[at]
        run = picture.runs.get(name) if self.focus == "runs" else None
        if not picture.served:
            self.said = f"{UNSERVED} {'interrupt' if key == 'i' else 'cancel'} anything"
        elif key == "i" and (run is not None or (self.focus == "sessions" and name)):
            session = name if run is None else run["session"]
            self.question = Question(f'interrupt the turn of session "{session}"?', Action("interrupt", session))
        elif key == "c" and run is not None and run["state"] not in ("held", "ended"):
            text = f'cancel run {name} of session "{run["session"]}", which is {run["state"]}?'
            self.question = Question(text, Action("cancel_run", name))
        elif key == "c" and run is not None:
            self.said = f"run {name} has ended; there is nothing to cancel"
        elif key == "c" and self.focus == "signals" and name:
            self.question = Question(f"cancel signal {name}, with its runs?", Action("cancel_signal", name))
        else:
            self.said = "i interrupts a session, or that of a run; c cancels a run or a signal: choose one"

    def _answer(self, key: str) -> Action | None:
        asked, self.question = self.question, None
        if asked is not None and key in ("y", "Y"):
            return asked.action
        self.said = "nothing was done"
        return None
