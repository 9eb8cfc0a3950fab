"""One turn of an agent called pi, driven over its RPC protocol: records in, commands out.

The law, for every version of pi that was tried (0.73 to 1.6):

- Nothing is prompted before pi has said that it is in the session file that was asked for.
- A turn is over when pi says that it is idle after its ``agent_end``: more may come after that event (a retry, a
  compaction), ``agent_settled`` is not in every version, and an ``agent_end`` of an earlier turn is none of ours.
- The outcome is the stop reason of the last reply. Usage is counted where a reply ends, once, and nowhere else, for pi repeats
  each message several times.
- What shows that the turn moved is progress (LSE-3): text or arguments that grew, a step that began or ended.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from concorde_trio._sansio.lines import Line, parse_line
from concorde_trio._sansio.pi_reply import GOOD, PiReply, last_reply, read_reply, total
from concorde_trio.records import JSON, RunOutcome, Usage

Command: TypeAlias = dict[str, Any]
"""One command to be sent to pi."""

_TYPE = re.compile(r'\{"type":"(agent_end|turn_end|message_update|tool_execution_update|tool_execution_end)"')
_STEPS = frozenset(
    [
        "agent_start",
        "turn_start",
        "turn_end",
        "agent_end",
        "message_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "auto_retry_start",
        "auto_retry_end",
        "compaction_start",
        "compaction_end",
        "agent_settled",
    ]
)
_QUESTIONS = ("select", "confirm", "input", "editor")


class PiPhase(enum.Enum):
    """How far a turn is; a phase never comes back to an earlier one, but for WORKING and SETTLING."""

    NEW = "new"
    SWITCHING = "switching to its session"
    CHECKING = "checking its session"
    PROMPTING = "prompting"
    WORKING = "working"
    SETTLING = "settling"
    ABORTING = "aborting"
    OVER = "over"


class PiTurn:
    """The turn of one run. ``session_file``: the absolute path as pi sees it. ``text``: the prompt.

    ``usage_limit``: tokens, as in RunPrompt. ``usage_told``: the model server tells usage with every whole reply; then one
    without is one that was cut off (pi 0.73 takes it for whole).
    """

    def __init__(
        self, session_file: str, text: str, *, usage_limit: int | None = None, usage_told: bool = True
    ) -> None:
        self.phase = PiPhase.NEW
        self.usage: Usage | None = None
        self.problem: str | None = None
        """Why the turn cannot go on, None as long as it can."""
        self.limited: str | None = None
        """That its usage limit ended it, None if it did not."""
        self.progress = 0
        """Grows with every record that is progress."""
        self.tools: dict[str, str] = {}
        """The names of the tools that are at work, by call."""
        self._session_file = session_file
        self._text = text
        self._usage_limit = usage_limit
        self._usage_told = usage_told
        self._number = 0
        self._asked: dict[str, str] = {}  # commands without an answer, by id
        self._barrier: str | None = None  # the get_state whose answer tells whether pi is idle
        self._idle_needed = 1  # answers in a row that say so
        self._busy = False  # its last answer in this phase said that it is not
        self._replying = False  # a reply has begun and not ended: one that ends twice counts once
        self._looping = False  # between agent_start and agent_end
        self._started = False  # there was an agent_start since we prompted
        self._reply: PiReply | None = None
        self._seen: dict[str, Any] = {}  # the last output of each tool at work

    @property
    def waiting_for(self) -> str:
        """What is to come next, in words."""
        if self._busy and self.phase is PiPhase.SETTLING:
            return "it to be idle"
        if self.tools and self.phase in (PiPhase.WORKING, PiPhase.ABORTING):
            return "the tool " + ", ".join(sorted(set(self.tools.values())))
        if self._answering:
            return f"its answer to {self._answering}"
        return "its model"

    @property
    def for_an_answer(self) -> bool:
        """It owes us an answer that needs no model and no tool."""
        return self.phase in (PiPhase.SWITCHING, PiPhase.CHECKING, PiPhase.ABORTING) or (
            self.phase is PiPhase.SETTLING and not self._busy
        )

    @property
    def _answering(self) -> str | None:
        return next(iter(self._asked.values()), None)

    @property
    def abortable(self) -> bool:
        """It was prompted, and is not known to be idle."""
        return self.phase in (PiPhase.PROMPTING, PiPhase.WORKING, PiPhase.SETTLING)

    @property
    def text(self) -> str | None:
        """The last reply's text."""
        return None if self._reply is None else self._reply.text

    def begin(self) -> list[Command]:
        """The first command."""
        self.phase = PiPhase.SWITCHING
        return [self._command("switch_session", sessionPath=self._session_file)]

    def abort(self) -> list[Command]:
        """End the turn before its time; over with pi's answer. Nothing if there is no turn to end."""
        if not self.abortable:
            return []
        self.phase = PiPhase.ABORTING
        self._asked.clear()
        self._barrier = None
        return [self._command("abort")]

    def fail(self, problem: str) -> list[Command]:
        """The turn can't go on, and is aborted if it has begun; the first reason counts."""
        if self.problem is None and self.phase is not PiPhase.OVER:
            self.problem = problem
        if self.phase is PiPhase.ABORTING:
            return []
        if self.abortable:
            return self.abort()
        self.phase = PiPhase.OVER
        return []

    def lost(self, why: str) -> None:
        """pi is gone. That fails the turn, unless its last reply was whole, and only that pi is idle was still to be said."""
        if self.phase is PiPhase.SETTLING and self._started and not self._looping and self._fault() is None:
            self.phase = PiPhase.OVER
        else:
            self.fail(why)

    def ask_again(self) -> list[Command]:
        """Ask whether pi is idle, if it was not when it was last asked."""
        if self.phase is not PiPhase.SETTLING or self._barrier is not None:
            return []
        command = self._command("get_state")
        self._barrier = command["id"]
        return [command]

    def take_line(self, line: Line) -> list[Command]:
        """The next line of pi's output. One that is too long to be kept counts by its type alone, where that is enough."""
        if line.over_long and (found := _TYPE.match(line.text)):
            return self.take({"type": found[1], "size": line.size})
        parsed = parse_line(line)
        if parsed is None:
            return []
        if parsed.record is None:
            return self.fail(f"it said what cannot be read: {parsed.unreadable}")
        return self.take(parsed.record)

    def take(self, record: Mapping[str, JSON]) -> list[Command]:
        """The next record of pi's; what is to be sent because of it."""
        kind = record.get("type")
        if kind == "response":
            return self._answered(record)
        if kind == "extension_ui_request":
            if record.get("method") in _QUESTIONS:  # it waits for a person, and there is none
                return [{"type": "extension_ui_response", "id": record.get("id"), "cancelled": True}]
            return []
        if not isinstance(kind, str) or not (self.abortable or self.phase is PiPhase.ABORTING):
            return []  # of a turn that is not ours
        if self._moved(kind, record):
            self.progress += 1
        return self._happened(kind, record)

    def outcome(self) -> RunOutcome:
        """What became of it: by its limit, by what went wrong, by its last reply."""
        if self.limited is not None:
            return RunOutcome.limited(self.limited, text=self.text, usage=self.usage)
        problem = self.problem or self._fault()
        if problem is not None:
            return RunOutcome.failed(problem, text=self.text, usage=self.usage)
        return RunOutcome.ok(self.text, usage=self.usage)

    def _fault(self) -> str | None:
        reply = self._reply
        if reply is None:
            hint = ": it took the text, which begins with '/', as a command of its own" if self._text[:1] == "/" else ""
            return f"its turn ended without a reply of the model{hint}"
        if reply.stop_reason in GOOD:
            if self._usage_told and reply.usage is None and reply.stop_reason == "stop":
                return (
                    "its last reply came without usage, so it was probably cut off (pi 0.73 does not notice); "
                    "if this model server never tells usage, say PiRuntime(usage_told=False)"
                )
            return None
        if reply.stop_reason == "aborted":
            return f"its turn was aborted, and not by us{_because(reply)}"
        if reply.stop_reason == "toolUse":
            return f"its turn ended with a tool call and without an answer{_because(reply)}"
        return reply.error or f"its last reply ended with the stop reason {reply.stop_reason!r:.80}"

    def _command(self, kind: str, **arguments: JSON) -> Command:
        self._number += 1
        id = f"concorde-{self._number}"
        self._asked[id] = kind
        return {"id": id, "type": kind, **arguments}

    def _answered(self, record: Mapping[str, JSON]) -> list[Command]:
        id = record.get("id")
        kind = self._asked.pop(id, None) if isinstance(id, str) else None
        good = record.get("success") is True
        if kind is None:
            if not good and self._asked and id is None and record.get("command") in ("parse", *self._asked.values()):
                return self.fail(f"it refused {record.get('command')}: {_error(record)}")
            return []  # a second answer, or one to somebody else
        if id != self._barrier:  # that it is still busy is no progress
            self.progress += 1
        if kind == "abort":
            self.phase = PiPhase.OVER
            return []
        if not good:
            if kind == "prompt" and not self._started:
                self.phase = PiPhase.CHECKING  # nothing runs that could be aborted
            return self.fail(f"it refused {kind}: {_error(record)}")
        data = record.get("data")
        data = data if isinstance(data, dict) else {}
        if kind == "switch_session":
            if data.get("cancelled"):
                return self.fail("it refused switch_session: an extension of it cancelled that")
            self.phase = PiPhase.CHECKING
            return [self._command("get_state")]
        if kind == "prompt":
            return self._settle(idle_needed=2) if self.phase is PiPhase.PROMPTING else []
        if self.phase is PiPhase.CHECKING:
            return self._checked(data)
        if id == self._barrier:
            return self._idle(data)
        return []

    def _checked(self, state: Mapping[str, Any]) -> list[Command]:
        if state.get("sessionFile") != self._session_file:
            return self.fail(
                f"it is in the session {state.get('sessionFile')!r:.300}, though it was asked for "
                f"{self._session_file!r}; it was not prompted"
            )
        if not _is_idle(state):
            return self.fail("it is at work already; each connection must get a pi of its own. It was not prompted")
        self.phase = PiPhase.PROMPTING
        return [self._command("prompt", message=self._text)]

    def _idle(self, state: Mapping[str, Any]) -> list[Command]:
        self._barrier = None
        self._busy = not _is_idle(state)
        if self.phase is PiPhase.SETTLING and not self._busy:
            self._idle_needed -= 1
            if self._idle_needed <= 0:
                self.phase = PiPhase.OVER
        return []

    def _settle(self, idle_needed: int) -> list[Command]:
        self.phase = PiPhase.SETTLING
        self._barrier = None
        self._busy = False
        self._idle_needed = idle_needed
        return self.ask_again()

    def _moved(self, kind: str, record: Mapping[str, Any]) -> bool:
        if kind == "message_update":
            event = record.get("assistantMessageEvent")
            if isinstance(event, dict):
                return str(event.get("type", "")).endswith("_delta") and bool(event.get("delta"))
            return self._changed("reply", record.get("size"))
        if kind == "tool_execution_update":
            call = str(record.get("toolCallId"))
            known = call in self.tools or "size" in record
            return known and self._changed(call, record.get("partialResult", record.get("size")))
        return kind in _STEPS

    def _changed(self, what: str, now: Any) -> bool:
        before, self._seen[what] = self._seen.get(what), now
        return bool(before != now)

    def _happened(self, kind: str, record: Mapping[str, Any]) -> list[Command]:
        match kind:
            case "agent_start":
                self._started = self._looping = True
                self._work()
            case "message_start":
                self._replying = read_reply(record.get("message")) is not None
            case "message_end":
                return self._ended(record.get("message"))
            case "tool_execution_start":
                self.tools[str(record.get("toolCallId"))] = str(record.get("toolName"))[:80]
            case "tool_execution_end":
                # One whose call could not be kept ends them all: better a bound too short than none.
                ended = record.get("toolCallId")
                for call in [str(ended)] if ended is not None else list(self.tools):
                    self.tools.pop(call, None)
                    self._seen.pop(call, None)
            case "auto_retry_start" | "compaction_start":
                self._work()
            case "agent_end" if self._looping:
                self._looping = False
                self.tools.clear()
                # A turn that broke inside pi has its last reply here and nowhere else.
                self._reply = last_reply(record.get("messages")) or self._reply
                if self.phase is not PiPhase.ABORTING and record.get("willRetry") is not True:
                    return self._settle(idle_needed=1)
            case "auto_retry_end" | "compaction_end":
                more = record.get("willRetry") is True or record.get("success") is True
                if self._started and not self._looping and not more and self.phase is PiPhase.WORKING:
                    return self._settle(idle_needed=1)
            case "agent_settled" if self.phase is PiPhase.SETTLING and self._started and not self._looping:
                self.phase = PiPhase.OVER
        return []

    def _work(self) -> None:
        """It is at work (again), whatever it was asked."""
        if self.phase is PiPhase.SETTLING and self._barrier is not None:
            self._asked.pop(self._barrier, None)
        self._barrier = None
        if self.phase is PiPhase.SETTLING or (self.phase is PiPhase.PROMPTING and self._started):
            self.phase = PiPhase.WORKING

    def _ended(self, message: JSON) -> list[Command]:
        reply = read_reply(message)
        if reply is None or not self._replying or not self._looping:
            return []
        self._replying = False
        self._seen.pop("reply", None)
        self._reply = reply
        self.usage = total(self.usage, reply.usage)
        used = 0 if self.usage is None else self.usage.input_tokens + self.usage.output_tokens
        if (
            self._usage_limit is not None
            and used >= self._usage_limit
            and reply.stop_reason not in GOOD
            and self.phase is not PiPhase.ABORTING
        ):
            self.limited = f"usage limit reached: {used:,} of {self._usage_limit:,} tokens; the turn was aborted"
            return self.abort()
        return []


def _is_idle(state: Mapping[str, Any]) -> bool:
    return not (state.get("isStreaming") or state.get("isCompacting") or state.get("pendingMessageCount"))


def _error(record: Mapping[str, Any]) -> str:
    return str(record.get("error") or "it gave no reason")[:2000]


def _because(reply: PiReply) -> str:
    return "" if reply.error is None else f": {reply.error}"
