"""A house to be looked at in a browser, as a program: ``python house_program.py DATABASE PORT TOKEN [own]``; prints its
link. ``own``: in an app that has a page of its own at ``/``.

Prompts say what their runs do, a line each: ``say WORDS``, ``wait`` (a tool that ends when it is stopped), ``ask`` (a tool
that a person must allow), ``nap SECONDS`` (the model takes that long), ``stall`` (the model says nothing any more).
"""

from __future__ import annotations

import json
import sys
from typing import Any

import trio
from quart_trio import QuartTrio

from concorde_trio import (
    Gateway,
    InProcessRuntime,
    PostOutcome,
    Prompt,
    ReplyEnd,
    ScriptedModel,
    Signal,
    TextDelta,
    tool,
)
from concorde_trio._sansio.model_events import CallStarted, ModelRequest, StopReason


@tool(kind="read", timeout=60.0)
async def wait() -> str:
    """Wait for what does not come."""
    await trio.sleep_forever()
    raise AssertionError


@tool(kind="execute", timeout=60.0)
async def risky(what: str) -> str:
    """Do what somebody has to allow."""
    return f"did {what}"


def reply(request: ModelRequest) -> list[tuple[float, Any]]:
    """What the model answers."""
    last = request.messages[-1]
    if last.role == "tool":
        return [(0.0, TextDelta(f"It gave: {last.text}")), (0.0, ReplyEnd())]
    word, _, rest = last.text.partition(" ")
    if word == "stall":
        return []
    if word == "nap":
        return [(float(rest), TextDelta("I slept")), (0.0, ReplyEnd())]
    if word in ("wait", "ask"):
        name = "wait" if word == "wait" else "risky"
        arguments = {} if word == "wait" else {"what": rest}
        call = CallStarted(0, f"call_{len(request.messages)}", name, json.dumps(arguments))
        return [(0.0, call), (0.0, ReplyEnd(StopReason.CALLS))]
    return [(0.0, TextDelta(rest or "yes")), (0.0, ReplyEnd())]


def prompts(signal: Signal) -> list[Prompt]:
    """The payload says what its prompts are."""
    given = signal.payload if isinstance(signal.payload, dict) else {}
    return [Prompt(**one) for one in given.get("runs", ())]


class WithPost:
    """The same with a post phase, which takes as long as the payload says."""

    def handle(self, signal: Signal) -> list[Prompt]:
        """As ``prompts``."""
        return prompts(signal)

    async def post(self, signal: Signal, outcome: PostOutcome) -> None:
        """Take a while."""
        await trio.sleep(signal.payload["post"])


def own_app() -> QuartTrio:
    """An app of somebody's own."""
    app = QuartTrio("own")

    @app.get("/")
    async def page() -> str:
        return "my own page"

    return app


async def main(database: str, port: int, token: str, *more: str) -> None:
    """Serve until a signal says to stop."""
    runtime = InProcessRuntime(
        model=ScriptedModel(reply),
        tools=[wait, risky],
        policy=lambda call, kind: "ask" if kind == "execute" else "allow",
    )
    gateway = Gateway(store=database, runtime=runtime, port=port, operator_token=token, app=own_app() if more else None)
    gateway.add_handler("work", prompts)
    gateway.add_handler("shop", WithPost())
    async with trio.open_nursery() as nursery:
        url = await nursery.start(gateway.run)
        print(json.dumps({"url": url, "link": gateway.link}), flush=True)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
