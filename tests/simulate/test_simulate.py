"""Playing scenarios: exact times, what goes beyond the shared cases, and what must not happen to its caller."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
import trio

from concorde_trio.errors import InternalError, InvalidScenario, UsageError
from concorde_trio.signals.driver import Driver
from concorde_trio.simulate import simulate


def scenario(*signals: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"signals": [{"id": f"s{n}", "kind": "task", "at": 0} | signal for n, signal in enumerate(signals)]} | more


def run(name: str, session: str | None = "ann", duration: float = 1, **more: Any) -> dict[str, Any]:
    return {"id": name, "session": session, "duration": duration} | more


def times(result: dict[str, Any], name: str) -> tuple[float | None, float | None, float | None]:
    found = result["runs"][name]
    return found["queued"], found["started"], found["ended"]


def test_decimal_times_that_meet_on_paper_meet_in_the_play() -> None:
    """LCK-5: as floats, 0.1 + 0.2 is later than 0.3, and the order of this tie would be lost."""
    result = simulate(
        scenario(
            {"prompts": [run("a", "x", 0.1), run("b", "x", 0.2)]},
            {"prompts": [run("c", "y", 0.3), run("d", "y", 0.1)]},
            {"prompts": [run("e", "x", 0)]},
        )
    )
    assert times(result, "b") == (0.0, 0.1, 0.3)
    assert times(result, "c") == (0.0, 0.0, 0.3)
    assert times(result, "d") == (0.0, 0.3, 0.4)
    assert result["start_order"] == ["a", "c", "b", "d", "e"]


def test_times_too_fine_for_ticks_are_played_as_floats() -> None:
    """A third of a second has no exact decimal, and is played all the same."""
    result = simulate(scenario({"prompts": [run("a", duration=1 / 3)]}))
    assert times(result, "a") == (0.0, 0.0, 1 / 3)


def test_a_play_of_years_takes_no_time() -> None:
    """The clock is virtual, and nothing of the worker ticks meanwhile."""
    result = simulate(scenario({"at": 9e8, "prompts": [run("a", duration=0.000001)]}))
    assert times(result, "a") == (9e8, 9e8, 900000000.000001)


def test_one_kind_may_have_signals_with_and_without_a_post_phase() -> None:
    """CLM-3: one kind has one handler; a scenario need not care."""
    result = simulate(scenario({"prompts": [run("a")], "post": 1}, {"prompts": [run("b")]}, {"post": 2}))
    assert times(result, "b") == (0.0, 2.0, 3.0)
    assert result["signals"]["s0"] == {
        "state": "done",
        "settled": 2.0,
        "post": {"started": 1.0, "failed": False, "limited": False},
    }
    assert result["signals"]["s1"]["post"] is None
    assert result["signals"]["s2"]["settled"] == 2.0


def test_max_running_lets_runs_wait_for_a_place() -> None:
    """LCK-3: in emission order, and a held run takes no place."""
    result = simulate(
        scenario(
            {"prompts": [run("a", "x", 2)], "post": 5},
            {"prompts": [run("b", "y", 1)]},
            {"prompts": [run("c", "z", 1)]},
            max_running=1,
        )
    )
    assert [times(result, name)[1] for name in "abc"] == [0.0, 2.0, 3.0]


def test_a_time_limit_fails_a_run_unless_it_ends_in_the_same_instant() -> None:
    """RUN-6: an outcome returned in the same instant counts."""
    result = simulate(
        scenario({"prompts": [run("a", "x", 5, time_limit=2), run("b", "y", 2, time_limit=2), run("c", "z", 1)]})
    )
    assert [result["runs"][name]["state"] for name in "abc"] == ["failed", "done", "done"]
    assert times(result, "a") == (0.0, 0.0, 2.0)


def test_a_bad_tag_fails_its_run_as_it_is_queued() -> None:
    """TAG-6: it is no bad scenario."""
    result = simulate(scenario({"prompts": [run("a"), run("b", tag="short")]}))
    assert result["runs"]["b"] == {"state": "failed", "queued": 0.0, "started": None, "ended": 0.0}


def test_a_fresh_session_can_be_continued_by_its_name() -> None:
    """LCK-1: then it is a lock like any other."""
    result = simulate(
        scenario(
            {"prompts": [run("a", None, 3)]},
            {"prompts": [run("b", "run_a", 1)]},
            {"prompts": [run("c", "run_c", 1)]},
        )
    )
    assert times(result, "b") == (0.0, 3.0, 4.0)
    assert times(result, "c") == (0.0, 0.0, 1.0)


def test_a_park_leaves_what_has_not_started() -> None:
    """STP-2: its run is pending and its signal processing."""
    result = simulate(scenario({"prompts": [run("a", duration=4), run("b")]}, stop={"at": 1, "mode": "park"}))
    assert times(result, "a") == (0.0, 0.0, 4.0)
    assert result["runs"]["b"] == {"state": "pending", "queued": 0.0, "started": None, "ended": None}
    assert result["signals"]["s0"] == {"state": "processing", "settled": None, "post": None}


def test_a_cancelling_stop_ends_what_runs_at_once() -> None:
    """STP-3: a post that had not begun is left to the next start."""
    result = simulate(
        scenario(
            {"prompts": [run("a", duration=4)]},
            {"prompts": [run("b", "bob", 4)], "post": 1},
            {"at": 2},
            stop={"at": 1.5, "mode": "cancel"},
        )
    )
    assert result["runs"]["a"]["state"] == result["runs"]["b"]["state"] == "cancelled"
    assert result["signals"]["s0"] == {"state": "failed", "settled": 1.5, "post": None}
    assert result["signals"]["s1"] == {"state": "processing", "settled": None, "post": None}
    assert result["signals"]["s2"]["state"] == "pending"


def test_a_post_that_outlasts_the_grace_of_a_cancelling_stop_ends_no_play_late() -> None:
    """STP-3: it may finish within ten seconds."""
    result = simulate(scenario({"post": 9.5}, {"post": 300}, stop={"at": 1, "mode": "cancel"}))
    assert result["signals"]["s0"]["settled"] == 9.5
    assert result["signals"]["s1"]["state"] == "processing"


def test_an_empty_scenario_is_over_at_once() -> None:
    """With and without a stop that comes later."""
    nothing = {"runs": {}, "signals": {}, "start_order": []}
    assert simulate({"signals": []}) == nothing
    assert simulate({"signals": [], "stop": {"at": 5, "mode": "drain"}}) == nothing


def test_a_scenario_is_not_changed_by_playing_it() -> None:
    """The caller's own."""
    given = scenario({"prompts": [run("a", None, resources=["w", "w"])]})
    simulate(given)
    assert given == scenario({"prompts": [run("a", None, resources=["w", "w"])]})


async def test_inside_trio_it_says_how_to_call_it() -> None:
    """It has a clock of its own."""
    with pytest.raises(UsageError, match="to_thread.run_sync"):
        simulate(scenario())
    result = await trio.to_thread.run_sync(simulate, scenario({"prompts": [run("a")]}))
    assert result["start_order"] == ["a"]


async def test_inside_trio_a_bad_scenario_is_refused_as_one() -> None:
    """The nearer fault first."""
    with pytest.raises(InvalidScenario):
        simulate({})


def test_scripted_failures_are_not_logged_and_others_are(caplog: pytest.LogCaptureFixture) -> None:
    """A worker in another thread keeps its voice."""
    logger = logging.getLogger("concorde_trio.worker")
    failing = scenario({"fail_handle": True}, {"post": 1, "fail_post": True}, {"prompts": [run("a", outcome="fail")]})
    seen: list[int] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(threading.get_ident())

    listening = Listening()
    logger.addHandler(listening)
    try:
        simulate(failing)
        assert seen == []
        logger.warning("after the play")
        assert seen == [threading.get_ident()]
    finally:
        logger.removeHandler(listening)
    assert [record.message for record in caplog.records] == ["after the play"]


def test_a_worker_that_never_ends_does_not_hang_the_play(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours must be an error: here the worker never hears of an end."""
    monkeypatch.setattr(Driver, "run_over", lambda *_: None)
    with pytest.raises(InternalError, match=r"in the seconds it can take; not settled: 's0'"):
        simulate(scenario({"prompts": [run("a")]}))


def test_a_worker_that_turns_in_circles_does_not_hang_the_play(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours must be an error: here the worker is woken for ever."""

    async def turn(driver: Driver) -> None:
        driver.changed()
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(Driver, "_wait", turn)
    monkeypatch.setattr(Driver, "run_over", lambda *_: None)
    with pytest.raises(InternalError, match=r"in the steps it can take"):
        simulate(scenario({"prompts": [run("a")]}))
