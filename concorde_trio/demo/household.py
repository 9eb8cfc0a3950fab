"""The demo's gateway: its handlers, its own routes, and the sessions whose turns its runs are.

The law: whatever the household does wrong must show. So a budget is read and written by two requests, and the books are
kept by reading, waiting and writing: only locks make either right. What it notes down for the check is what it saw.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import trio
from quart import request

from concorde_trio._sansio.session_terms import WaitingOn
from concorde_trio.demo import program
from concorde_trio.demo.errands import BUDGET, PLACES, WORKSPACES
from concorde_trio.demo.evidence import ERRAND_HEADER, Asked, Spend
from concorde_trio.demo.script import scripted_model
from concorde_trio.demo.watched import WatchedModel
from concorde_trio.errors import InvalidValue
from concorde_trio.gateway import Gateway
from concorde_trio.records import JSON, PostOutcome, Prompt, RunInfo, Signal
from concorde_trio.runtimes.in_process import InProcessRuntime
from concorde_trio.server.attribution import TAG_HEADER, current_run
from concorde_trio.sessions.model import Model
from concorde_trio.signals.tags import new_tag
from concorde_trio.signals.template import template_handler
from concorde_trio.tools.files import file_tools
from concorde_trio.tools.shell import ShellTool

BOOKKEEPING = 0.3
"""Seconds that the bookkeeper takes between reading the books and writing them."""

PROMPT = """\
{text}

This is errand {errand}, for {person}. Do it for the household.
{place}Your run tag is {tag}
Send it along with whatever you ask of the agent server.

{steps}
"""
QUESTION = """\
{{ text }}

This is errand {{ errand | default(0) }}, for {{ data["from"] | default("somebody") }}. Do it for the household.
Your run tag is {{ tag }}
Send it along with whatever you ask of the agent server.

{% for step in steps | default([]) %}- {{ step }}
{% endfor %}"""

SYSTEM = """\
You help a household. You get errands, each with its number and a run tag, and steps to take one after another. Take all of
them, with your tools, and nothing else; if one cannot be taken, say why and stop. Then answer in one or two sentences.
Files: read_file and write_file, with the path PLACE/FILE, where PLACE is where you are told to work.
The rest is done by commands in the shell, with the number and the tag of your errand:
  to look at the budget:            errand NUMBER TAG look
  the same without saying the tag:  errand NUMBER - look
  to spend:                         errand NUMBER TAG spend AMOUNT THING
  to work for some seconds:         errand NUMBER TAG work SECONDS
  to wait for somebody:             errand NUMBER TAG wait
  to think about something:         write_file novel.txt, one chapter with each call, until you are stopped
"""


class Household:
    """A gateway on loopback whose queue, workspaces and journal are in ``folder``, which is there and empty.

    ``model``: a real one; otherwise a script answers.
    """

    def __init__(self, folder: Path, model: Model | None = None) -> None:
        self.folder = folder
        self.database = folder / "queue.db"
        self.journal = folder / "journal.jsonl"
        self.books = folder / "books.txt"
        self.left = BUDGET
        self.ledger: list[Spend] = []
        self.requests: deque[Asked] = deque(maxlen=10_000)
        self.scripted = model is None
        self.model = model or scripted_model()
        self.rooms = rooms = folder / "rooms"
        for place, files in WORKSPACES.items():
            (rooms / place).mkdir(parents=True)
            for name, text in files.items():
                (rooms / place / name).write_text(text, encoding="utf-8")
        self.journal.touch()
        self.gateway = Gateway(
            store=f"sqlite:///{self.database}",
            runtime=InProcessRuntime(
                model=WatchedModel(self.model, self.note),
                system=SYSTEM,
                tools=[
                    ShellTool(
                        rooms,
                        env={"DEMO_JOURNAL": str(self.journal), "PATH": f"{self._commands()}:{os.defpath}"},
                        stop=((signal.SIGTERM, 1.0),),
                    ),
                    *file_tools(rooms),
                ],
                backoff=1.0,
                max_tries=3,
            ),
            # What people say to a session may be done where that person's errands are done.
            session_resources=lambda session: PLACES.get(session, ()),
            time_limit=60.0,
        )
        self._add_handlers()
        self._add_routes()

    def _commands(self) -> Path:
        """The folder with the household's own command."""
        folder = self.folder / "bin"
        folder.mkdir()
        command = folder / "errand"
        words = shlex.join([sys.executable, "-I", "-S", str(Path(program.__file__))])
        command.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
        command.chmod(0o700)
        return folder

    def _add_handlers(self) -> None:
        gateway = self.gateway

        @gateway.handler("message.received")
        async def on_message(signal: Signal) -> list[Prompt]:
            return [make_prompt(signal, part) for part in parts_of(signal)]

        gateway.add_handler(
            "question.asked", template_handler(QUESTION, tag=new_tag, context=context_of, time_limit=30.0)
        )
        shopping = Shopping(self)
        gateway.add_handler("shopping.asked", shopping)
        gateway.add_handler("party.planned", shopping)

    def _add_routes(self) -> None:
        app = self.gateway.app

        @app.before_request
        async def note() -> None:
            claimed = request.headers.get(ERRAND_HEADER, "")
            run = current_run()
            self.requests.append(
                Asked(
                    path=f"{request.method} {request.path}",
                    claims=int(claimed) if re.fullmatch("[0-9]{1,6}", claimed) else None,
                    tags=tuple(request.headers.getlist(TAG_HEADER)),
                    attributed=None if run is None else errand_of(run),
                )
            )

        @app.get("/budget")
        async def read_budget() -> dict[str, Any]:
            return {"left": self.left}

        @app.put("/budget")
        async def write_budget() -> tuple[dict[str, Any], int]:
            run = current_run()
            if run is None:
                return {"detail": "only a run may spend, and this request came from none: send your run tag"}, 403
            body = await request.get_json(silent=True)
            if not isinstance(body, dict) or not all(type(body.get(name)) is int for name in ("left", "spent")):
                return {"detail": 'expected {"left": N, "spent": N}, whole numbers'}, 400
            spend = Spend(
                errand=errand_of(run),
                signal_id=run.signal_id,
                amount=body["spent"],
                thing=str(body.get("thing", "something")),
            )
            self.left = body["left"]
            self.ledger.append(spend)
            return {"left": self.left}, 200

    def waiting_on(self, session: str) -> WaitingOn | None:
        """What a session that is in memory waits for."""
        loop = self.gateway.sessions.loaded(session)
        return None if loop is None else loop.machine.waiting_on()

    def note(self, what: str, errand: int, **more: Any) -> None:
        """Append a line of our own to the journal that the programs write."""
        line = {"at": time.monotonic_ns(), "what": what, "errand": errand, "pid": os.getpid(), **more}
        with self.journal.open("ab", buffering=0) as journal:
            journal.write(json.dumps(line).encode() + b"\n")


@attrs.frozen
class Shopping:
    """A handler with a post phase: once the shopping is done, and while its locks are held, it is put into the books."""

    household: Household
    repeatable = True

    def handle(self, signal: Signal) -> list[Prompt]:
        """A run for each part, or one for all of it."""
        return [make_prompt(signal, part) for part in parts_of(signal)]

    async def post(self, signal: Signal, outcome: PostOutcome) -> None:
        """Write a line for each thing that was bought."""
        if not outcome.runs:
            return
        parts = parts_of(signal)
        self._note("post", parts)
        for spend in [spend for spend in self.household.ledger if spend.signal_id == signal.id]:
            lines = self._lines()
            before = int(lines[-1].rpartition(" ")[2]) if lines else BUDGET
            await trio.sleep(BOOKKEEPING)
            after = before - spend.amount
            lines.append(
                f"{len(lines) + 1}. errand {spend.errand} bought {spend.thing}: {before} - {spend.amount} = {after}"
            )
            self.household.books.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        self._note("posted", parts)

    def _lines(self) -> list[str]:
        books = self.household.books
        return books.read_text(encoding="utf-8").splitlines() if books.exists() else []

    def _note(self, what: str, parts: Sequence[dict[str, Any]]) -> None:
        for part in parts:
            self.household.note(what, part.get("errand", 0))


def errand_of(run: RunInfo) -> int:
    """The errand of a run; 0 for a run of what somebody just said."""
    number = run.context.get("errand", 0) if isinstance(run.context, dict) else 0
    return number if type(number) is int else 0


def parts_of(signal: Signal) -> list[dict[str, Any]]:
    """What a message asks for, errand by errand. InvalidValue for what ``Message.payload`` would never give."""
    payload = signal.payload
    if isinstance(payload, dict) and isinstance(payload.get("text"), str):
        parts = payload.get("parts", [payload])
        if isinstance(parts, list) and all(isinstance(part, dict) for part in parts):
            return parts
    raise InvalidValue('a message is {"from": NAME, "text": WORDS, "steps": [STEP, ...]}', place="payload")


def make_prompt(signal: Signal, part: dict[str, Any]) -> Prompt:
    """The prompt for one part of a message."""
    person, place, tag = signal.payload.get("from", "somebody"), part.get("place"), new_tag()
    return Prompt(
        session=part.get("session", person),
        text=PROMPT.format(
            text=signal.payload["text"],
            errand=part.get("errand", 0),
            person=person,
            place=f"Work in the {place}.\n" if place is not None else "",
            tag=tag,
            steps="\n".join(f"- {step}" for step in part.get("steps", ())),
        ),
        resources=[name for name in (place, "budget" if part.get("budget") else None) if name is not None],
        tag=tag,
        context={"errand": part.get("errand", 0), "from": person},
        time_limit=part.get("time_limit"),
        usage_limit=part.get("usage_limit"),
    )


def context_of(signal: Signal) -> JSON:
    """What the requests of a question's run are attributed with."""
    (part,) = parts_of(signal)
    return {"errand": part.get("errand", 0), "from": part.get("from", "somebody")}
