"""The agent program of the kill test: it works for a while and writes into a journal, all of it, as it happens.

Standard library only. Its prompt, on stdin, is JSON: run, journal, ms. Each line is one write to a file opened for
appending, so that lines of different processes never mix and a killed process leaves whole lines.
"""

import json
import os
import sys
import time

prompt = json.loads(sys.stdin.read())
journal = os.open(prompt["journal"], os.O_WRONLY | os.O_APPEND)


def write(what: str) -> None:
    line = {"at": time.monotonic(), "what": what, "run": prompt["run"], "pid": os.getpid()}
    os.write(journal, (json.dumps(line) + "\n").encode())


write("run-start")
until = time.monotonic() + prompt["ms"] / 1000
while time.monotonic() < until:
    time.sleep(0.005)
    write("run-beat")
write("run-end")
print("done")
