"""What a session has said, as the model is to see it: always valid, whatever happened (SES-9).

The law: when a reply is added, the places right after it are kept for the results of its calls. A result goes into its own
place, whatever order results come in, and nothing else is added while a place is empty. So no crash, interrupt or
late result can put a message between a call and its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from concorde_trio._sansio.reply import Reply
from concorde_trio.errors import InternalError
from concorde_trio.messages import CallOutcome, Input, Message, Role, ToolCall
from concorde_trio.records import Usage, storable_text

CHARACTERS = 4
"""Characters of text that are taken for one token where no usage tells."""


class Transcript:
    """Messages in order. ``last_seq``: the last place that was given out."""

    __slots__ = ("_characters", "_messages", "_open", "_tokens", "last_seq")

    def __init__(self, messages: Iterable[Message] = (), last_seq: int = 0) -> None:
        self._messages: list[Message] = list(messages)
        self.last_seq = last_seq
        self._open: dict[int, ToolCall] = {}
        self._tokens = 0  # what the provider counted, up to the latest reply that had usage
        self._characters = 0  # what came after that
        covered = 0
        for message in self._messages:
            if message.covers is not None:
                covered = message.covers
            if message.seq > covered:
                self._count(message)
            else:  # kept by a compaction: what was counted with it was all that is gone now
                self._characters += _size(message)
            if message.role is Role.ASSISTANT and message.calls:
                self.last_seq = max(self.last_seq, message.seq + len(message.calls))
                for place, call in enumerate(message.calls, message.seq + 1):
                    self._open[place] = call
            elif message.role is Role.TOOL:
                self._open.pop(message.seq, None)

    # --- looking --------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        """The messages, results that are there already in their places."""
        return iter(self._messages)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All of them."""
        return tuple(self._messages)

    @property
    def last(self) -> Message | None:
        """The last one."""
        return self._messages[-1] if self._messages else None

    @property
    def open_calls(self) -> dict[int, ToolCall]:
        """Calls that have no result yet, by the place of their result, in order."""
        return dict(sorted(self._open.items()))

    @property
    def open_calls_left(self) -> int:
        """How many calls have no result yet."""
        return len(self._open)

    @property
    def tokens(self) -> int:
        """About how many tokens a request with all of it has."""
        return self._tokens + self._characters // CHARACTERS

    # --- adding ---------------------------------------------------------------------------------------------

    def add_user(self, inputs: tuple[Input, ...], text: str, at: float) -> Message:
        """A person's message. InternalError while a call has no result."""
        return self._add(Message(seq=self.last_seq + 1, role=Role.USER, text=text, at=at, inputs=inputs))

    def add_reply(self, reply: Reply, at: float, model: str | None) -> Message:
        """A model's reply; the places of its results are kept."""
        message = self._add(
            Message(
                seq=self.last_seq + 1,
                role=Role.ASSISTANT,
                text=reply.text,
                at=at,
                calls=reply.calls,
                model=model,
                provider=reply.provider,
                usage=reply.usage,
            )
        )
        for call in reply.calls:
            self.last_seq += 1
            self._open[self.last_seq] = call
        return message

    def add_interrupted(self, text: str, at: float, model: str | None, usage: Usage | None) -> Message:
        """What had been said when a person cut in (SES-5)."""
        text = storable_text(text)
        return self._add(
            Message(
                seq=self.last_seq + 1,
                role=Role.ASSISTANT,
                text=text,
                at=at,
                interrupted=True,
                model=model,
                usage=usage,
            )
        )

    def add_result(self, place: int, outcome: CallOutcome, text: str, at: float, *, path: str | None = None) -> Message:
        """The one result of the call whose place this is. InternalError for a second one."""
        call = self._open.pop(place, None)
        if call is None:
            raise InternalError(f"place {place} waits for no result")
        message = Message(
            seq=place,
            role=Role.TOOL,
            text=storable_text(text),
            at=at,
            call_id=call.id,
            tool=call.name,
            outcome=outcome,
            path=None if path is None else storable_text(path),
        )
        at_index = len(self._messages)
        while at_index and self._messages[at_index - 1].role is Role.TOOL and self._messages[at_index - 1].seq > place:
            at_index -= 1
        self._messages.insert(at_index, message)
        self._count(message)
        return message

    def repair(self, text: str, at: float) -> tuple[Message, ...]:
        """Every call without a result gets this one: what a crash cut off, once it is loaded again (SES-17)."""
        added = []
        for place in sorted(self._open):
            call = self._open.pop(place)
            message = Message(
                seq=place,
                role=Role.TOOL,
                text=text,
                at=at,
                call_id=call.id,
                tool=call.name,
                outcome=CallOutcome.INTERRUPTED,
            )
            before = next(
                index
                for index, each in enumerate(self._messages)
                if each.role is Role.ASSISTANT and each.seq < place <= each.seq + len(each.calls)
            )
            owner = self._messages[before]
            before += 1
            while before < len(self._messages) and owner.seq < self._messages[before].seq < place:
                before += 1
            self._messages.insert(before, message)
            self._count(message)
            added.append(message)
        return tuple(added)

    # --- compaction (SES-15) --------------------------------------------------------------------------------

    def compactable(self) -> tuple[tuple[Message, ...], tuple[Message, ...]] | None:
        """What a compaction would take away, and what it would keep; None if there is nothing worth it.

        The last message of a person stays, and whatever follows it where that is less than half of all.
        """
        if self._open:
            return None
        last_user = next(
            (index for index in range(len(self._messages) - 1, -1, -1) if self._messages[index].role is Role.USER), None
        )
        if last_user is None:
            gone, kept = self._messages, []
        else:
            gone, kept = self._messages[:last_user], self._messages[last_user:]
            if sum(map(_size, gone)) < sum(map(_size, kept[1:])):
                gone, kept = [*gone, *kept[1:]], kept[:1]
        if not gone or (len(gone) == 1 and gone[0].role is Role.SUMMARY):
            return None
        return tuple(gone), tuple(kept)

    def compact(self, text: str, at: float, kept: tuple[Message, ...]) -> Message:
        """The summary stands for all but ``kept``."""
        covers = self.last_seq
        summary = Message(
            seq=covers + 1,
            role=Role.SUMMARY,
            text=storable_text(text),
            at=at,
            covers=covers,
            keeps=tuple(message.seq for message in kept),
        )
        self.last_seq = summary.seq
        self._messages = [summary, *kept]
        self._tokens = self._characters = 0
        for message in self._messages:
            self._characters += _size(message)
        return summary

    # --- inside ---------------------------------------------------------------------------------------------

    def _add(self, message: Message) -> Message:
        if self._open:
            raise InternalError(f"a message was added while calls have no result: {list(self._open.values())!r:.200}")
        self.last_seq = message.seq
        self._messages.append(message)
        self._count(message)
        return message

    def _count(self, message: Message) -> None:
        usage = message.usage
        if usage is not None and usage.input_tokens and not message.interrupted:
            self._tokens, self._characters = usage.input_tokens + usage.output_tokens, 0
        else:
            self._characters += _size(message)


def _size(message: Message) -> int:
    return len(message.text) + sum(len(call.arguments) + len(call.name) for call in message.calls)
