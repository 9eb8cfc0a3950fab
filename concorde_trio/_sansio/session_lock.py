"""What holds a session, how long each hold may last, and who may end it: leases, tool registrations, the sweep.

The law: every hold is bounded, and time alone ends nothing: an expired hold stays held until ``sweep_expired`` takes it
(LSE-2). Every hold has a number that no other hold of the session ever had, and whoever moves or ends one names the
number it saw; a stale number changes nothing and is told so (LSE-11). The only times are those of the clock that was
passed in, a callable that gives monotonic seconds (LSE-10).

What is looked at and decided in one call is decided by one reading of that clock. Tools wait in a heap by deadline, so
that a sweep costs time in what expired and the logarithm of what is registered.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal

import attrs

from concorde_trio._sansio.holds import (
    LLM,
    LLM_CEILING,
    SUMMARIZING,
    SUMMARIZING_CEILING,
    Acquired,
    Expired,
    ExpiredLease,
    ExpiredTool,
    Lease,
    ToolRegistration,
)
from concorde_trio.errors import UsageError, WrongState

_SHOWN = 80  # characters of a name that a model made up


class SessionLock:
    """Everything that holds one session (LSE-1). No I/O, no clock of its own, no randomness.

    ``clock`` gives monotonic seconds. ``last_epoch`` and ``last_registration`` are the last numbers that this session
    has used, 0 for a new one: with what ``last_epoch`` and ``last_registration`` told before a restart, no hold is
    ever mistaken for one of an earlier process (LSE-5). Store them before what they name is sent out.

    A hold that has expired can still be touched or ended until a sweep takes it. Whoever wants what comes at or after
    a deadline to be late sweeps before it looks at what came (LSE-2).

    Misuse is a UsageError or a WrongState, and changes nothing.
    """

    __slots__ = ("_clock", "_due", "_epoch", "_llm", "_registration", "_summarizing", "_tools")

    def __init__(self, clock: Callable[[], float], *, last_epoch: int = 0, last_registration: int = 0) -> None:
        if not callable(clock):
            raise UsageError(
                f"clock must be a callable that gives monotonic seconds, such as trio.current_time, not {clock!r:.80}"
            )
        self._clock = clock
        self._epoch = _used(last_epoch, "last_epoch")
        self._registration = _used(last_registration, "last_registration")
        self._llm: Lease | None = None
        self._summarizing: Lease | None = None
        self._tools: dict[str, ToolRegistration] = {}  # in order of registration
        # (deadline, registration, call_id) of all of them, and of some that have left.
        self._due: list[tuple[float, int, str]] = []

    # --- what holds -----------------------------------------------------------------------------------------

    def is_locked(self) -> bool:
        """Whether anything is held, expired holds that no sweep has taken included (LSE-1, LSE-2)."""
        return self._llm is not None or self._summarizing is not None or bool(self._tools)

    def at_tool_boundary(self) -> bool:
        """Whether nothing is held (LSE-1)."""
        return not self.is_locked()

    @property
    def llm(self) -> Lease | None:
        """The lease of the model request that is out, None if none is."""
        return self._llm

    @property
    def summarizing(self) -> Lease | None:
        """The lease of the summary request that is out, None if none is."""
        return self._summarizing

    @property
    def active_tools(self) -> Mapping[str, ToolRegistration]:
        """The registered tool calls by call_id, in order of registration: a live view that cannot be written to."""
        return MappingProxyType(self._tools)

    @property
    def last_epoch(self) -> int:
        """The epoch of the latest lease that was granted, 0 if none ever was (LSE-5)."""
        return self._epoch

    @property
    def last_registration(self) -> int:
        """The number of the latest tool registration, 0 if there never was one."""
        return self._registration

    def epoch_is_current(self, epoch: object) -> bool:
        """Whether a held lease has this epoch (LSE-5). What is no epoch at all is not current either."""
        return _names(self._llm, epoch) or _names(self._summarizing, epoch)

    # --- the model request ----------------------------------------------------------------------------------

    def try_acquire_llm(self, timeout: float = LLM, *, ceiling: float | None = LLM_CEILING) -> int | None:
        """The epoch of a new lease for a model request, None if a request is out (LSE-4).

        ``timeout``: seconds without progress; ``ceiling``: seconds in all, None for no ceiling.
        """
        _check_seconds(timeout, ceiling)
        if self._llm is not None:
            return None
        self._llm = lease = self._grant(timeout, ceiling)
        return lease.epoch

    def acquire_or_current_llm(self, timeout: float = LLM, *, ceiling: float | None = LLM_CEILING) -> Acquired:
        """The lease that is held, as it is, or a new one; ``taken`` says which (LSE-4). Only its taker releases it."""
        _check_seconds(timeout, ceiling)
        if self._llm is not None:
            return Acquired(self._llm.epoch, False)
        self._llm = lease = self._grant(timeout, ceiling)
        return Acquired(lease.epoch, True)

    def touch_llm(self, epoch: int) -> bool:
        """The request of this epoch has moved: its timeout counts from now (LSE-3). False: it holds nothing any more.

        Call it when text, reasoning or call arguments grew, and for nothing less. The ceiling stays where it is.
        """
        lease = self._llm
        if lease is None or not _names(lease, epoch):
            return False
        self._llm = _moved(lease, self._clock())
        return True

    def release_llm(self, epoch: int) -> bool:
        """The request of this epoch is over. False, and nothing changes, if it held nothing any more (LSE-11)."""
        if not _names(self._llm, epoch):
            return False
        self._llm = None
        return True

    def force_release_llm(self) -> Lease | None:
        """Whatever request is out is over: for interrupt and close only (LSE-4). The lease that ended, if any."""
        lease, self._llm = self._llm, None
        return lease

    # --- the summary request --------------------------------------------------------------------------------

    def set_summarizing(self, timeout: float = SUMMARIZING, *, ceiling: float | None = SUMMARIZING_CEILING) -> int:
        """The epoch of a new lease for a summary request (LSE-4); WrongState if one is out, for they go one by one."""
        _check_seconds(timeout, ceiling)
        if self._summarizing is not None:
            raise WrongState(
                f"a summary request is out already (epoch {self._summarizing.epoch}); summaries are made one after "
                f"another: clear_summarizing({self._summarizing.epoch}), or sweep if it has expired, then set the next"
            )
        self._summarizing = lease = self._grant(timeout, ceiling)
        return lease.epoch

    def touch_summarizing(self, epoch: int) -> bool:
        """As ``touch_llm``, for the summary request (LSE-3)."""
        lease = self._summarizing
        if lease is None or not _names(lease, epoch):
            return False
        self._summarizing = _moved(lease, self._clock())
        return True

    def clear_summarizing(self, epoch: int) -> bool:
        """The summary request of this epoch is over. False, and nothing changes, if it held nothing (LSE-11)."""
        if not _names(self._summarizing, epoch):
            return False
        self._summarizing = None
        return True

    # --- tools ----------------------------------------------------------------------------------------------

    def register_tool(self, call_id: str, tool_name: str, timeout: float) -> ToolRegistration:
        """The call is out, for at most ``timeout`` seconds from now (LSE-6). WrongState if this call_id is live."""
        if not isinstance(call_id, str) or not isinstance(tool_name, str):
            raise UsageError(f"call_id and tool_name must be strings, not {call_id!r:.80} and {tool_name!r:.80}")
        _check_seconds(timeout, None)
        if (live := self._tools.get(call_id)) is not None:
            raise WrongState(
                f"call {call_id!r:.80} is registered already, for {live.tool_name!r:.80}; a call_id names one live call: "
                f"complete_tool({call_id!r:.80}) first"
            )
        tool = ToolRegistration(call_id, tool_name, self._registration + 1, self._clock(), timeout)
        self._registration = tool.registration
        self._tools[call_id] = tool
        heapq.heappush(self._due, (tool.deadline, tool.registration, call_id))
        return tool

    def complete_tool(self, call_id: str, registration: int | None = None) -> ToolRegistration | None:
        """The call is over: its registration, which is held no more; None, and nothing changes, if there is none.

        Whoever saw the call registered names that ``registration``: a later one of the same call_id is not its to end
        (LSE-11). Without it, whichever is live is meant (LSE-6).
        """
        tool = self._seen(call_id, registration)
        if tool is not None:
            del self._tools[call_id]
            self._forget_left()
        return tool

    def set_exec_kind(self, call_id: str, kind: str, registration: int | None = None) -> ToolRegistration | None:
        """Attach the policy class decided at dispatch: the registration as it is now, None if there is none (LSE-6).

        It holds for every continuation of the call, so another one later is a WrongState.
        """
        if not isinstance(kind, str) or not kind:
            raise UsageError(f"an exec kind must be a word such as 'read' or 'execute', not {kind!r:.80}")
        tool = self._seen(call_id, registration)
        if tool is None or tool.exec_kind == kind:
            return tool
        if tool.exec_kind is not None:
            raise WrongState(
                f"call {call_id!r:.80} was dispatched as {tool.exec_kind!r:.80} and cannot become {kind!r:.80}; the kind "
                f"decided at dispatch holds until the call is over"
            )
        self._tools[call_id] = tool = attrs.evolve(tool, exec_kind=kind)
        return tool

    def release_all_tools(self) -> tuple[ToolRegistration, ...]:
        """Every call is waited for no more: their registrations, in order of registration (LSE-6)."""
        tools = tuple(self._tools.values())
        self._tools.clear()
        self._due.clear()
        return tools

    # --- time -----------------------------------------------------------------------------------------------

    def sweep_expired(self) -> tuple[Expired, ...]:
        """Take every hold whose deadline has come, as of now: what was taken, in the order to settle it (LSE-7).

        The LLM lease, the summarizing lease, tools by deadline and then registration. Whatever moved or ended since
        somebody saw it expired is not among them (LSE-11).
        """
        now = self._clock()
        expired: list[Expired] = []
        if (lease := self._llm) is not None and now >= lease.deadline:
            self._llm = None
            expired.append(_expired("llm", lease, now))
        if (lease := self._summarizing) is not None and now >= lease.deadline:
            self._summarizing = None
            expired.append(_expired("summarizing", lease, now))
        due = self._due
        while due and due[0][0] <= now:
            _, registration, call_id = heapq.heappop(due)
            if (tool := self._seen(call_id, registration)) is not None:
                del self._tools[call_id]
                expired.append(ExpiredTool(tool, now - tool.started_at))
        return tuple(expired)

    def expire(self, epoch: int) -> ExpiredLease | None:
        """The work of this lease was ended by its deadline elsewhere (SES-3): take the lease, whatever moved it since.

        What was taken, as a sweep tells it; None, and nothing changes, if the epoch holds nothing any more (LSE-11).
        """
        now = self._clock()
        if (lease := self._llm) is not None and _names(lease, epoch):
            self._llm = None
            return _expired("llm", lease, now)
        if (lease := self._summarizing) is not None and _names(lease, epoch):
            self._summarizing = None
            return _expired("summarizing", lease, now)
        return None

    def expire_tool(self, call_id: str, registration: int) -> ExpiredTool | None:
        """The same for a tool call."""
        tool = self.complete_tool(call_id, registration)
        return None if tool is None else ExpiredTool(tool, self._clock() - tool.started_at)

    def next_deadline(self) -> float:
        """When the next hold expires, on the lock's clock; infinity if nothing is held (LSE-8)."""
        due = self._due
        while due and self._seen(due[0][2], due[0][1]) is None:
            heapq.heappop(due)
        deadline = due[0][0] if due else math.inf
        for lease in (self._llm, self._summarizing):
            if lease is not None:
                deadline = min(deadline, lease.deadline)
        return deadline

    def hold_summary(self) -> str:
        """One line: what holds the session, for how long, and how long each hold has left (LSE-8).

        It names tools and calls as the model wrote them, with what cannot be printed escaped and what is long cut.
        """
        return "; ".join(self._said(self._clock())) or "nothing holds the session"

    # --- inside ---------------------------------------------------------------------------------------------

    def _grant(self, timeout: float, ceiling: float | None) -> Lease:
        now = self._clock()
        self._epoch += 1
        return Lease(self._epoch, now, now, timeout, ceiling)

    def _seen(self, call_id: str, registration: int | None) -> ToolRegistration | None:
        tool = self._tools.get(call_id)
        if tool is None or registration is None:
            return tool
        return tool if tool.registration == registration and type(registration) is int else None

    def _forget_left(self) -> None:
        """Keep the heap in proportion to what is registered, whatever long deadlines were completed early."""
        if not self._tools:
            self._due.clear()
        elif len(self._due) > 2 * len(self._tools) + 16:
            self._due = [(tool.deadline, tool.registration, tool.call_id) for tool in self._tools.values()]
            heapq.heapify(self._due)

    def _said(self, now: float) -> Iterator[str]:
        for kind, lease in (("llm", self._llm), ("summarizing", self._summarizing)):
            if lease is not None:
                held = f"{kind} (epoch {lease.epoch}) for {now - lease.acquired_at:.1f} s"
                if lease.started_at > lease.acquired_at:
                    held += f", last progress {now - lease.started_at:.1f} s ago"
                yield f"{held}, {_left(lease, now)}"
        for tool in self._tools.values():
            name, call = _shown(tool.tool_name), _shown(tool.call_id)
            yield f"tool {name} (call {call}) for {now - tool.started_at:.1f} s, {_left(tool, now)}"


def _names(lease: Lease | None, epoch: object) -> bool:
    """Whether ``epoch``, which may have come back from a host as anything, is that of this lease."""
    return lease is not None and lease.epoch == epoch and type(epoch) is int


def _moved(lease: Lease, now: float) -> Lease:
    return Lease(lease.epoch, lease.acquired_at, now, lease.timeout, lease.ceiling)


def _expired(kind: Literal["llm", "summarizing"], lease: Lease, now: float) -> ExpiredLease:
    since = lease.started_at if lease.bound == "progress" else lease.acquired_at
    return ExpiredLease(kind, lease, now - since, lease.bound)


def _left(hold: Lease | ToolRegistration, now: float) -> str:
    left = hold.deadline - now
    return f"{left:.1f} s left" if left > 0 else f"expired {-left:.1f} s ago"


def _shown(name: str) -> str:
    printable = name if name.isprintable() else repr(name)[1:-1]
    return printable if len(printable) <= _SHOWN else printable[: _SHOWN - 1] + "…"


def _check_seconds(timeout: float, ceiling: float | None) -> None:
    if not _bounded(timeout):
        raise UsageError(f"a timeout must be seconds above 0, for every hold is bounded, not {timeout!r:.80}")
    if ceiling is not None and not _bounded(ceiling):
        raise UsageError(f"a ceiling must be seconds above 0, or None for no ceiling, not {ceiling!r:.80}")


def _bounded(seconds: object) -> bool:
    return (type(seconds) is float or (isinstance(seconds, int | float) and type(seconds) is not bool)) and (
        0 < seconds < math.inf
    )


def _used(number: object, what: str) -> int:
    if type(number) is not int or number < 0:
        raise UsageError(f"{what} must be the last number this session used, 0 if none, not {number!r:.80}")
    return number
