"""Which waiting run may start, and why another may not: a function of enqueues, ends and releases alone (LCK-5).

The law: each lock is a line of the unreleased runs that want it, in the order they were enqueued. A run is clear on
a lock when nothing stands before it there but held runs of its own signal, and may start when it is clear on all of
its locks (LCK-2, LCK-4). A run that is clear stays clear: new runs join at the tail, and what stands before it can
only be held or leave.

Two facts keep every operation at the cost of the run's own locks (LCK-6). Held runs stand at the head of a line and
are all of one signal, since a run must be clear to start and must start to be held. And at most one run behind them
is clear: the first that is not held, the line's *front*. So whatever leaves, only the fronts of its own lines are
looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Generic, Literal, TypeVar

import attrs

from concorde_trio.errors import UnknownId, UsageError, WrongState

RunT = TypeVar("RunT", bound=Hashable)
SignalT = TypeVar("SignalT", bound=Hashable)


@attrs.frozen(order=True)
class Lock:
    """The name of a lock: sessions and resources are separate name spaces (LCK-1)."""

    space: Literal["session", "resource"]
    name: str

    def __str__(self) -> str:
        return f"{self.space} {self.name}"


@attrs.frozen
class Missing(Generic[RunT]):
    """One lock that a run misses: the nearest run before it there, and how many stand before it in all (LCK-7)."""

    lock: Lock
    blocker: RunT
    position: int


@attrs.frozen
class Why(Generic[RunT]):
    """Why a run may not start (LCK-7).

    ``missing``: each lock it misses, its session first, then its resources in the order they were given; empty when
    the run may start. ``root``: where the chain ends that goes from a run to the blocker of its first missing lock;
    a run that may start or is held, and the run itself when it misses nothing.
    """

    missing: tuple[Missing[RunT], ...]
    root: RunT


@attrs.frozen
class LockView(Generic[RunT]):
    """One lock as it stands: who holds it, and who waits, both in enqueue order.

    ``holders``: held runs, then the run that may start or has started. ``waiting``: the runs that may not start yet;
    the first of them may wait for another lock only, and then there may be no holder. ``more`` wait behind those.
    """

    lock: Lock
    holders: tuple[RunT, ...]
    waiting: tuple[RunT, ...]
    more: int = 0


class _Line:
    """The unreleased runs on one lock, linked head to tail; ``front`` is the first that is not held."""

    __slots__ = ("front", "head", "length", "lines", "name", "tail")

    def __init__(self, lines: dict[str, _Line], name: str, first: _Place) -> None:
        self.lines = lines  # the name space it stands in, and leaves with its last run
        self.name = name
        self.head: _Place | None = first
        self.tail: _Place | None = first
        self.front: _Place | None = first
        self.length = 1


class _Place:
    """Where one run stands in one line."""

    __slots__ = ("after", "before", "entry", "line")

    entry: _Entry
    line: _Line
    before: _Place | None
    after: _Place | None

    def __init__(self, entry: _Entry) -> None:
        self.entry = entry
        self.before = self.after = None


class _Entry(_Place):
    """One run, and its place in its session's line, since every run has one: that spares an object and a step to it.

    ``number``: its place in the order of enqueues. ``others``: its places in the lines of its resources. ``missing``: in
    how many lines it is not clear.
    """

    __slots__ = ("held", "missing", "number", "others", "run", "signal")

    def __init__(self, run: Any, signal: Any, number: int) -> None:
        self.entry = self
        self.before = self.after = None
        self.run = run
        self.signal = signal
        self.number = number
        self.others: tuple[_Place, ...] = ()
        self.missing = 0
        self.held = False

    @property
    def places(self) -> tuple[_Place, ...]:
        """All its places, its session's first."""
        return (self, *self.others)


class LockTable(Generic[RunT, SignalT]):
    """The unreleased runs of a queue and the order they wait in. No I/O, no clock, no randomness.

    Runs and signals are any hashable ids. The order of the ``enqueue`` calls is the order of precedence; a caller
    that holds (``end(hold=True)``) enqueues the runs of a signal next to each other, as LCK-2 orders them, or a run
    could wait for one that waits for that run's own signal. Methods that change something give the runs that may
    start because of it, each exactly once in its life, in enqueue order. Misuse is an UnknownId (no such run here)
    or a WrongState, and changes nothing.
    """

    __slots__ = ("_enqueued", "_entries", "_held", "_resources", "_sessions", "_waiting")

    def __init__(self) -> None:
        self._entries: dict[RunT, _Entry] = {}
        self._held: dict[SignalT, list[_Entry]] = {}
        self._sessions: dict[str, _Line] = {}
        self._resources: dict[str, _Line] = {}
        self._enqueued = 0
        self._waiting = 0

    # --- what changes the table -----------------------------------------------------------------------------

    def enqueue(self, run: RunT, signal: SignalT, *, session: str, resources: Iterable[str] = ()) -> tuple[RunT, ...]:
        """``run`` takes its place behind all others: ``(run,)`` if it may start now, else ``()`` (LCK-2).

        Its locks are its session and each distinct name in ``resources`` (LCK-1).
        """
        if run in self._entries:
            raise WrongState(f"run {run!r} is in the lock table already; a run is enqueued once in its life")
        if not isinstance(session, str):
            raise UsageError(f"session must be a name, not {session!r:.80}; a fresh session has one too (LCK-1)")
        names = _distinct(resources) if resources else None
        self._enqueued = number = self._enqueued + 1
        self._entries[run] = entry = _Entry(run, signal, number)
        missing = 0 if _join(entry, self._sessions, session) else 1
        if names:
            entry.others = tuple([_Place(entry) for _ in names])
            for place, name in zip(entry.others, names, strict=True):
                if not _join(place, self._resources, name):
                    missing += 1
        if missing:
            entry.missing = missing
            self._waiting += 1
            return ()
        return (run,)

    def end(self, run: RunT, *, hold: bool = False) -> tuple[RunT, ...]:
        """``run``, which was permitted to start, has ended: the runs that may start now.

        With ``hold`` its locks stay held until ``release`` of its signal, except to runs of that signal (LCK-4);
        without, they are free now.
        """
        entry = self._entries.get(run) or self._entry(run)
        if entry.held or entry.missing:
            raise WrongState(
                f"run {run!r} cannot end: {'it has ended and is held' if entry.held else 'it may not start yet'}; "
                f"{'release its signal' if entry.held else 'withdraw it'} instead"
            )
        freed: list[_Entry] = []
        if not hold:
            del self._entries[run]
            _leave(entry, freed)
            return self._permit(freed) if freed else ()
        self._held.setdefault(entry.signal, []).append(entry)
        entry.held = True
        for place in entry.places:
            place.line.front = front = place.after
            if front is not None and front.entry.signal == entry.signal:
                _clear(front, freed)
        return self._permit(freed)

    def release(self, signal: SignalT) -> tuple[RunT, ...]:
        """All held runs of ``signal`` let go of their locks: the runs that may start now (``()`` if none is held)."""
        freed: list[_Entry] = []
        for entry in self._held.pop(signal, ()):
            del self._entries[entry.run]
            _leave(entry, freed)
        return self._permit(freed)

    def withdraw(self, run: RunT) -> tuple[RunT, ...]:
        """``run`` leaves without having ended (cancelled, refused), holding nothing: the runs that may start now."""
        entry = self._entry(run)
        if entry.held:
            raise WrongState(f"run {run!r} has ended and is held; release its signal instead")
        del self._entries[run]
        if entry.missing:
            self._waiting -= 1
        freed: list[_Entry] = []
        _leave(entry, freed)
        return self._permit(freed)

    # --- what only looks ------------------------------------------------------------------------------------

    def why(self, run: RunT) -> Why[RunT]:
        """What ``run`` waits for (LCK-7). Costs time in its position and in the length of the chain to the root."""
        return self.why_all((run,))[0]

    def why_all(self, runs: Iterable[RunT]) -> tuple[Why[RunT], ...]:
        """The same for several runs: each line and each chain is walked once for all of them."""
        entries = [self._entry(run) for run in runs]
        places = [[place for place in entry.places if not _is_clear(place)] for entry in entries]
        positions = _positions(place for missed in places for place in missed)
        roots: dict[_Entry, _Entry] = {}
        return tuple(
            Why(
                missing=tuple(_missing(place, positions[place]) for place in missed),
                root=_root(entry, roots).run,
            )
            for entry, missed in zip(entries, places, strict=True)
        )

    @property
    def waiting(self) -> int:
        """How many runs may not start yet."""
        return self._waiting

    def may_start(self, run: RunT) -> bool:
        """Whether ``run`` may start, or has started, and has not ended."""
        entry = self._entry(run)
        return not entry.missing and not entry.held

    def is_held(self, run: RunT) -> bool:
        """Whether ``run`` has ended and holds its locks until its signal is released (LCK-4)."""
        return self._entry(run).held

    def locks(self, shown: int | None = None) -> Iterator[LockView[RunT]]:
        """Every lock that a run in the table has; sessions first, each space in the order the locks were first wanted.

        Of the runs that wait for one, the first ``shown`` are listed and the others counted (None: all are listed). The
        table must not change while this is iterated.
        """
        for name, line in self._sessions.items():
            yield _view(Lock("session", name), line, shown)
        for name, line in self._resources.items():
            yield _view(Lock("resource", name), line, shown)

    def __contains__(self, run: object) -> bool:
        return run in self._entries

    def __len__(self) -> int:
        """How many runs are in the table: waiting, permitted or held."""
        return len(self._entries)

    def __iter__(self) -> Iterator[RunT]:
        """The runs in the table, in enqueue order."""
        return iter(self._entries)

    # --- inside ---------------------------------------------------------------------------------------------

    def _entry(self, run: RunT) -> _Entry:
        try:
            return self._entries[run]
        except KeyError:
            raise UnknownId(f"run {run!r} is not in the lock table: never enqueued, or released already") from None

    def _permit(self, freed: list[_Entry]) -> tuple[RunT, ...]:
        self._waiting -= len(freed)
        if len(freed) > 1:
            freed.sort(key=_number)
        return tuple([entry.run for entry in freed])


def _distinct(resources: Iterable[str]) -> dict[str, None]:
    if isinstance(resources, str):
        raise UsageError(f"resources must be names, not one string: write [{resources!r:.80}]")
    return dict.fromkeys(resources)


def _number(entry: _Entry) -> int:
    return entry.number


def _join(place: _Place, lines: dict[str, _Line], name: str) -> bool:
    """Put ``place`` at the tail of the line of that name; whether it is clear there."""
    line = lines.get(name)
    if line is None:
        lines[name] = place.line = _Line(lines, name, place)
        return True
    before = line.tail
    assert before is not None
    place.line = line
    line.length += 1
    place.before = before
    before.after = line.tail = place
    if line.front is not None:
        return False
    line.front = place
    return bool(before.entry.signal == place.entry.signal)


def _leave(entry: _Entry, freed: list[_Entry]) -> None:
    """Take ``entry`` out of all its lines; runs that miss nothing any more are added to ``freed``."""
    _unlink(entry, freed)
    for place in entry.others:
        _unlink(place, freed)
    del entry.entry, entry.others  # breaks its cycles, so that no garbage collector has to


def _unlink(place: _Place, freed: list[_Entry]) -> None:
    line, before, after = place.line, place.before, place.after
    line.length -= 1
    if before is not None:
        before.after = after
    else:
        line.head = after
        if after is None:
            del line.lines[line.name]
            line.tail = line.front = None  # Its last place would stay in a cycle with it.
            return
    if after is not None:
        after.before = before
    else:
        line.tail = before
    if line.front is place:
        line.front = after
        if after is not None and (before is None or before.entry.signal == after.entry.signal):
            _clear(after, freed)
    elif before is None and line.front is after and after is not None and after.entry.signal != place.entry.signal:
        # The last held run on this lock has left. Had the front been of its signal, it would have been clear before.
        _clear(after, freed)


def _clear(place: _Place, freed: list[_Entry]) -> None:
    """``place`` has become clear."""
    entry = place.entry
    entry.missing -= 1
    if not entry.missing:
        freed.append(entry)


def _is_clear(place: _Place) -> bool:
    before = place.before
    return place.entry.held or (
        place.line.front is place and (before is None or before.entry.signal == place.entry.signal)
    )


def _missing(place: _Place, position: int) -> Missing[Any]:
    """What stands before ``place``, which is not clear; therefore the nearest does block it."""
    assert place.before is not None
    lock = Lock("session" if place is place.entry else "resource", place.line.name)
    return Missing(lock=lock, blocker=place.before.entry.run, position=position)


def _positions(wanted: Iterable[_Place]) -> dict[_Place, int]:
    """How many stand before each of these places; every line is walked once, to the last of them."""
    of_line: dict[_Line, set[_Place]] = {}
    for place in wanted:
        of_line.setdefault(place.line, set()).add(place)
    positions: dict[_Place, int] = {}
    for line, places in of_line.items():
        here, position = line.head, 0
        while places:
            assert here is not None
            if here in places:
                positions[here] = position
                places.remove(here)
            here, position = here.after, position + 1
    return positions


def _root(entry: _Entry, known: dict[_Entry, _Entry]) -> _Entry:
    """The end of the chain from a run to the blocker of its first missing lock; ``known`` are ends found before."""
    passed = []
    while entry.missing and entry not in known:
        passed.append(entry)
        place = next(place for place in entry.places if not _is_clear(place))
        assert place.before is not None
        entry = place.before.entry
    root = known.get(entry, entry)
    known.update(dict.fromkeys(passed, root))
    return root


def _view(lock: Lock, line: _Line, shown: int | None) -> LockView[RunT]:
    holders: list[Any] = []
    waiting: list[Any] = []
    place = line.head
    # Who misses nothing stands at the head; behind the first that waits, everybody does.
    while place is not None and (shown is None or len(waiting) < shown or not place.entry.missing):
        (waiting if place.entry.missing else holders).append(place.entry.run)
        place = place.after
    more = line.length - len(holders) - len(waiting)
    return LockView(lock=lock, holders=tuple(holders), waiting=tuple(waiting), more=more)
