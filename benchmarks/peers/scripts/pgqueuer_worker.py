"""pgqueuer. In order: an entrypoint a key, each with concurrency_limit=1. Unordered: one entrypoint without a limit."""

import asyncio
import logging
import time
from importlib.metadata import version

import asyncpg
from job_log import ASKED, KEYS, SECONDS, TEXT, Log, jobs
from pgqueuer import AsyncpgDriver, PgQueuer, Queries
from pgqueuer.models import Job
from pgqueuer.types import QueueExecutionMode

logging.disable(logging.WARNING)
log = Log()
ordered = ASKED["way"] == "ordered"
BATCH = 100


async def job(job: Job) -> None:
    assert job.payload is not None
    key, number, _ = job.payload.decode().split(" ")
    started = time.perf_counter()
    if SECONDS:
        await asyncio.sleep(SECONDS)
    log.ended(int(key), int(number), started)


async def main() -> None:
    connection = await asyncpg.connect(ASKED["database"])
    driver = AsyncpgDriver(connection)
    queries = Queries(driver)
    await queries.install()
    queue = PgQueuer(driver)
    for key in range(KEYS) if ordered else (0,):
        queue.entrypoint(f"job-{key}", concurrency_limit=1 if ordered else 0)(job)
    listed = jobs()
    begun = time.perf_counter()
    await queries.enqueue(
        [f"job-{key if ordered else 0}" for key, _ in listed],
        [f"{key} {number} {TEXT}".encode() for key, number in listed],
        [0] * len(listed),
    )
    log.emitted = time.perf_counter() - begun
    await queue.run(batch_size=BATCH, mode=QueueExecutionMode.drain)


asyncio.run(main())
log.answer(
    version=version("pgqueuer"),
    how=f"asyncpg, batch_size={BATCH}, "
    + ("an entrypoint a key with concurrency_limit=1" if ordered else "one entrypoint, no limit"),
    fsync="PostgreSQL: fsync and synchronous_commit on",
)
