"""Are the books right? A verdict from evidence, with a sentence for each fault.

The law: what is not there to be looked at is a fault too, so that no check passes for want of anything to check. Only where
a real model may have done something else than it was asked, that is not checked, and the finding says so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import attrs

from concorde_trio._sansio.input_queue import HEADER, SEPARATOR
from concorde_trio.demo.errands import Errand, Message, all_errands, files_after
from concorde_trio.demo.evidence import BOOKKEEPER, PROGRAM, Asked, Evidence, Line

_BOOKED = re.compile(r"(\d+)\. errand (\d+) bought .*: (\d+) - (\d+) = (-?\d+)")


@attrs.frozen(kw_only=True)
class Finding:
    """One thing that was checked: the sentence that should be true, how many ``things`` were looked at, and the faults.

    ``not_checked``: what could not be, and why.
    """

    name: str
    looked_at: int
    things: str
    faults: tuple[str, ...]
    not_checked: tuple[str, ...] = ()

    @property
    def right(self) -> bool:
        """Whether there is no fault."""
        return not self.faults


def check(evidence: Evidence) -> list[Finding]:
    """Look at everything; the books are right when every finding is."""
    trusted = evidence.journal if evidence.scripted else trusted_lines(evidence.journal)
    lines: dict[int, list[Line]] = defaultdict(list)
    for line in trusted:
        if line.errand:
            lines[line.errand].append(line)
    errands = all_errands(evidence.plan)
    # One that was never begun held nothing, though the bookkeeper was told of it.
    begun = {number: found for number, found in lines.items() if any(line.what not in BOOKKEEPER for line in found)}
    pairs = list(_sharing(evidence.plan, begun))
    tagged = [asked for asked in evidence.requests if _speaks_for_an_errand(asked)]
    untagged = [asked for asked in evidence.requests if not _speaks_for_an_errand(asked)]
    told = [line for line in evidence.journal if line.what == "told"]
    meanwhile = [(message, text) for message in evidence.plan for text in message.meanwhile]
    expected = files_after(evidence.plan)
    unruly = [] if evidence.scripted else list(_unruly(errands, evidence))
    judge = _Judge(evidence.scripted)
    return [
        judge.of_model(
            "every errand was done once, as it was asked for", len(errands), "errand", _as_asked(errands, lines)
        ),
        judge.of_us("no two runs that share a lock overlapped", len(pairs), "pair", _overlaps(pairs)),
        judge.of_us("what shares a lock kept its order", len(pairs), "pair", _swaps(pairs)),
        judge.of_model(
            "every tagged request was attributed to its run",
            len(tagged) + len(told),
            "request",
            [*_wrongly_attributed(tagged), *_wrongly_told(told)],
        ),
        judge.of_us(
            "no other request was attributed to anybody", len(untagged), "request", _attributed_to_somebody(untagged)
        ),
        judge.unless(unruly, "the budget is what was spent", len(evidence.ledger), "purchase", _budget(evidence)),
        judge.unless(unruly, "every purchase is in the books", len(evidence.books), "line", _books(evidence)),
        judge.of_model(
            "what was said meanwhile was heard once, in order", len(meanwhile), "message", _heard(meanwhile, evidence)
        ),
        judge.of_model("the files say what was done", len(expected), "file", _files(expected, evidence)),
        judge.of_model("every errand ended as it had to", len(errands), "errand", _endings(errands, evidence)),
        judge.of_us(
            "no process is left",
            len({line.pid for line in evidence.journal if line.what == "began"}),
            "program",
            evidence.running,
        ),
    ]


def trusted_lines(journal: Sequence[Line]) -> list[Line]:
    """Those that no model can have falsified: its own, and a program's of which the server knows the errand."""
    sure = {line.pid for line in journal if line.what == "told" and line.told == line.errand}
    return [line for line in journal if line.what not in PROGRAM or line.pid in sure]


@attrs.frozen
class _Judge:
    """Whether something wrong is a fault: always, if the model was ``scripted`` and could only do what it was asked."""

    scripted: bool

    def of_us(self, name: str, looked_at: int, things: str, faults: Iterable[str]) -> Finding:
        """What no model can do wrong."""
        found = tuple(faults)
        nothing = () if looked_at else (f"there was no {things} to look at",)
        if self.scripted:
            return Finding(name=name, looked_at=looked_at, things=things, faults=found or nothing)
        return Finding(name=name, looked_at=looked_at, things=things, faults=found, not_checked=nothing)

    def of_model(self, name: str, looked_at: int, things: str, faults: Iterable[str]) -> Finding:
        """What a model can do wrong."""
        return self.unless(
            ("the model may have done something else than it was asked",), name, looked_at, things, faults
        )

    def unless(self, reasons: Sequence[str], name: str, looked_at: int, things: str, faults: Iterable[str]) -> Finding:
        """What is right as long as the model keeps to its errands; ``reasons`` say why it may not have."""
        finding = self.of_us(name, looked_at, things, faults)
        if self.scripted or not reasons or not finding.faults:
            return finding
        return attrs.evolve(finding, faults=(), not_checked=(*finding.not_checked, *finding.faults, *reasons))


# --- runs and locks -------------------------------------------------------------------------------------------------


def _as_asked(errands: Sequence[Errand], lines: Mapping[int, Sequence[Line]]) -> Iterator[str]:
    planned = {errand.number for errand in errands}
    for number in sorted(lines.keys() - planned):
        yield f"errand {number} was done, and nobody had asked for it"
    for errand in errands:
        found = lines.get(errand.number, ())
        starts = [line for line in found if line.what == "start"]
        if len(starts) != 1:
            yield f"errand {errand.number} was begun {len(starts)} times, not once"
        for session in sorted({line.session for line in found if line.session is not None}):
            if errand.session is not None and session != errand.session:
                yield f"errand {errand.number} was for the session {errand.session}, and was done in {session}"
        spent = sorted(line.amount or 0 for line in found if line.what == "spent")
        if spent != sorted(errand.spends):
            yield f"errand {errand.number} had to spend {list(errand.spends)}, and spent {spent}"


def _heard(meanwhile: Sequence[tuple[Message, str]], evidence: Evidence) -> Iterator[str]:
    """What the model of a session was sent, beside its errands, against what its people said, in order."""
    for person in sorted({message.person for message, _ in meanwhile}):
        said = [text for message, text in meanwhile if message.person == person]
        heard = [line.text or "" for line in evidence.journal if line.what == "heard" and line.session == person]
        parts = [part for text in heard for part in text.removeprefix(f"{HEADER}\n").split(f"\n{SEPARATOR}\n")]
        if parts != said:
            yield f"{person} said {said} while the session was at work, and its model heard {parts}"


def _files(expected: Mapping[str, str], evidence: Evidence) -> Iterator[str]:
    for path, text in expected.items():
        found = evidence.files.get(path)
        if found is None:
            yield f"{path} is gone"
        elif found != text:
            yield f"{path} had to say {text!r:.200}, and says {found!r:.200}"
    for path in sorted(evidence.files.keys() - expected.keys()):
        yield f"{path} is there, and nobody asked for it"


def _unruly(errands: Sequence[Errand], evidence: Evidence) -> Iterator[str]:
    """Why money may have gone wrong by no fault of ours."""
    allowed = {errand.number: errand.budget for errand in errands}
    for spend in evidence.ledger:
        if not allowed.get(spend.errand):
            yield f"errand {spend.errand} spent {spend.amount} without having the budget"
    for errand in errands:
        state = evidence.ended.get(errand.number)
        if errand.budget and state != "done":
            yield f"errand {errand.number} ended as {state or 'nothing'}, maybe while it spent"
    if any(line.what == "told" and line.told != line.errand for line in evidence.journal):
        yield "a program was started under another errand's number or tag"


@attrs.frozen
class _Pair:
    """Two errands that share locks, in the order in which they were asked for, and the lines that each had them for."""

    one: Sequence[Line]
    other: Sequence[Line]
    shared: str


def _sharing(plan: Sequence[Message], lines: Mapping[int, Sequence[Line]]) -> Iterator[_Pair]:
    """The pairs of which both have left a trace."""
    asked = [(message, errand) for message in plan for errand in message.errands]
    for (message, one), (later, other) in combinations(asked, 2):
        shared = [name for space, name in one.locks if (space, name) in other.locks]
        both = [lines.get(one.number, ()), lines.get(other.number, ())]
        if message is later:
            # A run that has ended is not in the way of its sister, though its locks are kept for the bookkeeper.
            both = [[line for line in found if line.what not in BOOKKEEPER] for found in both]
        if shared and all(both):
            yield _Pair(both[0], both[1], " and ".join(shared))


def _overlaps(pairs: Iterable[_Pair]) -> Iterator[str]:
    for pair in pairs:
        first, second = sorted((pair.one, pair.other), key=lambda lines: lines[0].at)
        if first[-1].at > second[0].at:
            both = (first[-1].at - second[0].at) / 1e6
            yield f"errands {first[0].errand} and {second[0].errand} both had {pair.shared}, for {both:.1f} ms"


def _swaps(pairs: Iterable[_Pair]) -> Iterator[str]:
    for pair in pairs:
        if pair.other[0].at < pair.one[0].at:
            yield (
                f"errand {pair.other[0].errand} had {pair.shared} before errand {pair.one[0].errand}, "
                "which was asked for earlier"
            )


# --- requests -------------------------------------------------------------------------------------------------------


def _speaks_for_an_errand(asked: Asked) -> bool:
    # Several tags, or several in one, speak for nobody, whatever they are.
    return asked.claims is not None and len(asked.tags) == 1


def _wrongly_attributed(tagged: Iterable[Asked]) -> Iterator[str]:
    for asked in tagged:
        if asked.attributed != asked.claims:
            yield f"{asked.path} came from errand {asked.claims}, and was attributed to {_whom(asked.attributed)}"


def _wrongly_told(told: Iterable[Line]) -> Iterator[str]:
    for line in told:
        if line.told != line.errand:
            yield f"errand {line.errand} asked who it was, and was told: {_whom(line.told)}"


def _attributed_to_somebody(untagged: Iterable[Asked]) -> Iterator[str]:
    for asked in untagged:
        if asked.attributed is not None:
            yield f"{asked.path} came with {len(asked.tags)} tags, and was attributed to errand {asked.attributed}"


def _whom(errand: int | None) -> str:
    return "nobody" if errand is None else f"errand {errand}"


# --- money ----------------------------------------------------------------------------------------------------------


def _budget(evidence: Evidence) -> Iterator[str]:
    accepted = Counter((spend.errand, spend.amount) for spend in evidence.ledger)
    spent = Counter((line.errand, line.amount or 0) for line in evidence.journal if line.what == "spent")
    for errand, amount in sorted((accepted - spent).elements()):
        yield f"the server took {amount} from errand {errand}, which knows nothing of it"
    for errand, amount in sorted((spent - accepted).elements()):
        yield f"errand {errand} spent {amount}, and the server has it under no such errand"
    total = sum(spend.amount for spend in evidence.ledger)
    if evidence.left != evidence.budget - total:
        lost = evidence.left - (evidence.budget - total)
        yield f"{evidence.left} are left of {evidence.budget}, and {total} were spent: an update was lost, {lost} too much"


def _books(evidence: Evidence) -> Iterator[str]:
    left = evidence.budget
    booked: Counter[tuple[int, int]] = Counter()
    for number, text in enumerate(evidence.books, 1):
        match = _BOOKED.fullmatch(text)
        if match is None:
            yield f"line {number} of the books can't be read: {text!r:.80}"
            continue
        named, errand, before, amount, after = map(int, match.groups())
        booked[errand, amount] += 1
        if (named, before, after) != (number, left, left - amount):
            yield f"line {number} of the books does not follow from the line before: {text!r:.80}"
        left = after
    accepted = Counter((spend.errand, spend.amount) for spend in evidence.ledger)
    for errand, amount in sorted((accepted - booked).elements()):
        yield f"errand {errand} spent {amount}, and that is not in the books"
    for errand, amount in sorted((booked - accepted).elements()):
        yield f"the books have {amount} for errand {errand}, which did not spend it"
    if left != evidence.left and evidence.books:
        yield f"the last line of the books says {left}, and {evidence.left} are left"


# --- endings --------------------------------------------------------------------------------------------------------


def _endings(errands: Sequence[Errand], evidence: Evidence) -> Iterator[str]:
    answers = Counter(line.errand for line in evidence.journal if line.what == "finish")
    for errand in errands:
        state = evidence.ended.get(errand.number)
        if state != errand.ends:
            yield f"errand {errand.number} had to end as {errand.ends}, and ended as {state or 'nothing'}"
        elif answers[errand.number] != (state == "done"):
            yield f"errand {errand.number} is said to be {state}, and its model gave {answers[errand.number]} answers"
