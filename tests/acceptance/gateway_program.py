"""A gateway as a program, for tests that send it real signals: one run that never ends, and one that waits for it.

``python gateway_program.py DATABASE`` prints each event's name, and the mode of a stop, a line each.
"""

from __future__ import annotations

import sys

import trio

from concorde_trio import FunctionRuntime, Gateway, Prompt, RunPrompt, Signal
from concorde_trio.events import Event, WorkerStopping


async def never_ends(prompt: RunPrompt) -> None:
    await trio.sleep_forever()


def on_task(signal: Signal) -> list[Prompt]:
    return [Prompt(session="ann", text="first"), Prompt(session="ann", text="second")]


def tell(event: Event) -> None:
    print(event.name, event.mode if isinstance(event, WorkerStopping) else "", flush=True)


async def main(database: str) -> None:
    gateway = Gateway(store=f"sqlite:///{database}", runtime=FunctionRuntime(never_ends))
    gateway.add_handler("task", on_task)
    gateway.worker.bus.call(tell)
    async with trio.open_nursery() as nursery:
        await nursery.start(gateway.run)
        await gateway.emit("task")


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
