"""Runs the shell blocks of a page, in order: what is exported in one is there in the next.

A line that serves is a program beside the others, until its block is over; then it gets a Ctrl-C, and has to end well.
Lines that are nothing but a command of ``concorde-trio`` run in a fork of this process, which has imported it already:
the same as a program of its own, a second sooner. All others are run by ``sh``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT, Block

SERVES = re.compile(r"^concorde-trio serve (?!.*--help).*$", re.MULTILINE)
SPECIAL = set("|&;<>()$`\\*?[]#~=%{}!\n\"'")
EXPORT = re.compile(r"export (\w+)=(\S*)\s*(?:#.*)?")
WITHIN = 90


class Shell:
    """The terminal in which a page's commands are typed."""

    def __init__(self, folder: Path) -> None:
        programs = folder / ".programs"
        programs.mkdir(exist_ok=True)
        for name, words in (("concorde-trio", f"{sys.executable} -m concorde_trio"), ("python", sys.executable)):
            (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
            (programs / name).chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CONCORDE_")}
        path = {"PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": f"{ROOT}:{folder}", "NO_COLOR": "1"}
        self._env = kept | path
        self._folder = folder

    def run(self, block: Block) -> None:
        """Run a block; the first command that fails is the end."""
        where = f"the shell block at line {block.line}"
        with contextlib.ExitStack() as servers:
            for part in re.split(rf"({SERVES.pattern})", block.code, flags=re.MULTILINE):
                if SERVES.fullmatch(part):
                    servers.enter_context(self._serving(part))
                else:
                    self._commands(part, where)

    def _commands(self, code: str, where: str) -> None:
        lines = [line for line in code.split("\n") if line.strip()]
        if all(EXPORT.fullmatch(line) or _alone(line) for line in lines):
            for line in lines:
                if exported := EXPORT.fullmatch(line):
                    self._env[exported[1]] = exported[2]
                else:
                    print(f"$ {line}", flush=True)
                    _must(os.waitpid(self._fork(line, 1), 0)[1], line)
            return
        result = subprocess.run(
            ["sh", "-eu", "-c", code], cwd=self._folder, env=self._env, stdin=subprocess.DEVNULL, timeout=WITHIN,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        print(f"$ {code.strip()}\n{result.stdout}", flush=True)
        if result.returncode:
            raise SystemExit(f"{where} ended with status {result.returncode}")

    @contextlib.contextmanager
    def _serving(self, line: str) -> Iterator[None]:
        """The server of that line, once it has said where it is."""
        said = self._folder / "served.txt"
        with open(said, "w", encoding="utf-8") as file:
            server = self._fork(line, file.fileno())
        gives_up = time.monotonic() + WITHIN
        while "http://" not in said.read_text(encoding="utf-8"):
            ended, status = os.waitpid(server, os.WNOHANG)
            if ended or time.monotonic() > gives_up:
                raise SystemExit(f"{line} does not serve ({status}):\n{said.read_text(encoding='utf-8')}")
            time.sleep(0.02)
        try:
            yield
        finally:
            os.kill(server, signal.SIGINT)
            _, status = os.waitpid(server, 0)
            print(f"$ {line}\n{said.read_text(encoding='utf-8')}", flush=True)
        _must(status, line)

    def _fork(self, line: str, output: int) -> int:
        """Start a command of ``concorde-trio`` in a fork of this process; its process id."""
        words = shlex.split(line, comments=True)[1:]
        with warnings.catch_warnings():
            # Threads of this process that idle are no harm to a fork of it.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child:
            return child
        status = 1
        try:
            os.setpgid(0, 0)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.chdir(self._folder)
            os.environ.clear()
            os.environ.update(self._env)
            sys.argv = ["concorde-trio", *words]
            from concorde_trio.cli import main

            status = main() or 0
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(bool(error.code))
        except BaseException:  # noqa: BLE001 - a command that raises has failed, and its traceback is in what it printed
            traceback.print_exc()
        finally:
            with contextlib.suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)


def _alone(line: str) -> bool:
    """Whether a line is one command of concorde-trio, without anything for a shell to do."""
    if not line.startswith("concorde-trio "):
        return False
    bare = re.sub(r"'[^']*'|\"[^\"$`\\]*\"|\s#.*", "", line)
    return not set(bare) & (SPECIAL - set("="))


def _must(status: int, line: str) -> None:
    if status:
        raise SystemExit(f"{line}: status {os.waitstatus_to_exitcode(status)}")
