"""DBOS: a queue partitioned by key, one workflow of a partition at a time. It looks for work every 10 ms instead of every second."""

import sqlite3
import time
from importlib.metadata import version

from dbos import DBOS, SetEnqueueOptions, SetWorkflowID
from job_log import ASKED, SECONDS, TEXT, Log, jobs

log = Log()
POLL = 0.01
on_sqlite = ASKED["database"].startswith("/")
if on_sqlite:
    # It leaves SQLite's rollback journal on; a write-ahead log, as everybody else here has, takes it fewer fsyncs.
    connection = sqlite3.connect(ASKED["database"])
    connection.execute("pragma journal_mode = wal")
    connection.close()
    url = f"sqlite:///{ASKED['database']}"
else:
    url = ASKED["database"]


def declare():  # type: ignore[no-untyped-def]
    """DBOS with its one workflow; it is made twice, to emit everything before anything is taken."""
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "executor_id": "bench"})

    @DBOS.workflow(name="job")
    def job(key: int, number: int, text: str) -> None:
        started = time.perf_counter()
        if SECONDS:
            time.sleep(SECONDS)
        log.ended(key, number, started)

    return job


job = declare()
DBOS.listen_queues([])
DBOS.launch()
queue = DBOS.register_queue("keys", partition_concurrency=1, polling_interval_sec=POLL)
begun = time.perf_counter()
for key, number in jobs():
    # On SQLite, before Python 3.12, it dates jobs by the second, and puts those of a second in the order of their ids.
    with SetWorkflowID(f"job-{number:08}"), SetEnqueueOptions(queue_partition_key=str(key)):
        queue.enqueue(job, key, number, TEXT)
log.emitted = time.perf_counter() - begun
DBOS.destroy(destroy_registry=True)
declare()
DBOS.launch()
log.complete.wait(ASKED["patience"])
log.answer(
    version=version("dbos"),
    how=f"partition_concurrency=1, a partition a key, ids in order, looking every {POLL * 1000:.0f} ms",
    fsync="WAL (turned on for it), synchronous FULL" if on_sqlite else "PostgreSQL: fsync and synchronous_commit on",
)
DBOS.destroy()
