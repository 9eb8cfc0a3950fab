"""The house of ``house_program.py``, started, asked, killed and started again; browsers reach it by a way that can be cut."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

PROGRAM = Path(__file__).with_name("house_program.py")
PATIENCE = 60.0
"""Seconds after which what is waited for has failed to come."""


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Way:
    """A port whose connections go on to another port, until they are cut."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._closed:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                near.close()
                continue
            self._open |= {near, far}
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, start: socket.socket, end: socket.socket) -> None:
        with suppress(OSError):
            while data := start.recv(65536):
                end.sendall(data)
        for each in (start, end):
            self._close(each)

    def _close(self, each: socket.socket) -> None:
        self._open.discard(each)
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()

    def cut(self) -> None:
        """End all connections, and let none through."""
        self._closed = True
        for each in list(self._open):
            self._close(each)

    def mend(self) -> None:
        """Let connections through again."""
        self._closed = False

    def close(self) -> None:
        """Listen no more."""
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class House:
    """One house at one address, whatever number of times it is started."""

    def __init__(self, folder: Path, *more: str) -> None:
        self._more = more
        self.folder = folder
        self.database = folder / "house.db"
        self.port = free_port()
        self.token = "operator-token-of-the-tests"
        self.link = ""
        self._process: subprocess.Popen[str] | None = None
        self._way = Way(self.port)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.callback(self._way.close)
        self._stack.callback(self.kill)
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """While entered, no browser reaches the house."""
        self._way.cut()
        yield
        self._way.mend()

    def start(self) -> None:
        """Start it, and wait until it serves."""
        command = [sys.executable, str(PROGRAM), str(self.database), str(self.port), self.token, *self._more]
        with (self.folder / "house.log").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, (self.folder / "house.log").read_text(encoding="utf-8")
        self.link = json.loads(line)["link"].replace(f":{self.port}/", f":{self._way.port}/")

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request with the operator token. AssertionError for an answer that is no good one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            answer = connection.getresponse()
            said = answer.read()
        finally:
            connection.close()
        assert answer.status < 300, (answer.status, said)
        return json.loads(said) if said else None

    def get(self, path: str) -> Any:
        """A document."""
        return self.ask("GET", path)

    def emit(self, *runs: dict[str, Any], kind: str = "work", **payload: Any) -> str:
        """A signal with these prompts: its id."""
        found: str = self.ask("POST", "/signals", {"kind": kind, "payload": {**payload, "runs": list(runs)}})["id"]
        return found

    def start_run(self, session: str, *resources: str, text: str = "wait") -> str:
        """A run that has started: its id."""
        run = f"{self.emit({'session': session, 'text': text, 'resources': list(resources)})}-1"
        self.until(f"/runs/{run}", lambda found: found["state"] == "running")
        return run

    def queue_run(self, session: str, *resources: str, text: str = "say done") -> str:
        """A run that waits: its id."""
        run = f"{self.emit({'session': session, 'text': text, 'resources': list(resources)})}-1"
        self.until(f"/runs/{run}", lambda found: found["waits_for"] is not None)
        return run

    def until(self, path: str, right: Callable[[Any], bool]) -> Any:
        """A document, once it is right; until then it may not be there."""
        end = time.monotonic() + PATIENCE
        found = None
        while time.monotonic() < end:
            try:
                found = self.get(path)
                if right(found):
                    return found
            except (AssertionError, OSError) as error:
                found = error
            time.sleep(0.02)
        raise AssertionError(f"{path} is still {found!r:.2000}")
