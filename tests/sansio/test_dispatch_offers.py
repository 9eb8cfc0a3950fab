"""The dispatcher of a fleet's leader: what may start is offered, and its members say what became of it."""

from __future__ import annotations

from concorde_trio import events
from concorde_trio._sansio.changes import EndRun, OfferRun, StartPost, StartRun
from concorde_trio._sansio.dispatch import Dispatcher
from concorde_trio._sansio.reports import Cancel, Handled, Inbox, KindInfo, Step, StopMode, Taken
from concorde_trio.records import Prompt, Run, RunOutcome, RunState, SignalPhase, SignalRecord, SignalState, Unfinished

TAG = "0123456789abcdef"


def leading(
    *sessions: str, holds: bool = False, max_running: int | None = None, tag: str | None = None
) -> tuple[Dispatcher, Step]:
    """A leader that has handled one signal, whose runs are of these sessions: they are s1-1, s1-2, ..."""
    core = Dispatcher({"task": KindInfo(holds=holds, repeatable=False)}, offers=True, max_running=max_running)
    core.offer([record()])
    given = core.step(Inbox(), 0.0).handle
    prompts = tuple(Prompt(text=f"do it {tag or ''}", session=session, tag=tag) for session in sessions)
    return core, core.step(Inbox(handled=[Handled(given[0], prompts)], unhandled=[]), 1.0)


def record(state: SignalState = SignalState.PENDING, phase: SignalPhase | None = None, number: int = 1) -> SignalRecord:
    """The signal s1, or another."""
    return SignalRecord(
        id=f"s{number}",
        seq=number,
        kind="task",
        payload=None,
        state=state,
        emitted_at=0.0,
        phase=phase,
        claimed_at=None if phase is None else 0.5,
    )


def offered(step: Step) -> list[str]:
    """The runs that a step offers."""
    return [change.run_id for change in step.changes if isinstance(change, OfferRun)]


def taken(number: int, at: float = 2.0) -> Taken:
    """That a member took a run."""
    return Taken(f"s1-{number}", "member", at)


def done(number: int) -> tuple[str, RunOutcome]:
    """That a run ended well."""
    return f"s1-{number}", RunOutcome.ok("done")


def test_what_may_start_is_offered_and_starts_when_it_is_taken() -> None:
    """LCK-2, RUN-1: an offer is no start: the member that takes it writes that mark, and an event tells of it then."""
    core, step = leading("a", "a", "b")
    assert offered(step) == ["s1-1", "s1-3"]
    assert not step.starts
    assert not any(isinstance(change, StartRun) for change in step.changes)
    assert core.runs["s1-1"].state is RunState.PENDING
    step = core.step(Inbox(taken=[taken(3), taken(1)]), 3.0)
    assert [event.run_id for event in step.events if isinstance(event, events.RunStarted)] == ["s1-1", "s1-3"]
    assert core.runs["s1-1"].started_at == 2.0
    assert core.runs["s1-1"].member == "member"
    assert step.changes == []


def test_an_end_offers_what_it_releases_in_the_same_step() -> None:
    """RUN-1, LCK-5: also where the take was never heard of before the end."""
    core, _ = leading("a", "a")
    step = core.step(Inbox(taken=[taken(1)], ends=[done(1)]), 3.0)
    assert [type(change) for change in step.changes] == [EndRun, OfferRun]
    assert offered(step) == ["s1-2"]


def test_an_offer_takes_a_place_and_counts_as_waiting() -> None:
    """LCK-3, CLM-2: under max_running what is offered may start at any moment, and it has not started yet."""
    core, step = leading("a", "b", "c", max_running=2)
    assert offered(step) == ["s1-1", "s1-2"]
    assert core.waiting == 3
    core.step(Inbox(taken=[taken(1), taken(2)]), 3.0)
    assert core.waiting == 1
    assert offered(core.step(Inbox(ends=[done(2)]), 4.0)) == ["s1-3"]


def test_a_recalled_offer_waits_again_and_can_be_cancelled() -> None:
    """RUN-6: a run that nobody had taken is cancelled as one that never started; its locks are free."""
    core, _ = leading("a", "a", tag=None)
    step = core.step(Inbox(recalled=["s1-1"], cancels=[Cancel("s1-1")]), 3.0)
    ended = next(change for change in step.changes if isinstance(change, EndRun))
    assert (ended.run_id, ended.state) == ("s1-1", RunState.CANCELLED)
    assert offered(step) == ["s1-2"]
    assert core.running == 1


def test_a_cancelled_run_that_was_taken_is_asked_to_stop() -> None:
    """RUN-6: also where the take was not heard of yet."""
    core, _ = leading("a")
    assert core.step(Inbox(cancels=[Cancel("s1-1")]), 3.0).cancel_runs == ["s1-1"]
    assert core.step(Inbox(taken=[taken(1)], cancels=[Cancel("s1")]), 4.0).cancel_runs == ["s1-1"]


def test_a_lost_run_fails_its_signal_which_is_interrupted_and_its_post_runs() -> None:
    """REC-2, REC-4: it may have had effects; its siblings go on."""
    core, _ = leading("a", "b", holds=True)
    core.step(Inbox(taken=[taken(1), taken(2)]), 2.0)
    step = core.step(Inbox(lost=["s1-1"]), 3.0)
    assert [event.what for event in step.events if isinstance(event, events.SignalInterrupted)]
    assert core.runs.keys() == {"s1-2"}
    (post,) = core.step(Inbox(ends=[done(2)]), 4.0).posts
    assert post[1].interrupted and post[1].failed
    assert [run.state for run in post[1].runs] == [RunState.FAILED, RunState.DONE]


def test_runs_that_are_lost_together_fail_in_run_order() -> None:
    """LCK-5: whatever the order in which they were found, and so what they release is offered in that order too."""
    core, _ = leading("a", "b", "a", "b")
    core.step(Inbox(taken=[taken(1), taken(2)]), 2.0)
    step = core.step(Inbox(lost=["s1-2", "s1-1"]), 3.0)
    assert [change.run_id for change in step.changes if isinstance(change, EndRun)] == ["s1-1", "s1-2"]
    assert offered(step) == ["s1-3", "s1-4"]


def test_a_leader_that_resigns_starts_no_post_and_claims_nothing_but_offers_on() -> None:
    """STP-1, CLM-6: what is due is the next leader's; what is under way ends first."""
    core, _ = leading("a", "a", holds=True)
    core.resigning = True
    assert core.finished
    step = core.step(Inbox(taken=[taken(1)], ends=[done(1)]), 3.0)
    step = core.step(Inbox(taken=[taken(2)], ends=[done(2)]), 4.0)
    assert not any(isinstance(change, StartPost) for change in step.changes)
    assert step.posts == []
    assert core.offer([record(number=2)])
    assert core.step(Inbox(), 5.0).handle == ()
    core.resigning = False
    assert [each.id for each in core.step(Inbox(), 6.0).handle] == ["s2"]


def test_a_new_leader_adopts_what_living_members_run() -> None:
    """REC-2, REC-3, TAG-2: a run of a living member goes on with its tag; one of nobody's has failed; others keep their place."""
    runs = [
        Run(
            id=f"s1-{number}",
            signal_id="s1",
            signal_seq=1,
            position=number,
            index=number - 1,
            session=session,
            prompt=TAG,
            queued_at=0.0,
            state=state,
            started_at=1.0 if state is RunState.RUNNING else None,
            tag=TAG if number == 1 else None,
        )
        for number, session, state in (
            (1, "a", RunState.RUNNING),
            (2, "b", RunState.RUNNING),
            (3, "a", RunState.PENDING),
            (4, "b", RunState.PENDING),
        )
    ]
    core = Dispatcher({"task": KindInfo(holds=False, repeatable=False)}, offers=True, position=4)
    entry = Unfinished(signal=record(SignalState.PROCESSING, SignalPhase.RUNNING), runs=tuple(runs))
    step = core.recover([entry], 9.0, Inbox(), {"s1-1": "member"})
    ended = [change for change in step.changes if isinstance(change, EndRun)]
    assert [(each.run_id, each.state) for each in ended] == [("s1-2", RunState.FAILED)]
    assert offered(step) == ["s1-4"]
    assert core.runs["s1-1"].member == "member"
    assert core.tags.lookup([TAG]) == "s1-1"
    assert offered(core.step(Inbox(ends=[done(1)]), 10.0)) == ["s1-3"]


def test_a_stop_that_parks_offers_nothing_more() -> None:
    """STP-2: what is taken back stays stored; what was taken ends."""
    core, _ = leading("a", "b", "a")
    core.step(Inbox(taken=[taken(1)]), 2.0)
    core.step(Inbox(stop=StopMode.PARK), 3.0)
    step = core.step(Inbox(recalled=["s1-2"]), 3.5)
    assert offered(step) == []
    assert not core.finished
    step = core.step(Inbox(ends=[done(1)]), 4.0)
    assert offered(step) == []
    assert core.finished
