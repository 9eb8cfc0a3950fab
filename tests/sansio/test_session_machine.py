"""Moments of a session's course that random ones found, each by itself."""

from __future__ import annotations

from concorde_trio import events
from concorde_trio._sansio.model_events import CallStarted, ModelEvent, Purpose, ReplyEnd, StopReason, TextDelta
from concorde_trio._sansio.session_terms import CallReport
from concorde_trio.messages import Input, InputState
from tests.sansio.session_stage import World


def said(input_id: str) -> Input:
    return Input(id=input_id, text=f"text of {input_id}", at=1.0)


def world_with(*calls: tuple[str, str, str], **settings: object) -> World:
    """A session whose model has just replied with these calls."""
    world = World(**settings)  # type: ignore[arg-type]
    world.machine.submit(said("i1"))
    world.pump()
    (epoch,) = world.requests
    came: list[ModelEvent] = [CallStarted(at, *call) for at, call in enumerate(calls)]
    for event in [*came, ReplyEnd(StopReason.CALLS)]:
        world.feed(epoch, Purpose.TURN, event)
    world.machine.request_over(epoch, Purpose.TURN, None)
    world.pump(over=epoch)
    return world


def test_a_piece_of_a_stream_that_comes_after_the_deadline_ends_the_turn_there_and_then() -> None:
    """SES-4, SES-5, LSE-2: it is late, so the hold is taken; and whoever takes a hold goes on, or nobody ever would."""
    world = World()
    world.machine.submit(said("i1"))
    world.pump()
    (epoch,) = world.requests
    world.clock.now += 11
    assert not world.feed(epoch, Purpose.TURN, TextDelta("late"))
    assert [turn.outcome for turn in world.turns] == ["failed"]
    assert world.machine.idle
    world.check()


def test_a_signal_that_is_settled_after_a_deadline_lets_the_turn_end_too() -> None:
    """SES-4: whoever takes a hold goes on."""
    world = World(gated=True)
    world.machine.begin_run(None)
    world.machine.run_prompt(said("p1"), None)
    world.pump()
    world.clock.now += 11
    world.machine.signal_settled("sig1")
    world.pump()
    assert [turn.outcome for turn in world.turns] == ["failed"]
    world.check()


def test_an_empty_queue_is_stored_as_held_no_more() -> None:
    """SES-12, SES-10b: the one input that was held is taken back."""
    world = world_with(("a", "look", ""), on_interrupt="hold_queue")
    world.machine.submit(said("i2"))
    world.machine.interrupt()
    world.pump()
    assert world.store.row is not None and world.store.row.held
    world.machine.cancel_input("i2")
    world.pump()
    assert not world.store.row.held and world.store.inputs["i2"].state is InputState.CANCELLED


def test_an_approval_is_what_a_session_waits_for_though_a_summary_is_out_as_well() -> None:
    """SES-12a: ``status`` and ``waiting_on`` are one answer, and a person is told what they can do."""
    world = world_with(("a", "look", ""), ("b", "look", '{"p":"ask"}'))
    (start,) = world.calls.values()
    world.machine.call_over("a", start.registration, CallReport("a very long output " * 9))
    world.pump(call_over=start.registration)
    assert [each.request.purpose for each in world.requests.values()] == [Purpose.SUMMARY]
    assert world.machine.status == world.machine.waiting_on().on == "approval"


def test_a_result_without_a_registration_for_a_call_that_is_asked_about_is_dropped_and_told() -> None:
    """SES-13, SES-18: nothing of it runs, so nothing of it can have a result."""
    world = world_with(("a", "look", '{"p":"ask"}'))
    world.machine.call_over("a", None, CallReport("as if"))
    (step,) = world.pump()
    assert [type(event) for event in step.events] == [events.ReplyDropped] and not step.changes
    assert world.machine.status == "approval"


def test_a_run_takes_its_prompt_at_once_though_somebody_wants_a_compaction() -> None:
    """SES-21, SES-15: a prompt that waited for the compaction would wait for ever if the worker stopped meanwhile."""
    world = World(gated=True)
    world.machine.begin_run(None)
    world.machine.run_prompt(said("p1"), None)
    world.pump()
    world.machine.interrupt()
    world.pump()
    world.store.apply(world.machine.end_run())
    world.machine.compact()
    world.machine.begin_run(None)
    world.machine.run_prompt(said("p2"), None)
    world.machine.no_more_turns()
    world.pump()
    assert world.store.inputs["p2"].state is InputState.DELIVERED
    assert [each.request.purpose for each in world.requests.values()] == [Purpose.COMPACTION_DRAFT]
