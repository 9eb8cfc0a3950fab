"""What a terminal sends, as names of keys.

The law: what no key of ours sends is passed over whole, so that half of an unknown sequence is never taken for a letter. An
escape that nothing follows is the key Escape: whoever reads waits a moment for what follows, then says that nothing does.

Pure.
"""

from __future__ import annotations

import re

_SEQUENCES = {
    "A": "up",
    "B": "down",
    "H": "home",
    "F": "end",
    "Z": "backtab",
    "1~": "home",
    "4~": "end",
    "5~": "pageup",
    "6~": "pagedown",
    "7~": "home",
    "8~": "end",
}
_CONTROLS = {"\r": "enter", "\n": "enter", "\t": "tab"}
_CSI = re.compile(r"\x1b[\[O]([0-9;?]*[ -/]*[@-~])")
_BEGUN = re.compile(r"\x1b([\[O][0-9;?]*[ -/]*)?\Z")
_LONGEST = 64


class Keys:
    """Reads bytes as they come. ``begun``: an escape came, and what it means is not known yet."""

    def __init__(self) -> None:
        self._text = ""

    @property
    def begun(self) -> bool:
        """Whether more may follow."""
        return bool(self._text)

    def feed(self, data: bytes) -> list[str]:
        """The keys that are complete."""
        text, self._text = self._text + data.decode("utf-8", "ignore"), ""
        keys: list[str] = []
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                keys += _letter(text[at])
                at += 1
            elif found := _CSI.match(text, at):
                keys += _sequence(found[1])
                at = found.end()
            elif _BEGUN.match(text, at) and len(text) - at < _LONGEST:
                self._text = text[at:]
                break
            else:
                keys.append("escape")
                at += 1
        return keys

    def flush(self) -> list[str]:
        """Nothing followed."""
        text, self._text = self._text, ""
        return ["escape"] if text == "\x1b" else []


def _letter(character: str) -> list[str]:
    if character in _CONTROLS:
        return [_CONTROLS[character]]
    return [character] if character.isprintable() else []


def _sequence(text: str) -> list[str]:
    return [_SEQUENCES[text]] if text in _SEQUENCES else []
