"""A scenario of signals, as frozen classes: what happens when, before it is played.

The law of this module: a scenario that could be parsed can be played. Times are seconds from the start of the
scenario; their decimal digits are exact (0.1 is one tenth). A file looks like this::

    {"claim_ahead": 100000, "max_running": null, "unknown_kinds": ["typo"], "stop": {"at": 9, "mode": "drain"},
     "signals": [{"id": "s1", "kind": "message", "at": 0, "handle": 0.5, "fail_handle": false,
                  "post": 1, "fail_post": false,
                  "prompts": [{"id": "r1", "session": "ann", "resources": ["budget"], "duration": 3,
                               "outcome": "ok", "tag": "tag-aaaaaaaaaaaaaaaa", "time_limit": 10}]}]}

``id``, ``kind``, ``at`` and ``duration`` are required. ``max_running`` (LCK-3) and a prompt's ``time_limit`` (RUN-6)
go beyond the shared format. ``about`` and ``expected`` mean nothing to a play.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, cast

import attrs

from concorde_trio.errors import InvalidScenario
from concorde_trio.simulate.fields import Fields, refuse

Outcome: TypeAlias = Literal["ok", "fail", "limited"]
StopMode: TypeAlias = Literal["drain", "park", "cancel"]

CLAIM_AHEAD = 100_000
_OUTCOMES = ("ok", "fail", "limited")
_MODES = ("drain", "park", "cancel")


@attrs.frozen(kw_only=True)
class ScriptedPrompt:
    """One prompt a handler will return, and how its run will go.

    ``session`` None is a fresh one (LCK-1). The run takes ``duration`` seconds and gives ``outcome``, unless
    ``time_limit`` cuts it off before (RUN-6).
    """

    id: str
    session: str | None = None
    resources: tuple[str, ...] = ()
    duration: float
    outcome: Outcome = "ok"
    tag: str | None = None
    time_limit: float | None = None


@attrs.frozen(kw_only=True)
class ScriptedSignal:
    """One signal, emitted ``at`` seconds, and how its handler will treat it.

    ``handle`` and ``post`` are the seconds that those take; ``post`` None is no post phase.
    """

    id: str
    kind: str
    at: float
    handle: float = 0.0
    fail_handle: bool = False
    post: float | None = None
    fail_post: bool = False
    prompts: tuple[ScriptedPrompt, ...] = ()


@attrs.frozen(kw_only=True)
class ScriptedStop:
    """A stop of the worker, ``at`` seconds (STP-1 to STP-3)."""

    at: float
    mode: StopMode


@attrs.frozen(kw_only=True)
class SignalScenario:
    """All of it. ``signals`` in file order, which is the order of emission within one instant."""

    signals: tuple[ScriptedSignal, ...]
    claim_ahead: int | None = CLAIM_AHEAD
    max_running: int | None = None
    unknown_kinds: frozenset[str] = frozenset()
    stop: ScriptedStop | None = None

    @property
    def in_order(self) -> tuple[ScriptedSignal, ...]:
        """The signals in the order they are emitted."""
        return tuple(sorted(self.signals, key=lambda signal: signal.at))

    def prompts(self) -> Iterator[ScriptedPrompt]:
        """Every prompt of every signal, in file order."""
        for signal in self.signals:
            yield from signal.prompts

    def times(self) -> Iterator[float]:
        """Every time and duration that the scenario names, in seconds."""
        for signal in self.signals:
            yield from (signal.at, signal.handle, signal.post or 0.0)
        for prompt in self.prompts():
            yield from (prompt.duration, prompt.time_limit or 0.0)
        if self.stop is not None:
            yield self.stop.at


def parse_signal_scenario(value: object) -> SignalScenario:
    """The scenario of signals in a JSON value; InvalidScenario, naming the field, if it is none."""
    fields = Fields(value, "", "a scenario of signals", (*_names(SignalScenario), "about", "expected"))
    scenario = SignalScenario(
        signals=fields.each("signals", "a list of signals", _signal, required=True),
        claim_ahead=fields.count("claim_ahead", default=CLAIM_AHEAD, least=0),
        max_running=fields.count("max_running", default=None, least=1),
        unknown_kinds=frozenset(fields.names("unknown_kinds", "kind")),
        stop=fields.optional("stop", _stop),
    )
    _refuse_twins(scenario)
    return scenario


def _names(cls: type[attrs.AttrsInstance]) -> list[str]:
    return [field.name for field in attrs.fields(cls)]


def _stop(value: object, place: str) -> ScriptedStop:
    fields = Fields(value, place, "a stop", _names(ScriptedStop))
    return ScriptedStop(at=fields.seconds("at"), mode=cast(StopMode, fields.choice("mode", _MODES)))


def _signal(value: object, place: str) -> ScriptedSignal:
    fields = Fields(value, place, "a signal", _names(ScriptedSignal))
    return ScriptedSignal(
        id=fields.text("id", "the id of the signal, a string"),
        kind=fields.name("kind", "kind"),
        at=fields.seconds("at"),
        handle=fields.seconds("handle", 0.0),
        fail_handle=fields.flag("fail_handle"),
        post=fields.optional_seconds("post"),
        fail_post=fields.flag("fail_post"),
        prompts=fields.each("prompts", "a list of prompts", _prompt, required=False),
    )


def _prompt(value: object, place: str) -> ScriptedPrompt:
    fields = Fields(value, place, "a prompt", _names(ScriptedPrompt))
    return ScriptedPrompt(
        id=fields.text("id", "the id of the run, a string"),
        session=fields.optional_name("session", "session"),
        resources=fields.names("resources", "resource"),
        duration=fields.seconds("duration"),
        outcome=cast(Outcome, fields.choice("outcome", _OUTCOMES, "ok")),
        tag=fields.optional("tag", _tag),
        time_limit=fields.optional_seconds("time_limit", above=True),
    )


def _tag(value: object, place: str) -> str:
    # A bad tag is no bad scenario: it fails its run (TAG-6), and a scenario may want to show that.
    if not isinstance(value, str):
        refuse(place, "a tag, a string, or null", value)
    return value


def _refuse_twins(scenario: SignalScenario) -> None:
    """Ids name the lines of the result, so no two signals, and no two runs, may have the same."""
    signals: dict[str, str] = {}
    runs: dict[str, str] = {}
    for index, signal in enumerate(scenario.signals):
        _once(signals, signal.id, f"signals[{index}].id", "signal")
        for position, prompt in enumerate(signal.prompts):
            _once(runs, prompt.id, f"signals[{index}].prompts[{position}].id", "run")


def _once(seen: dict[str, str], name: str, place: str, what: str) -> None:
    if name in seen:
        raise InvalidScenario(f"{place}: the {what} id {name!r:.80} is taken by {seen[name]}", place=place)
    seen[name] = place
