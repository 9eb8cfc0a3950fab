"""What the routes of sessions take and answer (SRV-2, SRV-3, SRV-4)."""

from __future__ import annotations

from concorde_trio.documents import (
    ApprovalAnswered,
    CompactionAsked,
    InputCancelled,
    InputReceipt,
    Interrupted,
    MessagePage,
    Resumed,
    SessionDocument,
    SessionPage,
)
from concorde_trio.server.cursors import cursor_kind
from concorde_trio.server.declarations import LIMIT, Answer, Operation, member, path, query
from concorde_trio.server.values import IN_NAMES, LARGEST_PLACE, ListOf, Name, Text, Truth, Whole
from concorde_trio.sessions.inputs import IMAGES

_TAG = "Sessions"
_NONE_KEPT = "The runtime of this server keeps no sessions"
_NAME = path("name", Name("session"), "The name of a session, percent-encoded: any characters, slashes too.")
_CALL = path("call_id", Text(), "The id of the call, percent-encoded.")
_INPUT = path("input_id", Text(), "The id of the input, percent-encoded.")
_UNKNOWN = {404: "There is no such session.", 409: f"{_NONE_KEPT}."}
_VISIBLE = r"[^\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""What is no white space to Python, in a regular expression."""


def _session_cursor(given: str) -> tuple[float, str]:
    moment, _, name = given.partition(":")
    return float(moment), name


LIST = Operation(
    "GET",
    "/sessions",
    "list_sessions",
    "Sessions, most recently updated first, each with what it waits for. One that is used meanwhile moves to the front, before "
    "the pages that are left.",
    tag=_TAG,
    fields=(
        query("prefix", Name("session"), "Only those whose name begins so."),
        query(
            "before",
            cursor_kind(rf"-?[0-9]{{1,15}}(\.[0-9]{{1,17}})?:{IN_NAMES}{{0,200}}", _session_cursor),
            "The next of an earlier page.",
        ),
        LIMIT,
    ),
    answers=(Answer(200, "A page of sessions.", SessionPage),),
    refusals={409: f"{_NONE_KEPT}; or the next is of an earlier start of the server, and cannot be read any more."},
)
LOOK = Operation(
    "GET",
    "/sessions/<name>",
    "get_session",
    "What a session waits for, what holds it, what is queued, what is asked, what was abandoned (SES-12a).",
    tag=_TAG,
    fields=(_NAME,),
    answers=(Answer(200, "The session.", SessionDocument),),
    refusals=_UNKNOWN,
)
MESSAGES = Operation(
    "GET",
    "/sessions/<name>/messages",
    "list_messages",
    "Messages of a session, in order: the last ones; with before the last ones before it; with after the first ones after it "
    "(and, with both, before the other).",
    tag=_TAG,
    fields=(
        _NAME,
        query("after", Whole(0, LARGEST_PLACE, "the seq of a message, or 0"), "Only those with a higher seq."),
        query("before", Whole(1, LARGEST_PLACE, "the seq of a message"), "Only those with a lower seq."),
        LIMIT,
    ),
    answers=(Answer(200, "A page of messages.", MessagePage),),
    refusals=_UNKNOWN,
)
LIVE = Operation(
    "GET",
    "/sessions/<name>/live",
    "watch_session",
    "Server-sent events of what one session does, from now on. The first is the event session, its document.",
    tag=_TAG,
    fields=(_NAME,),
    answers=(Answer(200, "Events, until the server stops or the reader is too slow.", media_type="text/event-stream"),),
    refusals={409: f"{_NONE_KEPT}."},
)
INPUT = Operation(
    "POST",
    "/sessions/<name>/input",
    "send_input",
    "Say something to a session, which begins with its first input (SES-20). A text, attachments, or both.",
    tag=_TAG,
    fields=(
        _NAME,
        member("text", Text(storable=True), "What is said.", default=""),
        member(
            "id", Name("input id"), "Yours, for safe repeats: the same id and text are accepted once.", nullable=True
        ),
        member("sender", Name("sender"), "Who says it.", nullable=True),
        member(
            "attachments",
            ListOf(
                {
                    "type": "object",
                    "required": ["type", "media_type", "data"],
                    "properties": {
                        "type": {"const": "image"},
                        "media_type": {"enum": list(IMAGES)},
                        "data": {"type": "string", "pattern": "^(?:[A-Za-z0-9+/]{4})+$", "contentEncoding": "base64"},
                    },
                }
            ),
            "Images.",
            default=(),
        ),
    ),
    body_rules={
        "anyOf": [
            {"required": ["text"], "properties": {"text": {"pattern": _VISIBLE}}},
            {"required": ["attachments"], "properties": {"attachments": {"minItems": 1}}},
        ]
    },
    answers=(
        Answer(202, "It was accepted.", InputReceipt),
        Answer(200, "The first receipt of an id that is known.", InputReceipt),
    ),
    refusals={409: f"The id is that of another input. {_NONE_KEPT}.", 429: "Too many inputs wait in this session."},
)
CANCEL_INPUT = Operation(
    "DELETE",
    "/sessions/<name>/inputs/<input_id>",
    "cancel_input",
    "Take a queued input back (SES-10a).",
    tag=_TAG,
    fields=(_NAME, _INPUT),
    answers=(Answer(200, "It was taken back.", InputCancelled),),
    refusals={404: "There is no such session or input.", 409: f"It is not queued any more. {_NONE_KEPT}."},
)
INTERRUPT = Operation(
    "POST",
    "/sessions/<name>/interrupt",
    "interrupt_session",
    "End the turn that is being taken (SES-12).",
    tag=_TAG,
    fields=(_NAME,),
    answers=(Answer(200, "Whether there was one.", Interrupted),),
    refusals=_UNKNOWN,
)
RESUME = Operation(
    "POST",
    "/sessions/<name>/resume",
    "resume_session",
    "Let what an interrupt held in the queue run (SES-12).",
    tag=_TAG,
    fields=(_NAME,),
    answers=(Answer(200, "Whether anything was held.", Resumed),),
    refusals=_UNKNOWN,
)
COMPACT = Operation(
    "POST",
    "/sessions/<name>/compact",
    "compact_session",
    "Compact the transcript at the next boundary (SES-15); the event Compacted says when.",
    tag=_TAG,
    fields=(_NAME,),
    answers=(Answer(202, "It was asked for.", CompactionAsked),),
    refusals=_UNKNOWN,
)
APPROVE = Operation(
    "POST",
    "/sessions/<name>/approvals/<call_id>",
    "answer_approval",
    "Allow or deny one call that a person is asked about, and no other (SES-18).",
    tag=_TAG,
    fields=(_NAME, _CALL, member("allow", Truth(), "Whether it may run: true or false.", required=True)),
    answers=(Answer(200, "The answer was taken.", ApprovalAnswered),),
    refusals={404: "Nobody asks about such a call now.", 409: f"{_NONE_KEPT}."},
)
