"""A program that speaks as pi does on stdin and stdout, and does what the prompt says; run as ``python pi_like.py``.

``tool CODE`` runs shell in a session of its own until it ends or is aborted, as pi's tools do. ``deaf``: it ignores all that it is asked from then
on, the end of its stdin and SIGTERM included. ``exit TEXT``: it says TEXT on stderr and ends with status 3. ``where`` answers
with its folder and environment. When it leaves by itself it makes a file ``left``.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time


def say(**record: object) -> None:
    """One record."""
    print(json.dumps(record), flush=True)


def reply(text: str, stop: str) -> None:
    """A whole reply, and the end of the turn."""
    usage = {"input": 100, "output": 7, "cacheRead": 20, "cacheWrite": 0, "cost": {"total": 0.25}}
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "usage": usage, "stopReason": stop}
    say(type="message_start", message=message)
    say(type="message_end", message=message)
    say(type="agent_end", messages=[message])


def tool(code: str, state: dict[str, object]) -> None:
    """Run it, and answer when it is over."""
    say(type="tool_execution_start", toolCallId="c1", toolName="bash")
    process = subprocess.Popen(["sh", "-c", code], start_new_session=True, stdout=subprocess.DEVNULL)
    state["tool"] = process
    process.wait()
    reply("done", "aborted" if process.returncode < 0 else "stop")
    state["isStreaming"] = False


def main() -> None:
    """Commands, until there are no more."""
    state: dict[str, object] = {"isStreaming": False}
    for line in sys.stdin:
        command = json.loads(line)
        kind, text = command["type"], command.get("message", "")
        if kind == "switch_session":
            state["sessionFile"] = command["sessionPath"]
        process = state.get("tool")
        if kind == "abort" and isinstance(process, subprocess.Popen):
            os.killpg(process.pid, signal.SIGKILL)
        data = {name: value for name, value in state.items() if name != "tool"}
        say(id=command["id"], type="response", command=kind, success=True, data=data)
        if kind != "prompt":
            continue
        say(type="agent_start")
        verb, _, rest = text.partition(" ")
        if verb == "tool":
            state["isStreaming"] = True
            threading.Thread(target=tool, args=(rest, state), daemon=True).start()
        elif verb == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            open("deaf", "w").close()
            while True:
                time.sleep(1)
        elif verb == "exit":
            sys.stderr.write(rest)
            sys.exit(3)
        else:
            reply(json.dumps([os.getcwd(), dict(os.environ)]), "stop")
    open("left", "w").close()


if __name__ == "__main__":
    main()
