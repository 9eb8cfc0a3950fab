"""Evidence of a household in which all went well, made by hand: what each test plants one fault into."""

from __future__ import annotations

from typing import Any

import attrs

from concorde_trio.demo.errands import BUDGET, MESSAGES, all_errands, files_after
from concorde_trio.demo.evidence import Asked, Evidence, Line, Spend

TAG = "a-tag-of-somebody"
OURS = 1
"""The process of the model and the bookkeeper."""


def good_evidence() -> Evidence:
    """One errand after the other, a second each; the bookkeeper needs a second more for each message that has money."""
    journal: list[Line] = []
    requests: list[Asked] = []
    ledger: list[Spend] = []
    books: list[str] = []
    left, now = BUDGET, 0

    def note(what: str, errand: int, **more: Any) -> None:
        nonlocal now
        now += 100_000_000
        journal.append(Line(at=now, what=what, errand=errand, **{"pid": OURS, **more}))

    for message in MESSAGES:
        for errand in message.errands:
            number, session, pid = errand.number, errand.session or f"run_{errand.number}", 1000 + errand.number
            note("start", number, session=session)
            note("answered", number, session=session)
            note("began", number, pid=pid)
            requests.append(Asked(path="GET /runs/current", claims=number, tags=(TAG,), attributed=number))
            note("told", number, pid=pid, told=number)
            for amount in errand.spends:
                ledger.append(Spend(errand=number, amount=amount))
                books.append(f"{len(books) + 1}. errand {number} bought a thing: {left} - {amount} = {left - amount}")
                left -= amount
                note("spent", number, pid=pid, amount=amount)
            note("ended", number, pid=pid, how="done")
            if message.meanwhile:
                text = "\n---\n".join(message.meanwhile)
                note("heard", number, session=session, text=f"[Multiple inputs received while processing:]\n{text}")
            note("finish" if errand.ends == "done" else "broke", number, session=session)
        if any(errand.budget for errand in message.errands):
            for what in ("post", "posted"):
                for errand in message.errands:
                    note(what, errand.number)
    requests.append(Asked(path="POST /signals", claims=None, tags=(), attributed=None))
    requests.append(Asked(path="GET /budget", claims=None, tags=(TAG, TAG), attributed=None))
    return Evidence(
        plan=MESSAGES,
        journal=journal,
        requests=requests,
        budget=BUDGET,
        left=left,
        ledger=ledger,
        books=books,
        ended={errand.number: errand.ends for errand in all_errands(MESSAGES)},
        running=(),
        files=files_after(MESSAGES),
    )


def moved(evidence: Evidence, errand: int, seconds: float, *, only: str | None = None) -> Evidence:
    """The same, with an errand's lines (or only those of one kind) at another time."""
    journal = [
        attrs.evolve(line, at=line.at + round(seconds * 1e9))
        if line.errand == errand and only in (None, line.what)
        else line
        for line in evidence.journal
    ]
    return attrs.evolve(evidence, journal=sorted(journal, key=lambda line: line.at))
