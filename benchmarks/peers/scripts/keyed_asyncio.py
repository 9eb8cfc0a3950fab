"""A task a job and an asyncio.Lock a key, in memory: nothing is stored, and a lock is taken in the order of asking."""

import asyncio
import sys
import time

from job_log import SECONDS, Log, jobs

log = Log()
locks: dict[int, asyncio.Lock] = {}


async def job(key: int, number: int) -> None:
    async with locks.setdefault(key, asyncio.Lock()):
        started = time.perf_counter()
        await asyncio.sleep(SECONDS)
        log.ended(key, number, started)


async def main() -> None:
    begun = time.perf_counter()
    tasks = [asyncio.create_task(job(key, number)) for key, number in jobs()]
    log.emitted = time.perf_counter() - begun
    await asyncio.gather(*tasks)


asyncio.run(main())
log.answer(
    version=f"Python {sys.version.split()[0]}", how="a task a job, a lock a key", fsync="none: nothing is stored"
)
