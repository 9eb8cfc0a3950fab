"""What there is to say at the end: each person's answers, a summary, the verdict; in words and as one JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
from rich.console import Console
from rich.text import Text

from concorde_trio.demo.board import short_error
from concorde_trio.demo.check import Finding
from concorde_trio.demo.errands import BUDGET, PEOPLE, Message, all_errands
from concorde_trio.demo.evidence import BOOKKEEPER, Evidence
from concorde_trio.demo.screen import STYLES


@attrs.frozen(kw_only=True)
class Served:
    """A message, and what the server says of its signal in the end."""

    message: Message
    signal: dict[str, Any]


@attrs.frozen(kw_only=True)
class Report:
    """All that came of it. ``seconds``: from the first message to the last thing settled. ``model``: who answered."""

    served: Sequence[Served]
    evidence: Evidence
    findings: Sequence[Finding]
    seconds: float
    drawing: Path
    model: str

    @property
    def right(self) -> bool:
        """Whether nothing is wrong, and something was done: a real model may not have answered at all."""
        return self.any_done and all(finding.right for finding in self.findings)

    @property
    def any_done(self) -> bool:
        """Whether any errand was done."""
        return "done" in self.evidence.ended.values()

    def at_work(self) -> tuple[float, int]:
        """Seconds of work by the agents' own journal, and how many worked at the same time at most."""
        work, edges = 0, []
        for errand in all_errands(self.evidence.plan):
            times = [
                line.at
                for line in self.evidence.journal
                if line.errand == errand.number and line.what not in BOOKKEEPER
            ]
            if times:
                work += times[-1] - times[0]
                edges += [(times[0], 1), (times[-1], -1)]
        busy = most = 0
        for _, edge in sorted(edges):
            busy += edge
            most = max(most, busy)
        return work / 1e9, most

    def as_json(self) -> dict[str, Any]:
        """One JSON document. Times are seconds."""
        work, most = self.at_work()
        return {
            "right": self.right,
            "model": self.model,
            "seconds": round(self.seconds, 3),
            "seconds_of_work": round(work, 3),
            "most_at_once": most,
            "messages": [_message(served) for served in self.served],
            "budget": {"at_first": BUDGET, "left": self.evidence.left, "books": list(self.evidence.books)},
            "checks": [
                {
                    "name": one.name,
                    "looked_at": one.looked_at,
                    "things": one.things,
                    "faults": list(one.faults),
                    "not_checked": list(one.not_checked),
                }
                for one in self.findings
            ],
            "svg": str(self.drawing),
        }

    def print(self, console: Console) -> None:
        """In words."""
        for person in PEOPLE:
            console.print(Text(f"\n{person}", style="bold"))
            for served in self.served:
                if served.message.person == person:
                    _print_answers(console, served)
        console.print(Text("\nthe books", style="bold"))
        for line in self.evidence.books:
            _indented(console, Text(line), 2)
        work, most = self.at_work()
        console.print(
            Text(
                "\nthe check, by what the model was sent, the programs' journal, and what the server was asked",
                style="bold",
            )
        )
        for finding in self.findings:
            _print_finding(console, finding)
        console.print(
            Text(
                f"\n{len(self.served)} messages became {len(all_errands(self.evidence.plan))} runs: {work:.1f} s of work in "
                f"{self.seconds:.1f} s, up to {most} at once."
            )
        )
        console.print(Text(f"The timeline: {self.drawing}"), soft_wrap=True)
        faults = sum(len(finding.faults) for finding in self.findings)
        if faults:
            console.print(Text(f"The books are WRONG: {faults} fault{'s' if faults > 1 else ''}.", style="bold red"))
        elif not self.any_done:
            console.print(Text(f"No errand was done; see above what {self.model} answered.", style="bold red"))
        elif any(finding.not_checked for finding in self.findings):
            console.print(
                Text("Nothing is wrong, and not everything could be checked; see above.", style="bold yellow")
            )
        else:
            console.print(Text("The books are right.", style="bold green"))


def _print_answers(console: Console, served: Served) -> None:
    _indented(console, Text(f'"{served.message.text}"', style="italic"), 2)
    for text in served.message.meanwhile:
        _indented(console, Text(f'"{text}"  (said while it was at work)', style="italic"), 2)
    for errand, run in zip(served.message.errands, served.signal["runs"], strict=False):
        said = run["text"] or short_error(run["error"]) or "It said nothing."
        if run["state"] != "done":
            said = f"{run['state']}: {short_error(run['error'])}"
        _indented(console, Text(f"{errand.number}: {' '.join(said.split())}", style=STYLES[run["state"]]), 4)


def _print_finding(console: Console, finding: Finding) -> None:
    things = f"{finding.looked_at} {finding.things}{'' if finding.looked_at == 1 else 's'}"
    word, style = ("ok   ", "green") if finding.right else ("WRONG", "bold red")
    if finding.right and finding.not_checked:
        word, style = "not  ", "yellow"
    console.print(Text.assemble("  ", (word, style), f"  {finding.name}", (f"  ({things})", "dim")))
    for fault in finding.faults:
        _indented(console, Text(fault, style="red"), 9)
    for what in finding.not_checked:
        _indented(console, Text(f"not checked: {what}", style="yellow"), 9)


def _indented(console: Console, text: Text, by: int) -> None:
    """Print a text in as many lines as it needs, and nothing behind them."""
    for line in text.wrap(console, max(20, console.width - by)):
        line.rstrip()
        console.print(Text(" " * by).append_text(line), soft_wrap=True)


def _message(served: Served) -> dict[str, Any]:
    return {
        "from": served.message.person,
        "text": served.message.text,
        "meanwhile": list(served.message.meanwhile),
        "signal": served.signal["id"],
        "state": served.signal["state"],
        "error": served.signal["error"],
        "runs": [
            {
                "errand": errand.number,
                "run": run["id"],
                "session": run["session"],
                "resources": run["resources"],
                "state": run["state"],
                "waited": _between(run["queued_at"], run["started_at"]),
                "lasted": _between(run["started_at"], run["ended_at"]),
                "answer": run["text"],
                "error": run["error"],
                "usage": run["usage"],
            }
            for errand, run in zip(served.message.errands, served.signal["runs"], strict=False)
        ],
    }


def _between(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else round(other - one, 3)
