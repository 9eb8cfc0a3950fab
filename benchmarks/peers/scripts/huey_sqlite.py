"""huey on SQLite, its consumer's threads in this process. With several workers there is no order; with one there is."""

import logging
import time
from importlib.metadata import version

from huey import SqliteHuey
from job_log import ASKED, KEYS, SECONDS, TEXT, Log, jobs

logging.getLogger("huey").setLevel(logging.ERROR)
log = Log()
workers = KEYS if ASKED["way"] == "unordered" else 1
huey = SqliteHuey("bench", filename=ASKED["database"], fsync=True, strict_fifo=True, results=False, timeout=60)


@huey.task()
def job(key: int, number: int, text: str) -> None:
    started = time.perf_counter()
    if SECONDS:
        time.sleep(SECONDS)
    log.ended(key, number, started)


begun = time.perf_counter()
for key, number in jobs():
    job(key, number, TEXT)
log.emitted = time.perf_counter() - begun
consumer = huey.create_consumer(
    workers=workers, worker_type="thread", periodic=False, initial_delay=0.01, max_delay=0.1
)
consumer.start()
log.complete.wait(ASKED["patience"])
consumer.stop(graceful=True)
log.answer(
    version=version("huey"),
    how=f"SqliteHuey, consumer with {workers} thread{'s' if workers > 1 else ''}, no results",
    fsync="fsync=True: WAL, synchronous FULL",
)
