"""The calls of the latest reply: in their order, each registered while it runs, each ended by exactly one result (SES-13).

The law: a call whose place in the transcript is empty is exactly one of: not started, asked about, running, being stopped,
or waiting for the summary of its output. It leaves by ``_result`` alone.
"""

from __future__ import annotations

from typing import Literal

import attrs

from concorde_trio import events
from concorde_trio._sansio.abandoned import AbandonedWork
from concorde_trio._sansio.holds import ExpiredTool
from concorde_trio._sansio.session_books import Books, seconds
from concorde_trio._sansio.session_summaries import LongOutput, Summaries, cut
from concorde_trio._sansio.session_terms import KINDS, CallReport, ExecKind, StartCall, StopCall, ToolTerms
from concorde_trio.messages import CallOutcome, ToolCall

Phase = Literal["asked", "running", "stopping", "output"]


@attrs.define
class Live:
    """A call that has begun and has no result yet. ``because``, ``reason``: how it will end and why, while it is stopped."""

    place: int
    call: ToolCall
    terms: ToolTerms
    kind: ExecKind
    phase: Phase
    registration: int
    since: float
    asked_for: float = 0.0
    because: CallOutcome | None = None
    reason: str = ""
    waited: float = 0.0
    stop_by: float = 0.0
    left: list[str] = attrs.field(factory=list)


class Calls:
    """Drives the calls that have no result. The transcript knows which they are; this knows what becomes of each."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self.live: dict[int, Live] = {}  # by place
        self._by_registration: dict[int, Live] = {}
        self.abandoned = AbandonedWork(books)
        self.summaries = Summaries(books, self._summarized)

    # --- starting -------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Start what may run now: the next call, with its neighbours if all of them are concurrent.

        None where the limit is reached, by the summary of an output: then what has not started never runs (SES-16).
        """
        limited = self._books.over_limit()
        if limited is not None:
            return self._refuse(CallOutcome.LIMITED, limited)
        while not self.live and (waiting := self._books.transcript.open_calls):
            together = True
            for place, call in waiting.items():
                tool = self._books.terms.tools().get(call.name)
                alone = tool is None or not tool.concurrent
                if self.live and (alone or not together):
                    break
                together = not alone
                self._dispatch(place, call, tool)
        return None

    def _dispatch(self, place: int, call: ToolCall, tool: ToolTerms | None) -> None:
        if call.refused is not None:
            return self._result(place, call, CallOutcome.ERROR, f"This call was refused: {call.refused}")
        if tool is None:
            there = ", ".join(self._books.terms.tools()) or "there are no tools"
            return self._result(
                place, call, CallOutcome.ERROR, f"There is no tool {call.name!r}; it was not run. Tools: {there}"
            )
        kind, decision, why = self._decide(call, tool)
        if decision == "deny":
            return self._result(
                place, call, CallOutcome.DENIED, f"This call ({kind}) is not allowed; it was not run.{why}"
            )
        live = Live(place, call, tool, kind, "running", 0, self._books.now())
        if decision == "ask":
            live.phase = "asked"
            live.asked_for = self._books.settings.approval_timeout
            self._register(live, live.asked_for)
            self._books.say(events.ApprovalAsked, call_id=call.id, tool=call.name, kind=kind, seconds=live.asked_for)
        else:
            self._start(live)
        return None

    def _decide(self, call: ToolCall, tool: ToolTerms) -> tuple[ExecKind, str, str]:
        """SES-18. What the user's functions raise, or give that is no answer, means no."""
        terms, kind = self._books.terms, tool.kind
        try:
            if terms.classify is not None:
                kind = terms.classify(call, kind)
                if kind not in KINDS:
                    return tool.kind, "deny", f" (classify gave {kind!r:.80}, which is none of {', '.join(KINDS)}.)"
            decision = "allow" if terms.policy is None else terms.policy(call, kind)
        except (KeyboardInterrupt, GeneratorExit):  # these are about the program
            raise
        except BaseException as error:  # noqa: BLE001 - the user's code; failing open would run what nobody allowed
            return kind, "deny", f" (The policy itself failed: {type(error).__name__}: {error!s:.200})"
        if decision not in ("allow", "deny", "ask"):
            return kind, "deny", f" (The policy gave {decision!r:.80}, which is none of allow, deny, ask.)"
        return kind, decision, ""

    def _start(self, live: Live) -> None:
        live.phase = "running"
        registration = self._register(live, live.terms.timeout)
        self._books.step.starts.append(StartCall(live.call, registration, live.since + live.terms.timeout))
        self._books.say(events.CallStarted, call_id=live.call.id, tool=live.call.name, kind=live.kind)

    def _register(self, live: Live, timeout: float) -> int:
        lock = self._books.lock
        held = lock.register_tool(live.call.id, live.call.name, timeout)
        lock.set_exec_kind(live.call.id, live.kind, held.registration)
        live.registration, live.since = held.registration, held.started_at
        self.live[live.place] = self._by_registration[held.registration] = live
        self._books.dirty = True
        return held.registration

    # --- what comes -----------------------------------------------------------------------------------------

    def over(self, call_id: str | None, registration: int | None, report: CallReport) -> None:
        """The work of a call is over."""
        live = self._find(call_id, registration)
        if live is None:
            return self._late(call_id, registration, report)
        if live.phase == "stopping":
            late = None if report.text is None else report.text
            if late is not None:
                self._books.say(events.ReplyDropped, what="result", epoch=None, call_id=live.call.id, current=None)
                record = self.abandoned.add(live.call, None, "call", None, "it ended while it was being stopped")
                self.abandoned.ended(record.work, late)
            return self._stopped(live, "It ended while it was being stopped." if late is not None else None)
        if live.phase != "running":  # a person is asked about it: nothing of it runs that could have a result
            return self._books.say(events.ReplyDropped, what="result", epoch=None, call_id=call_id, current=None)
        self._books.lock.complete_tool(live.call.id, live.registration)
        if report.text is None:
            text = "The call was cancelled before it had a result; what it had begun may be half done."
            return self._result(live.place, live.call, CallOutcome.INTERRUPTED, text)
        return self._output(live, report)

    def _output(self, live: Live, report: CallReport) -> None:
        text, over = report.text or "", self._books.settings.summarize_over
        if over is None or len(text) <= over:
            outcome = CallOutcome.ERROR if report.error else CallOutcome.OK
            return self._result(live.place, live.call, outcome, text, path=report.path)
        if report.error:
            text = cut(text, self._books.settings.truncate_to, report.path)
            return self._result(live.place, live.call, CallOutcome.ERROR, text, path=report.path)
        live.phase = "output"
        self._by_registration.pop(live.registration, None)
        self.summaries.add(LongOutput(place=live.place, tool=live.call.name, text=text, path=report.path))
        return None

    def _summarized(self, output: LongOutput, outcome: CallOutcome, text: str) -> None:
        live = self.live[output.place]
        self._result(live.place, live.call, outcome, text, path=output.path)

    def _late(self, call_id: str | None, registration: int | None, report: CallReport) -> None:
        """SES-7, SES-13: never a second result; kept where it belongs, and told."""
        work = self.abandoned.of_registration(registration)
        if work is None and registration is None and call_id is not None:
            work = self.abandoned.of_call(call_id)
        if work is not None:
            self.abandoned.ended(work, report.text)
        elif report.text is None:
            return
        self._books.say(events.ReplyDropped, what="result", epoch=None, call_id=call_id, current=None)

    def _find(self, call_id: str | None, registration: int | None) -> Live | None:
        if registration is not None:
            return self._by_registration.get(registration)
        return next((each for each in self._by_registration.values() if each.call.id == call_id), None)

    def registration_of(self, call_id: str | None) -> int | None:
        """Which registration a result that names its call alone is for; None if none waits for one."""
        live = self._find(call_id, None)
        return None if live is None else live.registration

    def left(self, registration: int, call: ToolCall, what: str, number: int, about: str) -> int:
        """Work that a call leaves behind; the number of its record."""
        live = self._by_registration.get(registration)
        expected = live is not None and live.phase == "running" and what == "process"
        if live is not None:
            live.left.append(f"{what} {number} ({about})" if about else f"{what} {number}")
        return self.abandoned.add(call, registration, what, number, about, expected=expected).work

    # --- a person's answer ----------------------------------------------------------------------------------

    @property
    def asked(self) -> dict[str, Live]:
        """The calls a person is asked about, by call_id."""
        return {each.call.id: each for each in self.live.values() if each.phase == "asked"}

    def answer(self, call_id: str, allowed: bool) -> bool:
        """A person's answer, for this call alone (SES-18). False: nobody asked about it."""
        live = self.asked.get(call_id)
        if live is None:
            return False
        self._books.lock.complete_tool(call_id, live.registration)
        self._by_registration.pop(live.registration, None)
        self._books.say(events.ApprovalAnswered, call_id=call_id, allowed=allowed)
        if allowed:
            self._start(live)
        else:
            self._result(live.place, live.call, CallOutcome.DENIED, "A person did not allow this call; it was not run.")
        return True

    # --- ends that nobody wished for ------------------------------------------------------------------------

    def expired(self, expired: ExpiredTool) -> None:
        """A call's time is up (SES-7), or nobody answered the question about it (SES-18)."""
        live = self._by_registration.get(expired.tool.registration)
        if live is None:
            return
        if live.phase == "asked":
            waited = seconds(expired.waited)
            text = f"Nobody allowed this call within {waited}, so it was denied; it was not run."
            self._result(live.place, live.call, CallOutcome.DENIED, text)
            return
        self._stop(live, CallOutcome.TIMEOUT, expired.waited, "its time is up")

    def drop(self, expired: ExpiredTool) -> None:
        """Settling it failed halfway: whatever became of that, the call gets its result (SES-4)."""
        registration = expired.tool.registration
        live = next((each for each in self.live.values() if each.registration == registration), None)
        if live is not None:
            self._books.step.stops.append(StopCall(registration, "its time is up"))
            said = f"The session stopped waiting for {live.call.name} after {seconds(expired.waited)}."
            self._result(live.place, live.call, CallOutcome.TIMEOUT, f"{said} It may still complete.")

    def stop(self, outcome: CallOutcome, reason: str) -> None:
        """Settle every call: an interrupt, or a limit. What is finished is kept; what runs is stopped first."""
        self.summaries.stop(reason)
        for live in list(self.live.values()):
            if live.phase == "running":
                self._books.lock.complete_tool(live.call.id, live.registration)
                self._stop(live, outcome, self._books.now() - live.since, reason)
        self._refuse(outcome, reason)

    def _refuse(self, outcome: CallOutcome, reason: str) -> None:
        """What has not started is not run, though a person is being asked about it."""
        for live in list(self.live.values()):
            if live.phase == "asked":
                self._books.lock.complete_tool(live.call.id, live.registration)
                self._result(live.place, live.call, outcome, _never_ran(reason))
        for place, call in self._books.transcript.open_calls.items():
            if place not in self.live:
                self._result(place, call, outcome, _never_ran(reason))

    def _stop(self, live: Live, because: CallOutcome, waited: float, reason: str) -> None:
        live.because, live.waited, live.reason, live.phase = because, waited, reason, "stopping"
        self._books.step.stops.append(StopCall(live.registration, reason))
        if live.terms.stoppable and self._books.terms.stoppable:
            live.stop_by = self._books.now() + self._books.settings.stop_wait
        else:
            self._give_up(live)

    def _give_up(self, live: Live) -> None:
        """It could not be stopped: its result says so, and it is listed until it is seen to end."""
        self.abandoned.add(live.call, live.registration, "call", None, f"{live.call.name} could not be stopped")
        self._stopped(live, "It could not be stopped and may still complete.")

    def _stopped(self, live: Live, became: str | None) -> None:
        assert live.because is not None
        if live.because is CallOutcome.TIMEOUT:
            said = f"The session stopped waiting for {live.call.name} after {seconds(live.waited)}."
        else:
            said = f"{live.reason[:1].upper()}{live.reason[1:]}; the session stopped waiting for {live.call.name}."
        if live.left:
            became = f"{became or ''} It may go on: {', '.join(live.left)}.".strip()
        became = became or "Its work was stopped; what it had done until then stays done."
        self._result(live.place, live.call, live.because, f"{said} {became}")

    def next_stop(self) -> float:
        """When the first call that is being stopped is given up, infinity if none is."""
        return min((each.stop_by for each in self.live.values() if each.phase == "stopping"), default=float("inf"))

    def give_up_due(self) -> None:
        """Calls that would not stop in time are given up."""
        now = self._books.now()
        for live in list(self.live.values()):
            if live.phase == "stopping" and live.stop_by <= now:
                self._give_up(live)

    # --- inside ---------------------------------------------------------------------------------------------

    def _result(self, place: int, call: ToolCall, outcome: CallOutcome, text: str, *, path: str | None = None) -> None:
        live = self.live.pop(place, None)
        if live is not None:
            self._by_registration.pop(live.registration, None)
        books = self._books
        books.add(books.transcript.add_result(place, outcome, text, books.wall(), path=path))
        books.say(events.CallEnded, call_id=call.id, tool=call.name, outcome=outcome)


def _never_ran(reason: str) -> str:
    return f"This call was not run: {reason}."
