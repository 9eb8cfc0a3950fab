"""What a program prints, read as it comes: as text, by rules, or as records for a function.

Each reading takes bounded memory, knows the usage so far, and gives the verdict of agent programs that can be trusted
with nothing: not their exit status (it lies for most), not that the stream is whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from concorde_trio._sansio.lines import JsonLine, LineReader, parse_line
from concorde_trio.errors import UsageError
from concorde_trio.processes.capture import Capture
from concorde_trio.processes.ending import Exit
from concorde_trio.records import JSON, RunOutcome, Usage
from concorde_trio.runtimes.command_rules import Folding, JsonLines, Meter, Rule, fits

Judge: TypeAlias = Callable[[Sequence[dict[str, JSON]], Exit], RunOutcome]
"""A function of all records and of how the program ended."""

_MAX_LINE = 16 * 1024 * 1024


class Reading(Protocol):
    """One program's output."""

    @property
    def usage(self) -> Usage | None:
        """What the run used so far, as far as it is told."""
        ...

    @property
    def told(self) -> Usage | None:
        """The sum over the whole conversation, for a program that tells that (UsageRules.cumulative); else None."""
        ...

    @property
    def text(self) -> str | None:
        """The answer so far."""
        ...

    @property
    def native_id(self) -> JSON:
        """The id of the conversation that the program told, None as long as it has not."""
        ...

    @property
    def settled(self) -> bool:
        """The answer is there, and needs no further request to the model."""
        ...

    def feed(self, data: bytes) -> None:
        """The next bytes of stdout."""
        ...

    def finish(self) -> None:
        """Stdout is over."""
        ...

    def judge(self, exit: Exit) -> RunOutcome:
        """The verdict on a program that was not stopped by us. A failure's text says what, not how it exited."""
        ...


class TextReading:
    """stdout is the answer. Weak: the exit status is believed. For programs without a record stream."""

    def __init__(self, max_output: int) -> None:
        self.stdout = Capture(max_output - max_output // 2, max_output // 2)
        self.usage: Usage | None = None
        self.told: Usage | None = None
        self.native_id: JSON = None
        self.settled = False

    @property
    def text(self) -> str | None:
        """What was printed, without the newline at its end."""
        return self.stdout.text().removesuffix("\n") or None

    def feed(self, data: bytes) -> None:
        """Keep it, bounded."""
        self.stdout.feed(data)

    def finish(self) -> None:
        """Nothing is left to do."""

    def judge(self, exit: Exit) -> RunOutcome:
        """Ok with exit status 0 and something printed."""
        text = self.text
        if exit.code != 0:
            return RunOutcome.failed("it reported failure", text=text)
        if text is None or not text.strip():
            return RunOutcome.failed("it printed nothing")
        return RunOutcome.ok(text)


class _Lines:
    """Cuts stdout into records, looks for an id, and remembers what was wrong with the first that was no record."""

    def __init__(self, max_line: int, id: Rule | None) -> None:
        self._reader = LineReader(max_line)
        self._id = None if id is None else Folding(id)
        self.records = 0
        self.broken: str | None = None

    @property
    def native_id(self) -> JSON:
        return None if self._id is None else self._id.value

    def feed(self, data: bytes) -> list[dict[str, JSON]]:
        return self._records([parse_line(line) for line in self._reader.feed(data)])

    def finish(self) -> list[dict[str, JSON]]:
        last = self._reader.finish()
        return [] if last is None else self._records([parse_line(last)])

    def _records(self, lines: list[JsonLine | None]) -> list[dict[str, JSON]]:
        records = []
        for line in lines:
            if line is None:
                continue
            if line.record is not None:
                records.append(line.record)
                if self._id is not None:
                    self._id.take(line.record)
            elif self.broken is None and line.unterminated:
                self.broken = f"its output ends in the middle of a record: {line.unreadable}"
            elif self.broken is None:
                self.broken = f"it printed a line that cannot be read: {line.unreadable}"
        self.records += len(records)
        return records


class RulesReading:
    """Records that are folded by rules as they come, and not kept."""

    def __init__(
        self, rules: JsonLines, max_output: int, *, id: Rule | None = None, before: Usage | None = None
    ) -> None:
        self._rules = rules
        self._max_output = max_output
        self._lines = _Lines(rules.max_line, id)
        self._ended = False
        self._failed = False
        self._state = None if rules.state is None else Folding(rules.state)
        self._text = None if rules.text is None else Folding(rules.text)
        self._errors = [Folding(rule) for rule in rules.error]
        self._meter = None if rules.usage is None else Meter(rules.usage, before)

    @property
    def usage(self) -> Usage | None:
        """By the usage rules."""
        return None if self._meter is None else self._meter.usage

    @property
    def told(self) -> Usage | None:
        """By the usage rules, if they are cumulative."""
        cumulative = self._rules.usage is not None and self._rules.usage.cumulative
        return self._meter.told if self._meter is not None and cumulative else None

    @property
    def native_id(self) -> JSON:
        """By the session's rule."""
        return self._lines.native_id

    @property
    def text(self) -> str | None:
        """By the text rule, its middle left out if it is longer than max_output."""
        if self._text is None or not isinstance(self._text.value, str):
            return None
        kept = Capture(self._max_output - self._max_output // 2, self._max_output // 2)
        kept.feed(self._text.value.encode("utf-8", "replace"))
        return kept.text()

    @property
    def settled(self) -> bool:
        """The end record came, or the state is an ok one."""
        return self._ended or (self._state is not None and self._is_ok(self._state.value))

    def feed(self, data: bytes) -> None:
        """Fold what it completes."""
        self._fold(self._lines.feed(data))

    def finish(self) -> None:
        """Fold a last record without a newline."""
        self._fold(self._lines.finish())

    def _fold(self, records: list[dict[str, JSON]]) -> None:
        for record in records:
            self._ended = self._ended or fits(self._rules.end, record)
            self._failed = self._failed or (self._rules.fail is not None and fits(self._rules.fail, record))
            for folding in (self._state, self._text, *self._errors):
                if folding is not None:
                    folding.take(record)
            if self._meter is not None:
                self._meter.take(record)

    def judge(self, exit: Exit) -> RunOutcome:
        """In this order: unreadable, cut in a record, nothing, a failure record, no end record, a state that is not ok."""
        problem = self._problem()
        if problem is None:
            return RunOutcome.ok(self.text, usage=self.usage)
        return RunOutcome.failed(problem, text=self.text, usage=self.usage)

    def _problem(self) -> str | None:
        if self._lines.broken is not None:
            return self._lines.broken
        if not self._lines.records:
            return "it printed nothing"
        reason = next((str(one.value) for one in self._errors if one.value not in (None, "")), None)
        if self._failed:
            return reason or "it reported a failure, and gave no reason"
        if not self._ended:
            return "its output ends without the record that ends a run"
        if self._state is not None and not self._is_ok(self._state.value):
            return reason or f"it ended in the state {self._state.value!r:.80}, and gave no reason"
        return None

    def _is_ok(self, value: JSON) -> bool:
        return any(isinstance(value, bool) == isinstance(one, bool) and value == one for one in self._rules.ok)


class FunctionReading:
    """Records that are kept for a function to judge, up to ``max_output`` bytes of them."""

    def __init__(self, function: Judge, max_output: int, *, id: Rule | None = None) -> None:
        self._function = function
        self._max_output = max_output
        self._lines = _Lines(_MAX_LINE, id)
        self._size = 0
        self._records: list[dict[str, JSON]] = []
        self.usage: Usage | None = None
        self.told: Usage | None = None
        self.text: str | None = None
        self.settled = False

    @property
    def native_id(self) -> JSON:
        """By the session's rule."""
        return self._lines.native_id

    def feed(self, data: bytes) -> None:
        """Keep what it completes."""
        self._size += len(data)
        records = self._lines.feed(data)
        if self._size <= self._max_output:
            self._records += records
        else:
            self._records.clear()

    def finish(self) -> None:
        """Keep a last record without a newline."""
        self._records += self._lines.finish()

    def judge(self, exit: Exit) -> RunOutcome:
        """What the function says, unless the stream is broken or empty. UsageError if it says nothing that counts."""
        if self._size > self._max_output:
            return RunOutcome.failed(
                f"it printed {self._size:,} bytes of records, and max_output lets a function have {self._max_output:,}"
            )
        if self._lines.broken is not None:
            return RunOutcome.failed(self._lines.broken)
        if not self._records:
            return RunOutcome.failed("it printed nothing")
        outcome = self._function(tuple(self._records), exit)
        if not isinstance(outcome, RunOutcome):
            raise UsageError(
                f"the output function of a CommandRuntime must return a RunOutcome, not {type(outcome).__name__}"
            )
        return outcome
