"""What the demo's household has to do: a dozen messages of three people, and what each of them needs alone.

The law: this is what was asked for, and what the household is checked against; nothing here knows how it is done.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

PEOPLE = ("ann", "bob", "cleo")
WORKSPACES = {
    "kitchen": {"pantry.txt": "rice\nlentils\nold onions\n", "recipes.txt": "dal\nrisotto\n"},
    "garden": {"diary.txt": "Monday: sowed beans\n"},
}
"""Each workspace and the files that are in it at first."""
TALKER = "ann"
"""Who says more while a session is at work."""
PLACES = {"ann": ("kitchen",), "bob": ("garden",)}
"""Where what somebody says to a session may be done; whoever is not in it has no place."""
BUDGET = 250
"""What there is to spend at first."""


@attrs.frozen(kw_only=True)
class Errand:
    """One run to be made, by its number.

    ``session``: None for a conversation of its own. ``place``: the workspace it needs alone. ``budget``: whether it needs
    the budget alone. ``time_limit``: seconds. ``usage_limit``: tokens. ``ends``: the state in which it has to end.
    """

    number: int
    session: str | None
    steps: tuple[str, ...]
    place: str | None = None
    budget: bool = False
    time_limit: float | None = None
    usage_limit: int | None = None
    ends: str = "done"

    @property
    def locks(self) -> tuple[tuple[str, str], ...]:
        """What it needs alone: (space, name)."""
        session = () if self.session is None else (("session", self.session),)
        place = () if self.place is None else (("resource", self.place),)
        return (*session, *place, *((("resource", "budget"),) if self.budget else ()))

    @property
    def spends(self) -> tuple[int, ...]:
        """What it has to spend, step by step."""
        found = (re.fullmatch(r"spend (\d+) on .+", step) for step in self.steps)
        return tuple(int(match[1]) for match in found if match is not None)

    def fields(self) -> dict[str, Any]:
        """What a payload says of it."""
        given = {
            "place": self.place,
            "budget": self.budget or None,
            "time_limit": self.time_limit,
            "usage_limit": self.usage_limit,
        }
        said = {name: value for name, value in given.items() if value is not None}
        return {"errand": self.number, "session": self.session, "steps": list(self.steps), **said}


@attrs.frozen(kw_only=True)
class Message:
    """What one person sends: a signal of ``kind``, ``pause`` seconds after the message before it.

    ``about``: the same in two or three words. ``meanwhile``: what the person says to the session, one right after the
    other, while it is at work on this.
    """

    person: str
    kind: str
    about: str
    text: str
    errands: tuple[Errand, ...]
    pause: float = 0.25
    meanwhile: tuple[str, ...] = ()

    def payload(self) -> dict[str, Any]:
        """The signal's payload: the fields of its one errand, or its ``parts``."""
        said = {"from": self.person, "text": self.text}
        parts = [errand.fields() for errand in self.errands]
        return {**said, **parts[0]} if len(parts) == 1 else {**said, "parts": parts}


def for_a_real_model(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The same with times that a model which thinks can keep."""
    return tuple(
        attrs.evolve(
            message,
            errands=tuple(
                attrs.evolve(
                    errand,
                    time_limit=None if errand.time_limit is None else 10 * errand.time_limit,
                    usage_limit=None if errand.usage_limit is None else 10 * errand.usage_limit,
                )
                for errand in message.errands
            ),
        )
        for message in messages
    )


def with_heard(text: str, heard: Iterable[str]) -> str:
    """A list with what was asked to be put on it meanwhile."""
    return ", ".join([text, *(each[1] for said in heard for each in re.finditer(r"[Aa]dd (\w+) to the list", said))])


def files_after(messages: Sequence[Message]) -> dict[str, str]:
    """What every file of the workspaces must say once all of it is done: path to text."""
    files = {f"{place}/{name}": text for place, found in WORKSPACES.items() for name, text in found.items()}
    for message in messages:
        for errand in message.errands:
            for step in errand.steps:
                if match := re.fullmatch(r"write (\S+): (.+)", step):
                    files[f"{errand.place}/{match[1]}"] = with_heard(match[2], message.meanwhile) + "\n"
                elif match := re.fullmatch(r"add to (\S+): (.+)", step):
                    files[f"{errand.place}/{match[1]}"] = files.get(f"{errand.place}/{match[1]}", "") + f"{match[2]}\n"
    return files


def all_errands(messages: Iterable[Message]) -> list[Errand]:
    """Every errand, in the order in which the messages are sent."""
    return [errand for message in messages for errand in message.errands]


MESSAGES = (
    Message(
        person="ann",
        kind="message.received",
        about="what is missing?",
        text="Have a look at the pantry, please, and write down what we need for the weekend.",
        errands=(
            Errand(
                number=1,
                session="ann",
                place="kitchen",
                steps=("read pantry.txt", "work for 1.2 s", "write shopping.txt: onions, tomatoes, coffee"),
            ),
        ),
        pause=0.0,
        meanwhile=("We are out of milk, too. Add milk to the list, please.", "And add chocolate to the list!"),
    ),
    Message(
        person="bob",
        kind="message.received",
        about="water the beds",
        text="It has not rained since Sunday. Water the beds and put it into the diary.",
        errands=(
            Errand(
                number=2,
                session="bob",
                place="garden",
                steps=("work for 1.2 s", "add to diary.txt: Friday: watered the beds"),
            ),
        ),
    ),
    Message(
        person="cleo",
        kind="message.received",
        about="think up a novel",
        text="Think about a novel in which a household learns to take turns. Don't stop too early.",
        errands=(
            Errand(
                number=3,
                session="cleo",
                steps=("think about a novel",),
                usage_limit=2_500,
                ends="limited",
            ),
        ),
    ),
    Message(
        person="cleo",
        kind="question.asked",
        about="how much is left?",
        text="How much can we still spend this month?",
        errands=(Errand(number=4, session=None, steps=("look at the budget",)),),
    ),
    Message(
        person="ann",
        kind="shopping.asked",
        about="buy the groceries",
        text="Now buy what is on that list. Take it from the household money.",
        errands=(
            Errand(
                number=5,
                session="ann",
                place="kitchen",
                budget=True,
                steps=(
                    "read shopping.txt",
                    "spend 34 on groceries",
                    "add to pantry.txt: onions, tomatoes, coffee and the rest of the list",
                ),
            ),
        ),
    ),
    Message(
        person="bob",
        kind="shopping.asked",
        about="buy tomato plants",
        text="We need six tomato plants. Plant them at the south wall.",
        errands=(
            Errand(
                number=6,
                session="bob",
                place="garden",
                budget=True,
                steps=("spend 18 on six tomato plants", "add to diary.txt: Friday: planted six tomatoes"),
            ),
        ),
    ),
    Message(
        person="cleo",
        kind="shopping.asked",
        about="book the cinema",
        text="Three tickets for tonight, please, somewhere in the middle.",
        errands=(Errand(number=7, session="cleo", budget=True, steps=("spend 36 on three tickets",)),),
    ),
    Message(
        person="bob",
        kind="question.asked",
        about="ask with no name",
        text="Find out what is left in the budget, but don't say who is asking.",
        errands=(Errand(number=8, session=None, steps=("work for 0.9 s", "look at the budget without the tag")),),
    ),
    Message(
        person="ann",
        kind="message.received",
        about="ring the plumber",
        text="The tap drips. Ring the plumber and hold the line until somebody answers.",
        errands=(
            Errand(
                number=9,
                session="ann",
                steps=("wait for the plumber",),
                time_limit=3.0,
                ends="failed",
            ),
        ),
    ),
    Message(
        person="bob",
        kind="message.received",
        about="fetch the rake",
        text="Open the shed and bring the rake. The key should be lying about somewhere.",
        errands=(Errand(number=10, session="bob", place="garden", steps=("read key.txt",)),),
    ),
    Message(
        person="cleo",
        kind="party.planned",
        about="get the party going",
        text="Saturday's party: somebody bakes a cake, and somebody hangs lights into the apple tree.",
        errands=(
            Errand(
                number=11,
                session=None,
                place="kitchen",
                budget=True,
                steps=("spend 21 on flour and eggs", "write cake.txt: in the oven"),
            ),
            Errand(
                number=12,
                session=None,
                place="garden",
                steps=("work for 0.9 s", "add to diary.txt: Friday: lights in the apple tree"),
            ),
        ),
    ),
    Message(
        person="ann",
        kind="message.received",
        about="what did I ask for?",
        text="What did I ask of you today, and what did it cost?",
        errands=(Errand(number=13, session="ann", steps=("recall",)),),
    ),
)
"""The dozen, in the order in which they are sent. Errands are numbered in the same order."""
