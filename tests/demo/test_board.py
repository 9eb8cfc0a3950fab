"""What the demo shows: states and reasons from events, and a table that fits."""

from __future__ import annotations

import io

import attrs
import pytest
from rich.console import Console

from concorde_trio import events
from concorde_trio._sansio.session_terms import WaitingOn
from concorde_trio.demo.board import Board, short_error
from concorde_trio.demo.errands import MESSAGES
from concorde_trio.demo.screen import Screen
from concorde_trio.messages import CallOutcome, InputState
from concorde_trio.records import RunState, SignalState
from concorde_trio.signals.views import RunView, WaitEdge, WaitView


@attrs.define
class Told:
    """A board, the sentences it told, and who waits for whom."""

    waits: dict[str, WaitView] = attrs.field(factory=dict)
    sentences: list[str] = attrs.field(factory=list)
    waiting: WaitingOn | None = None

    def board(self) -> Board:
        """A board of which purchases and parties have a post phase."""
        return Board(
            self.waits.get,
            {"shopping.asked", "party.planned"},
            lambda row, what: self.sentences.append(f"{row.errand.number} {what}"),
            lambda session: self.waiting,
        )

    def wait(self, run: str, *edges: tuple[str, str, str]) -> None:
        """Let a run wait: (space, name, for which run)."""
        found = tuple(
            WaitEdge(space=space, name=name, blocker=view(blocker), position=1) for space, name, blocker in edges
        )
        self.waits[run] = WaitView(run=view(run), edges=found, root=found[-1].blocker)


def view(run: str) -> RunView:
    """A run as the lock table shows it."""
    return RunView(run_id=run, signal_id="s", session="x", resources=(), state="waiting", since=0.0)


def queued(signal: str, number: int = 1) -> events.Event:
    """A run took its place."""
    return events.RunQueued(at=1.0, run_id=f"{signal}-{number}", signal_id=signal, session="x", resources=())


def ended(signal: str, state: RunState, error: str | None = None) -> events.Event:
    """A run ended, a second after its start."""
    return events.RunEnded(
        at=3.0, run_id=f"{signal}-1", signal_id=signal, session="x", state=state, error=error, started=True
    )


def started(signal: str) -> events.Event:
    """A run started."""
    return events.RunStarted(at=2.0, run_id=f"{signal}-1", signal_id=signal, session="x")


def test_events_that_come_before_the_answer_are_not_lost() -> None:
    """Demo: the worker may claim a signal before the people know its id."""
    board = (told := Told()).board()
    board.take(queued("a"))
    board.take(started("a"))
    assert told.sentences == []
    board.sent(MESSAGES[0], "a")
    assert told.sentences == ['1 writes: "what is missing?"', "1 starts"]
    assert board.rows[0].state == "running"


def test_a_waiting_errand_says_for_whom_and_on_what() -> None:
    """LCK-7: by errand, session and resources together."""
    board = (told := Told()).board()
    for place, signal in ((0, "a"), (1, "b"), (4, "c")):
        board.sent(MESSAGES[place], signal)
        if signal == "c":
            told.wait("c-1", ("session", "ann", "a-1"), ("resource", "kitchen", "a-1"), ("resource", "budget", "b-1"))
        board.take(queued(signal))
    assert board.waits(board.rows[-1]) == "waits for 1 (session, kitchen), 2 (budget)"
    assert told.sentences[-1] == "5 waits for 1 (session, kitchen), 2 (budget)"


def test_an_ended_errand_with_a_post_phase_holds_its_locks_until_its_signal_settles() -> None:
    """LCK-4: and when its post phase was is kept for the timeline."""
    board = Told().board()
    board.sent(MESSAGES[4], "a")
    for event in (queued("a"), started("a"), ended("a", RunState.DONE)):
        board.take(event)
    (row,) = board.rows
    assert (row.state, row.outcome, row.lasted) == ("held", "done", 1.0)
    board.take(events.PostStarted(at=4.0, signal_id="a"))
    board.take(events.PostEnded(at=5.0, signal_id="a", error=None))
    board.take(events.SignalSettled(at=5.0, signal_id="a", kind="shopping.asked", state=SignalState.DONE, error=None))
    assert row.state == "done"
    assert board.posts == {"a": (4.0, 5.0)}


def test_a_message_whose_handle_failed_is_shown_with_its_error() -> None:
    """CLM-5: there is no run to tell of it."""
    board = Told().board()
    board.sent(MESSAGES[0], "a")
    board.take(
        events.SignalSettled(at=2.0, signal_id="a", kind="message.received", state=SignalState.FAILED, error="no words")
    )
    assert (board.rows[0].state, board.ending(board.rows[0])) == ("failed", "failed: no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, ""),
        ("the program '/opt/python' failed: there is no key (exit status 1)", "there is no key"),
        ("usage limit reached: 2,082 of 2,000 tokens; the program was stopped", "2,082 of 2,000 tokens"),
        ("it reached its time limit of 3 s and was stopped", "it reached its time limit of 3 s and was stopped"),
    ],
)
def test_an_error_is_shortened_for_the_table(error: str | None, said: str) -> None:
    """Demo: where the program lies is no news."""
    assert short_error(error) == said


@pytest.mark.parametrize(
    ("width", "height", "table"), [(80, 24, True), (120, 40, True), (80, 20, False), (60, 24, False)]
)
def test_a_table_is_shown_where_it_fits_and_lines_elsewhere(width: int, height: int, table: bool) -> None:
    """Demo: nothing is cut off below, and no line is wider than the terminal."""
    output = io.StringIO()
    console = Console(
        file=output, force_terminal=True, color_system=None, width=width, height=height, _environ={"TERM": "xterm"}
    )
    screen = Screen(console, 13)
    board = Board({}.get, set(), screen.tell)
    with screen.showing():
        for number, message in enumerate(MESSAGES):
            board.sent(message, str(number))
        screen.draw(board, 250)
    shown = output.getvalue()
    assert ("needs alone" in shown) == (table and width >= 100)
    assert ("writes:" in shown) != table
    assert all(message.about in shown for message in MESSAGES)
    if table:
        assert max(len(line) for line in shown.split("\x1b")[-1].splitlines()) <= width
    assert shown.isascii() or table


@pytest.mark.parametrize("folding", [1, 12])
def test_a_long_reason_goes_on_in_the_next_line_while_all_of_it_fits(folding: int) -> None:
    """Demo: 80 columns and 24 lines are enough to read for whom somebody waits; the last errand is always seen."""
    output = io.StringIO()
    console = Console(
        file=output, force_terminal=True, color_system=None, width=80, height=24, _environ={"TERM": "xterm"}
    )
    screen = Screen(console, 13)
    board = (told := Told()).board()
    with screen.showing():
        for number, message in enumerate(MESSAGES):
            board.sent(message, str(number))
            board.take(queued(str(number)))
            if len(MESSAGES) - number <= folding:
                told.wait(
                    f"{number}-1",
                    ("session", "ann", "1-1"),
                    ("resource", "kitchen", "1-1"),
                    ("resource", "budget", "4-1"),
                )
        screen.draw(board, 250)
    shown = " ".join(output.getvalue().split())
    assert ("waits for 2 (session, kitchen), 5 (budget)" in shown) == (folding == 1)
    assert MESSAGES[-1].about in shown and "left in the budget" in shown


def test_a_quiet_screen_shows_nothing() -> None:
    """Demo: --json prints one document and nothing beside it."""
    output = io.StringIO()
    screen = Screen(Console(file=output, force_terminal=True, width=80, height=24), 13, quiet=True)
    board = Board({}.get, set(), screen.tell)
    with screen.showing():
        board.sent(MESSAGES[0], "a")
        screen.draw(board, 250)
    assert output.getvalue() == ""


def test_what_is_said_meanwhile_is_shown_as_queued_and_then_as_one_message() -> None:
    """SES-10, SES-12a: and for what a session at work waits."""
    board = (told := Told()).board()
    board.sent(MESSAGES[0], "a")
    for event in (queued("a"), started("a")):
        board.take(event)
    (row,) = board.rows
    assert board.doing(row) == "running"
    told.waiting = WaitingOn(on="tool", about="shell (call call_1_2)", since=1.25)
    assert board.doing(row) == "running: shell 1.2 s"
    for number, held in ((1, "tool shell (call call_1_2), 2.0 s left"), (2, None)):
        board.says(f"ann-{number}", "Milk!")
        board.take(events.InputAccepted(at=2.5, session="x", input_id=f"ann-{number}", queued=number, waits_for=held))
    assert told.sentences[-2:] == [
        '1 is told meanwhile: "Milk!" (1 queued, held by tool shell)',
        '1 is told meanwhile: "Milk!" (2 queued, held by nothing)',
    ]
    assert board.doing(row) == "running: shell 1.2 s, 2 queued"
    for number in (1, 2):
        board.take(events.InputSettled(at=2.6, session="x", input_id=f"ann-{number}", state=InputState.DELIVERED))
    board.take(events.ModelRequested(at=2.6, session="x", epoch=2, purpose="turn", attempt=1))
    assert told.sentences[-1] == "1 gets 2 queued inputs as one message"
    told.waiting = WaitingOn(on="model", about="a script", since=0.0)
    assert board.doing(row) == "running: the model 0.0 s"


def test_tool_calls_are_told_of_the_errand_that_makes_them() -> None:
    """Demo: an event of a session that no errand uses now is nobody's."""
    board = (told := Told()).board()
    call = events.CallStarted(at=2.1, session="x", call_id="c", tool="shell", kind="execute")
    board.take(call)
    board.sent(MESSAGES[0], "a")
    for event in (queued("a"), started("a"), call):
        board.take(event)
    board.take(events.CallEnded(at=2.2, session="x", call_id="c", tool="shell", outcome=CallOutcome.TIMEOUT))
    assert told.sentences[-2:] == ["1 runs shell", "1 shell: timeout"]
    board.take(ended("a", RunState.DONE))
    board.take(call)
    assert told.sentences[-1].startswith("1 done")
