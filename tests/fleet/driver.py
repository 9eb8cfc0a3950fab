"""Five processes serve one queue in PostgreSQL while they are killed, stopped, cut off and delayed; then the evidence is gathered.

The law: what happens when is decided by the seed alone, as far as a machine lets it; what the fleet makes of it is left to it.
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from concorde_trio._sansio.diagnosis import Finding, diagnose
from concorde_trio.records import NewSignal
from concorde_trio.stores.urls import examine_postgres, postgres_store
from tests.acceptance.killing.driver import PEOPLE
from tests.fleet.checker import Audited, FleetEvidence, Row
from tests.stores.postgres_server import PostgresServer, psycopg

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MEMBERS = 5
SESSIONS = (*PEOPLE, "fay", "gus", "hal", "ida", "jan", "kim")
RESOURCES = ("budget", "kitchen", "garden", "attic", "car")
ENOUGH = 3
"""Of them serve before the first fault; the others join meanwhile."""
LEASE = 3.0
"""Seconds: short, so that a minute sees many of them end."""
READY = 90.0
"""Seconds in which a process must serve, whatever the machine is doing."""
SETTLED = 60.0
"""Seconds in which another signal must be settled once nothing disturbs, as long as one is left."""
BACKLOG = 40
"""Signals that are left at most when another one is emitted: what cannot keep up shows nothing more."""


@attrs.define
class Member:
    """One process at a time, with its own way to the database and its own folder for what stands beside a queue."""

    number: int
    url: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    stopped: bool = False
    logged: int = 0  # bytes, before this process

    @property
    def log(self) -> Path:
        """What its processes print, one after the other."""
        return self.folder / "log"

    @property
    def serves(self) -> bool:
        """Whether it has said so: before that, SIGTERM just ends it."""
        return b'"link"' in self.log.read_bytes()[self.logged :]


class Driver:
    """One queue, its proxy, and its processes."""

    def __init__(
        self,
        folder: Path,
        postgres: PostgresServer,
        *,
        seed: int,
        broken: str = "nothing",
        lengths: Sequence[int] = (10, 30, 100, 300, 900),
    ) -> None:
        """``lengths``: milliseconds that runs take."""
        self.journal = folder / "journal"
        self.journal.touch()
        self.chance = random.Random(seed)
        self.payloads: dict[int, dict[str, Any]] = {}
        self.told: list[str] = []
        self.ended: list[str] = []
        self.doctor: list[str] = []
        self._postgres = postgres
        self._broken = broken
        self._lengths = lengths
        self._visible: dict[int, float] = {}
        self._numbers = itertools.count()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._began = time.monotonic()
        self._store = postgres_store(postgres.place())
        self._schema = self._store.place.schema
        self._url = f"{postgres.url}&schema={self._schema}"
        self._down = False
        self._proxy = subprocess.Popen(
            [sys.executable, str(HERE / "proxy.py"), str(MEMBERS), str(postgres.folder / ".s.PGSQL.5432")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._proxy.stdout is not None
        ports = json.loads(self._proxy.stdout.readline())
        self.members = [
            Member(
                number,
                f"postgresql://tests@127.0.0.1:{port}/postgres?schema={self._schema}",
                folder / f"machine{number}",
            )
            for number, port in enumerate(ports)
        ]

    # --- the whole of it --------------------------------------------------------------------------------------

    def begin(self, backlog: int = 1) -> None:
        """Make the queue with so many signals in it, and start every process."""
        self._emit_now([self._new() for _ in range(backlog)])  # makes the schema
        with psycopg.connect(self._postgres.url, autocommit=True) as connection:
            connection.execute(f"set search_path to {self._schema}")
            connection.execute((HERE / "audit.sql").read_text())
        for member in self.members:
            self._start(member)
        until = time.monotonic() + READY
        while (serve := sum(member.serves for member in self.members)) < ENOUGH:
            self._look_for_the_dead()
            assert not self.ended and time.monotonic() < until, [member.log.read_text() for member in self.members]
            time.sleep(0.05)
        self._tell(f"{serve} serve")

    def disturb(self, seconds: float, faults: list[str]) -> None:
        """Emit, and do one of these faults after another, for so long."""
        until = time.monotonic() + seconds
        next_fault = next_look = time.monotonic()
        backlog = 0
        undone = list(faults)
        while time.monotonic() < until:
            self._do_what_is_due()
            self._look_for_the_dead()
            if time.monotonic() >= next_look:
                next_look = time.monotonic() + 1
                backlog = self._unsettled()
            if not self._down and backlog < BACKLOG and self.chance.random() < 0.25:
                self._emit()
            if time.monotonic() >= next_fault:
                if not undone:
                    undone = list(faults)
                fault = undone.pop(self.chance.randrange(len(undone)))
                getattr(self, f"_{fault}")()
                next_fault = time.monotonic() + self.chance.uniform(0.6, 2.0)
            time.sleep(0.1)

    def finish(self) -> FleetEvidence:
        """Let everything heal, wait until all is settled, stop every process, and gather the evidence."""
        while self._later:
            self._do_what_is_due()
            time.sleep(0.05)
        self._tell("nothing disturbs any more")
        left, until = self._unsettled(), time.monotonic() + SETTLED
        while left and time.monotonic() < until:
            self._look_for_the_dead()
            time.sleep(0.1)
            if (now := self._unsettled()) < left:
                left, until = now, time.monotonic() + SETTLED
        self._tell(f"{left} signals are left")
        self.doctor += [f"while all serve: {each}" for each in self._diagnosed()]
        for member in self.members:
            if member.process is not None:
                self._wait_ready(member)
                member.process.send_signal(signal.SIGTERM)
        for member in self.members:
            self._wait_ended(member)
        evidence = self._evidence()
        self.close()
        return evidence

    def close(self) -> None:
        """End whatever is left, whatever happened."""
        for member in self.members:
            if member.process is not None:
                member.process.kill()
                member.process.wait()
                member.process = None
        if self._proxy.stdin is not None and self._proxy.stdout is not None:
            self._proxy.stdin.close()
            self._proxy.wait()
            self._proxy.stdout.close()

    # --- what is emitted ----------------------------------------------------------------------------------------

    def _new(self) -> dict[str, Any]:
        number = next(self._numbers)
        runs = [
            {
                "session": self.chance.choice(SESSIONS),
                "resources": self.chance.sample(RESOURCES, self.chance.choice([0, 0, 1, 1, 2])),
                "ms": self.chance.choice(self._lengths),
                "how": self.chance.choice(["program", "function"]),
            }
            for _ in range(self.chance.choice([0, 1, 1, 1, 2, 3]))
        ]
        kind = self.chance.choice(["strict", "strict.post", "repeat.post"])
        self.payloads[number] = {"n": number, "kind": kind, "runs": runs}
        return self.payloads[number]

    def _emit(self) -> None:
        if self.chance.random() < 0.7:
            self._emit_now([self._new() for _ in range(self.chance.choice([1, 1, 3]))])
            return
        # Its seq is taken now, and is seen late: a later one may be claimed before (SIG-3, Q-04).
        connection = psycopg.connect(self._postgres.url)
        connection.execute(f"set search_path to {self._schema}")
        new = [self._new()]
        self._store.join(connection).emit_sync([self._signal(each) for each in new])
        self._emit_now([self._new()])

        def commit() -> None:
            try:
                connection.commit()
            except psycopg.Error:
                return  # the server was restarted; evidence tells whether it is there
            finally:
                connection.close()
            for each in new:
                self._visible[each["n"]] = time.time()

        self._after(self.chance.uniform(0.1, 0.5), commit)

    def _emit_now(self, new: list[dict[str, Any]]) -> None:
        self._store.emit_sync([self._signal(each) for each in new])
        for each in new:
            self._visible[each["n"]] = time.time()

    def _signal(self, payload: dict[str, Any]) -> NewSignal:
        # The wall clock is as wrong as it likes: order is seq alone (SIG-3).
        emitted_at = time.time() + self.chance.uniform(-100, 100)
        text = json.dumps(payload)
        return NewSignal(id=f"s{payload['n']}", kind=payload["kind"], payload=text, emitted_at=emitted_at)

    # --- faults ------------------------------------------------------------------------------------------------

    def _kill_leader(self) -> None:
        self._kill(self._leader())

    def _kill_executor(self) -> None:
        self._kill(self._executor())

    def _kill(self, member: Member | None) -> None:
        if member is None or member.process is None:
            return
        self._tell(f"SIGKILL to {member.number}")
        member.process.kill()
        member.process.wait()
        member.process, member.stopped = None, False
        self._after(self.chance.uniform(0.2, 2.0), lambda: self._start(member))

    def _stop_leader(self) -> None:
        self._stop(self._leader())

    def _stop_executor(self) -> None:
        self._stop(self._executor())

    def _stop(self, member: Member | None) -> None:
        if member is None or member.process is None or member.stopped:
            return
        seconds = self.chance.choice([0.5, LEASE, 2 * LEASE])
        self._tell(f"SIGSTOP to {member.number} for {seconds} s")
        stopped, member.stopped = member.process, True
        stopped.send_signal(signal.SIGSTOP)

        def go_on() -> None:
            if member.process is stopped and member.stopped:
                self._tell(f"SIGCONT to {member.number}")
                stopped.send_signal(signal.SIGCONT)
                member.stopped = False

        self._after(seconds, go_on)

    def _roll(self) -> None:
        """SIGTERM: it drains while others take new runs, and then another one takes its place."""
        member = self._some()
        if member is None or member.process is None or not member.serves:
            return
        self._tell(f"SIGTERM to {member.number}")
        leaving, member.process = member.process, None
        leaving.send_signal(signal.SIGTERM)

        def replace() -> None:
            if leaving.poll() is None:
                self._after(0.2, replace)
                return
            if leaving.returncode != 0:
                self.ended.append(f"{member.number} ended with {leaving.returncode} when it was to drain")
            self._start(member)

        self._after(0.2, replace)

    def _terminate(self) -> None:
        """Every backend of some process, or of all."""
        self._tell("pg_terminate_backend")
        share = self.chance.choice([0.2, 0.5, 1.0])
        self._execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'concorde-trio %%' "
            "and random() < %s",
            [share],
        )

    def _restart(self) -> None:
        if self._down:
            return
        self._tell("the database is killed, and starts again")
        self._down = True
        self._postgres.kill()

        def start() -> None:
            self._postgres.start()
            self._down = False

        self._after(self.chance.uniform(0.1, 1.5), start)

    def _cut(self) -> None:
        self._spoil("cut", self.chance.choice([0.3, LEASE, 2 * LEASE]))

    def _stall(self) -> None:
        self._spoil("stall", self.chance.choice([0.3, LEASE, 2 * LEASE]))

    def _delay(self) -> None:
        """Every commit, and every answer to one, comes late."""
        self._spoil(f"delay {self.chance.choice([0.05, 0.2, 0.5])}", self.chance.uniform(1, 4))

    def _spoil(self, how: str, seconds: float) -> None:
        way = self.chance.randrange(MEMBERS)
        self._tell(f"{how} of {way} for {seconds:.1f} s")
        self._order_proxy(f"{way} {how}")
        self._after(seconds, lambda: self._order_proxy(f"{way} heal"))

    # --- its parts ---------------------------------------------------------------------------------------------

    def _order_proxy(self, order: str) -> None:
        assert self._proxy.stdin is not None and self._proxy.stdout is not None
        self._proxy.stdin.write(f"{order}\n")
        self._proxy.stdin.flush()
        assert self._proxy.stdout.readline() == "ok\n"

    def _start(self, member: Member) -> None:
        member.folder.mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": str(member.folder),
            "FLEET_STORE": member.url,
            "FLEET_LEASE": str(LEASE),
            "FLEET_JOURNAL": str(self.journal),
            "FLEET_FOLDER": str(member.folder / "work"),
            "FLEET_BROKEN": self._broken,
        }
        with member.log.open("ab") as log:
            member.logged = log.tell()
            member.process = subprocess.Popen(
                [sys.executable, "-m", "concorde_trio", "serve", "tests.fleet.served:gateway", "--json"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _wait_ready(self, member: Member) -> None:
        until = time.monotonic() + READY
        while not member.serves:
            assert member.process is not None and member.process.poll() is None, member.log.read_text()
            assert time.monotonic() < until, member.log.read_text()
            time.sleep(0.05)

    def _wait_ended(self, member: Member) -> None:
        process, member.process = member.process, None
        if process is None:
            return
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            self.ended.append(f"{member.number} did not end within a minute of SIGTERM")
            process.kill()
            process.wait()
        else:
            if process.returncode != 0:
                self.ended.append(f"{member.number} ended with {process.returncode} in the end")

    def _look_for_the_dead(self) -> None:
        for member in self.members:
            if member.process is not None and (status := member.process.poll()) is not None:
                said = member.log.read_text(errors="replace")[-2000:]
                self.ended.append(f"{member.number} with {status}: {said}")
                self._tell(f"{member.number} ended by itself with {status}")
                member.process = None
                self._start(member)

    def _leader(self) -> Member | None:
        rows = (
            []
            if self._down
            else self._execute(
                f"select pid from {self._schema}.concorde_leader join {self._schema}.concorde_members on id = member"
            )
        )
        return next((each for each in self.members if each.process is not None and rows == [(each.process.pid,)]), None)

    def _executor(self) -> Member | None:
        leader = self._leader()
        return self._some(but=leader)

    def _some(self, but: Member | None = None) -> Member | None:
        there = [each for each in self.members if each.process is not None and not each.stopped and each is not but]
        return self.chance.choice(there) if there else None

    def _after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._later, (time.monotonic() + seconds, next(self._order), action))

    def _do_what_is_due(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            heapq.heappop(self._later)[2]()

    def _tell(self, what: str) -> None:
        self.told.append(f"{time.monotonic() - self._began:7.2f} {what}")
        print(self.told[-1], flush=True)

    def _execute(self, sql: str, parameters: list[object] | None = None) -> list[tuple[Any, ...]]:
        return [] if self._down else self._postgres.execute(sql, parameters or ())

    # --- the evidence --------------------------------------------------------------------------------------------

    def _diagnosed(self) -> list[Finding]:
        return diagnose(examine_postgres(self._url))

    def _unsettled(self) -> int:
        rows = self._execute(f"select count(*) from {self._schema}.signals where settled_at is null")
        return int(rows[0][0]) if rows else 0

    def _evidence(self) -> FleetEvidence:
        signals = {}
        for id_, seq, state, error in self._execute(f"select id, seq, state, error from {self._schema}.signals"):
            number = int(id_[1:])
            visible = self._visible.get(number, float("inf"))
            signals[number] = Row(id_, number, seq, state, error, visible)
        positions = self._execute(f"select signal_id, min(position) from {self._schema}.runs group by signal_id")
        failed: dict[int, list[str]] = {}
        for id_, signal_id in self._execute(
            f"select id, signal_id from {self._schema}.runs where state not in ('pending', 'running', 'done')"
        ):
            failed.setdefault(int(signal_id[1:]), []).append(id_)
        audit = self._execute(
            "select at, what, id, before, after, application, member_state, leads, epoch, tx "
            f"from {self._schema}.audit order by number"
        )
        logs = "".join(member.log.read_text(errors="replace") for member in self.members)
        lapsed = set(re.findall(r"lost its lease as member ([0-9a-f]{12})", logs))
        members = self._execute(f"select id, state from {self._schema}.concorde_members")
        return FleetEvidence(
            journal=[json.loads(line) for line in self.journal.read_text().splitlines()],
            payloads={number: each for number, each in self.payloads.items() if number in signals},
            signals=signals,
            positions={int(id_[1:]): position for id_, position in positions},
            audit=[Audited(*row) for row in audit],
            failed_runs=failed,
            over=frozenset(id_ for id_, state in members if state == "dead" or id_[:12] in lapsed),
            left=list(self._left()),
            ended=self.ended,
            emitted=frozenset(self._visible),
            doctor=[*self.doctor, *(str(each) for each in self._diagnosed())],
        )

    def _left(self) -> Iterator[int]:
        """Processes of this fleet that live although all is over: agents and guards, by what they were given."""
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal() or int(folder.name) == os.getpid():
                continue
            try:
                words = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
                cwd = os.readlink(folder / "cwd")
            except OSError:
                continue
            if str(self.journal).encode() in words or cwd.startswith(str(self.journal.parent)):
                yield int(folder.name)
