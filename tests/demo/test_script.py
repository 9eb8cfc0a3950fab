"""What the demo's scripted model does with a transcript, and what is noted of any model: sessions on a virtual clock."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from concorde_trio import MemoryStore, ScriptedModel, SessionHarness, tool
from concorde_trio._sansio.model_events import ModelEvent, ModelRequest, ReplyEnd, TextDelta
from concorde_trio.demo.household import PROMPT
from concorde_trio.demo.reading import read_errand
from concorde_trio.demo.script import scripted_model
from concorde_trio.demo.watched import WatchedModel
from concorde_trio.sessions.model import Model


class House:
    """Sessions of a model with a few files, and a shell that only notes what it is told. No thread, no process."""

    def __init__(self, model: Model | None = None) -> None:
        self.files = {"kitchen/list.txt": "tea\n"}
        self.commands: list[str] = []
        self.at_work = trio.Event()
        self.notes: list[tuple[str, int, str | None]] = []

        @tool
        async def read_file(path: str) -> str:
            """Read."""
            if path not in self.files:
                raise FileNotFoundError(f"{path} is not there")
            return self.files[path]

        @tool
        async def write_file(path: str, content: str) -> str:
            """Write."""
            self.files[path] = content
            return "written"

        @tool
        async def shell(command: str) -> str:
            """Work for a second."""
            self.commands.append(command)
            self.at_work.set()
            await trio.sleep(1)
            return "I did that.\n[exit status 0]"

        self.harness = SessionHarness(
            store=MemoryStore(),
            model=WatchedModel(model or scripted_model(), self._note),
            tools=[read_file, write_file, shell],
        )

    def _note(self, what: str, errand: int, *, session: str, text: str | None = None) -> None:
        self.notes.append((what, errand, text))

    async def ask(self, *steps: str, errand: int = 7, place: str | None = "kitchen") -> str | None:
        """The answer to a prompt with these steps, from ann's session."""
        where = f"Work in the {place}.\n" if place else ""
        lines = "\n".join(f"- {step}" for step in steps)
        text = PROMPT.format(text="Please.", errand=errand, person="ann", place=where, tag="a-tag-of-mine", steps=lines)
        return (await self.harness.turn("ann", text)).text


async def test_the_steps_of_a_prompt_are_taken_with_tools(autojump_clock: trio.testing.MockClock) -> None:
    """Demo: files by the file tools, everything else by the household's command with number and tag."""
    house = House()
    async with house.harness.open():
        said = await house.ask("read list.txt", "add to list.txt: milk", "spend 5 on ice cream", "write cake.txt: done")
    assert said is not None
    assert said.splitlines() == [
        "list.txt says: tea.",
        "list.txt has 2 lines now, the last: milk.",
        "I did that.",
        "I wrote cake.txt: done.",
    ]
    assert house.files == {"kitchen/list.txt": "tea\nmilk\n", "kitchen/cake.txt": "done\n"}
    assert house.commands == ["errand 7 a-tag-of-mine spend 5 'ice cream'"]
    assert [what for what, errand, _ in house.notes if errand == 7] == ["start", *["answered", "asked"] * 5, "finish"]


async def test_what_is_said_meanwhile_is_heeded_and_noted_as_one_message(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """SES-10: two inputs that waited come as one, and are on the list."""
    house = House()
    async with house.harness.open(), trio.open_nursery() as nursery:
        nursery.start_soon(house.ask, "work for 1.0 s", "write list.txt: tea")
        await house.at_work.wait()
        for text in ("Add milk to the list.", "And add rum to the list."):
            await house.harness.submit("ann", text)
    assert house.files["kitchen/list.txt"] == "tea, milk, rum\n"
    (heard,) = [text for what, _, text in house.notes if what == "heard"]
    assert heard == "[Multiple inputs received while processing:]\nAdd milk to the list.\n---\nAnd add rum to the list."


async def test_a_session_remembers_what_it_answered(autojump_clock: trio.testing.MockClock) -> None:
    """SES-17: by its transcript alone."""
    house = House()
    async with house.harness.open():
        assert await house.ask("recall") == "I remember nothing of this."
        await house.ask("write a.txt: x")
        assert await house.ask("recall", errand=8) == "I remember: I wrote a.txt: x."


@pytest.mark.parametrize(
    ("steps", "place", "said"),
    [
        (["read key.txt"], "kitchen", "I could not read key.txt: "),
        (["read key.txt"], None, "Nobody told me where to work"),
        (["fly"], "kitchen", "I don't know how to 'fly'; I can: read FILE, "),
        ([], "kitchen", "I know no more than these steps: read FILE, "),
    ],
)
async def test_a_step_that_cannot_be_taken_is_said_and_ends_it(
    autojump_clock: trio.testing.MockClock, steps: list[str], place: str | None, said: str
) -> None:
    """Demo: people try things."""
    house = House()
    async with house.harness.open():
        answer = await house.ask(*steps, *(["write never.txt: x"] if steps else []), place=place)
    assert answer is not None and answer.startswith(said)
    assert "kitchen/never.txt" not in house.files


async def test_plain_words_to_a_session_are_steps_or_talk(autojump_clock: trio.testing.MockClock) -> None:
    """Demo: with --keep somebody may just say something; it is no errand of anybody's."""
    house = House()
    async with house.harness.open():
        await house.ask("write a.txt: x")
        assert (await house.harness.turn("ann", "recall")).text == "I remember: I wrote a.txt: x."
        talk = (await house.harness.turn("ann", "Hello {there}?")).text
    assert talk is not None and talk.startswith("I know no more")
    assert [errand for what, errand, _ in house.notes if what == "finish"] == [7, 0, 0]
    assert [text for what, errand, text in house.notes if what == "heard"] == ["recall", "Hello {there}?"]


async def test_a_reply_that_never_ended_is_noted_as_broken(autojump_clock: trio.testing.MockClock) -> None:
    """Demo: whatever cuts a request off, the journal has it."""

    def stalls(request: ModelRequest) -> list[tuple[float, ModelEvent]]:
        return [(0.1, TextDelta("Well"))]

    house = House(ScriptedModel(stalls))
    async with house.harness.open():
        with trio.move_on_after(5):
            await house.ask("recall")
    assert [what for what, _, _ in house.notes] == ["start", "broke"]


async def test_an_errand_after_one_that_was_cut_off_is_the_one_that_counts(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Demo: an interrupted turn has no answer, and the next prompt begins anew all the same."""
    requests: list[ModelRequest] = []

    def remembers(request: ModelRequest) -> list[tuple[float, Any]]:
        requests.append(request)
        return [(0.1, TextDelta("Well"))] if len(requests) == 1 else [(0.1, TextDelta("Yes")), (0.0, ReplyEnd())]

    house = House(ScriptedModel(remembers))
    async with house.harness.open(), trio.open_nursery() as nursery:
        nursery.start_soon(house.ask, "recall")
        await trio.sleep(1)
        assert await house.harness.interrupt("ann")
        await house.ask("recall", errand=9)
    reading = read_errand(requests[-1].messages)
    assert (reading.number, reading.results, reading.heard) == (9, (), ())
