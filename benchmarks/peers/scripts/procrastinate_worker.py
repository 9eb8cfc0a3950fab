"""procrastinate: a lock a key (its own way to keep order), as many jobs at once as there are keys."""

import asyncio
import logging
import time
from importlib.metadata import version

import procrastinate
from job_log import ASKED, KEYS, SECONDS, TEXT, Log, jobs

logging.disable(logging.WARNING)
log = Log()
connector = procrastinate.PsycopgConnector(conninfo=ASKED["database"], min_size=2, max_size=20)
app = procrastinate.App(connector=connector)


@app.task(name="job")
async def job(key: int, number: int, text: str) -> None:
    started = time.perf_counter()
    if SECONDS:
        await asyncio.sleep(SECONDS)
    log.ended(key, number, started)


async def main() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        begun = time.perf_counter()
        for key, number in jobs():
            await job.configure(lock=f"key-{key}").defer_async(key=key, number=number, text=TEXT)
        log.emitted = time.perf_counter() - begun
        await connector.execute_query_async(
            "analyze"
        )  # as autovacuum would in a while: its queries are planned far better
        await app.run_worker_async(wait=False, concurrency=KEYS, install_signal_handlers=False)


asyncio.run(main())
log.answer(
    version=version("procrastinate"),
    how=f"async worker, concurrency={KEYS}, lock= of each job, pool of 20, tables analyzed before",
    fsync="PostgreSQL: fsync and synchronous_commit on",
)
