"""What one writes first: a table of jobs in SQLite, and a loop that takes the next, marks it, runs it and marks it done."""

import sqlite3
import sys
import time

from job_log import ASKED, JOBS, SECONDS, TEXT, Log, jobs

log = Log()
database = sqlite3.connect(ASKED["database"], isolation_level=None)
database.execute("pragma journal_mode = wal")
database.execute("pragma synchronous = full")
database.execute(
    "create table jobs (number integer primary key, key integer, payload text, state text default 'pending')"
)
database.execute("create index pending on jobs (number) where state = 'pending'")
begun = time.perf_counter()
database.execute("begin")
database.executemany("insert into jobs (number, key, payload) values (?, ?, ?)", [(n, k, TEXT) for k, n in jobs()])
database.execute("commit")
log.emitted = time.perf_counter() - begun
for _ in range(JOBS):
    started = time.perf_counter()
    number, key = database.execute(
        "select number, key from jobs where state = 'pending' order by number limit 1"
    ).fetchone()
    database.execute("update jobs set state = 'running' where number = ?", (number,))
    if SECONDS:
        time.sleep(SECONDS)
    database.execute("update jobs set state = 'done' where number = ?", (number,))
    log.ended(key, number, started)
log.answer(
    version=f"Python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}",
    how="one loop, two commits a job",
    fsync="WAL, synchronous FULL: every commit",
)
