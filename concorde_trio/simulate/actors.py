"""The handlers and the runtime of a scenario: ordinary ones, which sleep and then do as they were told.

The law of this module: nothing here knows locks, order or the worker. What a user can register is all that is used.
"""

from __future__ import annotations

import attrs
import trio

from concorde_trio.records import PostOutcome, Prompt, RunOutcome, RunPrompt, Signal
from concorde_trio.simulate.scenario import ScriptedPrompt, ScriptedSignal, SignalScenario
from concorde_trio.simulate.ticks import Ticks
from concorde_trio.simulate.trace import Trace


class ScriptedFailure(Exception):
    """Raised by a handle or post phase that the scenario wants to fail."""


@attrs.frozen
class Script:
    """A scenario as its actors read it: by the number that each signal's payload and each prompt's text is.

    ``kinds``: the kind under which each signal is emitted. One kind has one handler (CLM-3), and a handler has a
    post phase or has none; where a kind of the scenario has signals of both sorts, the sorts get kinds of their own.
    """

    scenario: SignalScenario
    ticks: Ticks
    trace: Trace
    prompts: tuple[ScriptedPrompt, ...]
    numbers: dict[str, int]
    kinds: tuple[str, ...]

    @classmethod
    def of(cls, scenario: SignalScenario, ticks: Ticks, trace: Trace) -> Script:
        """The script of a scenario."""
        prompts = tuple(scenario.prompts())
        kinds = _kinds(scenario)
        return cls(scenario, ticks, trace, prompts, {prompt.id: place for place, prompt in enumerate(prompts)}, kinds)

    def handlers(self) -> dict[str, ScriptedHandler | ScriptedHandlerWithPost]:
        """One for each kind that has one."""
        found: dict[str, ScriptedHandler | ScriptedHandlerWithPost] = {}
        for signal, kind in zip(self.scenario.signals, self.kinds, strict=True):
            if signal.kind not in self.scenario.unknown_kinds:
                found[kind] = ScriptedHandler(self) if signal.post is None else ScriptedHandlerWithPost(self)
        return found

    def signal(self, signal: Signal) -> ScriptedSignal:
        """What the scenario says of a signal."""
        return self.scenario.signals[signal.payload]

    def session(self, name: str | None) -> str | None:
        """The session of a prompt. ``run_<id>`` is the fresh session of that run, once it was queued (LCK-1)."""
        return None if name is None else self.trace.fresh_sessions.get(name, name)


@attrs.frozen
class ScriptedHandler:
    """A handler without a post phase; not repeatable (CLM-6)."""

    script: Script

    async def handle(self, signal: Signal) -> list[Prompt]:
        """Take the time, then raise or return the prompts."""
        script, given = self.script, self.script.signal(signal)
        await trio.sleep(script.ticks.of(given.handle))
        if given.fail_handle:
            raise ScriptedFailure("fail_handle")
        return [
            Prompt(
                text=str(script.numbers[prompt.id]),
                session=script.session(prompt.session),
                resources=prompt.resources,
                tag=prompt.tag,
                time_limit=None if prompt.time_limit is None else script.ticks.of(prompt.time_limit),
            )
            for prompt in given.prompts
        ]


@attrs.frozen
class ScriptedHandlerWithPost(ScriptedHandler):
    """A handler with a post phase."""

    async def post(self, signal: Signal, outcome: PostOutcome) -> None:
        """Note what it was told, take the time, then raise or return."""
        given = self.script.signal(signal)
        self.script.trace.post_called(given.id, outcome, trio.current_time())
        await trio.sleep(self.script.ticks.of(given.post or 0.0))
        if given.fail_post:
            raise ScriptedFailure("fail_post")


@attrs.frozen
class ScriptedRuntime:
    """A runtime that finds out by a run's text how it shall go."""

    script: Script

    async def run(self, prompt: RunPrompt, /) -> RunOutcome:
        """Take the time, then give the outcome."""
        given = self.script.prompts[int(prompt.text)]
        await trio.sleep(self.script.ticks.of(given.duration))
        if given.outcome == "fail":
            return RunOutcome.failed("the scenario lets this run fail")
        if given.outcome == "limited":
            return RunOutcome.limited("the scenario lets this run hit its limit")
        return RunOutcome.ok()


def _kinds(scenario: SignalScenario) -> tuple[str, ...]:
    taken = {signal.kind for signal in scenario.signals} | scenario.unknown_kinds
    both = {signal.kind for signal in scenario.signals if signal.post is None} - scenario.unknown_kinds
    renamed: dict[str, str] = {}
    for signal in scenario.signals:
        if signal.post is not None and signal.kind in both and signal.kind not in renamed:
            # A kind has at most 200 characters (CLM-7): the addition must fit.
            kind = f"{signal.kind[:180]} with post"
            while kind in taken:
                kind += "'"
            renamed[signal.kind] = kind
            taken.add(kind)
    return tuple(
        signal.kind if signal.post is None else renamed.get(signal.kind, signal.kind) for signal in scenario.signals
    )
