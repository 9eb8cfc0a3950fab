"""The input queue as slowly and plainly as it can be said: one list of everything that was accepted, and its state."""

from __future__ import annotations

from typing import Any


class InputQueueModel:
    """Rows of [id, text, attachments, state] in the order of acceptance; every question rescans them."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.rows: list[list[Any]] = []
        self.held = False

    def ids(self, state: str) -> list[str]:
        return [row[0] for row in self.rows if row[3] == state]

    def submit(self, input_id: str, text: str, attachments: tuple[Any, ...]) -> str:
        for row in self.rows:
            if row[0] == input_id:
                return "accepted" if row[1:3] == [text, attachments] else "conflict"
        self.held = False
        if len(self.ids("queued")) >= self.bound:
            return "rejected"
        self.rows.append([input_id, text, attachments, "queued"])
        return "accepted"

    def ready(self) -> list[str]:
        return [] if self.held else self.ids("queued")

    def settle(self, ids: list[str], state: str) -> None:
        for row in self.rows:
            if row[0] in ids:
                row[3] = state
        self.held = self.held and bool(self.ids("queued"))

    def text(self, ids: list[str]) -> str:
        """SES-10, line by line."""
        texts = [row[1] for row in self.rows if row[0] in ids]
        if len(texts) == 1:
            return str(texts[0])
        lines = ["[Multiple inputs received while processing:]"]
        for number, text in enumerate(texts):
            lines += ["---", text] if number else [text]
        return "\n".join(lines)
