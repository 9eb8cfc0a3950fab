"""What a session waits for: one honest answer at any moment, from what it is doing and nothing else (SES-12a)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from concorde_trio._sansio.model_events import Purpose
from concorde_trio._sansio.session_terms import WaitingOn

if TYPE_CHECKING:
    from concorde_trio._sansio.session_machine import SessionMachine


def waiting_on(machine: SessionMachine) -> WaitingOn:
    """What it waits for, since when, what is left, and what happens then."""
    books = machine.books
    now, lock = books.now(), books.lock
    request, lease = machine.requests.current, lock.llm
    if request is not None and lease is not None:
        compacting = request.purpose is not Purpose.TURN
        then = "the transcript stays as it is" if compacting else "the turn fails"
        return WaitingOn(
            on="compaction" if compacting else "model",
            about=machine.terms.model_name,
            since=now - lease.acquired_at,
            last_progress=now - lease.started_at if lease.started_at > lease.acquired_at else None,
            left=lease.deadline - now,
            then=then,
        )
    live = list(machine.calls.live.values())
    for phase, on in (("running", "tool"), ("stopping", "stopping")):
        found = [each for each in live if each.phase == phase]
        if found:
            first = min(
                found, key=lambda each: each.stop_by if phase == "stopping" else each.since + each.terms.timeout
            )
            end = first.stop_by if phase == "stopping" else first.since + first.terms.timeout
            return WaitingOn(
                on=on,
                about=", ".join(f"{each.call.name} (call {each.call.id})" for each in found),
                since=now - first.since,
                left=end - now,
                then="it is reported as one that may still run"
                if on == "stopping"
                else "it is stopped, the turn goes on",
            )
    asked = [each for each in live if each.phase == "asked"]
    if asked:
        first = min(asked, key=lambda each: each.since + each.asked_for)
        return WaitingOn(
            on="approval",
            about=", ".join(f"{each.call.name} (call {each.call.id}, {each.kind})" for each in asked),
            since=now - first.since,
            left=first.since + first.asked_for - now,
            then="the call is denied",
        )
    summary, lease = machine.calls.summaries.current, lock.summarizing
    if summary is not None and lease is not None:
        return WaitingOn(
            on="summary",
            about=f"of the output of {summary.output.tool}",
            since=now - lease.acquired_at,
            last_progress=now - lease.started_at if lease.started_at > lease.acquired_at else None,
            left=lease.deadline - now,
            then="the output is cut instead",
        )
    if machine.backoff is not None:
        wait = machine.backoff
        return WaitingOn(
            on="backoff",
            about=wait.reason,
            since=now - wait.since,
            left=max(0.0, wait.until - now),
            then="the model is asked again",
        )
    if len(books.queue) or machine.linked:
        return WaitingOn(on="input" if books.queue.held else "lock", about=machine.holding())
    return WaitingOn(on="input")
