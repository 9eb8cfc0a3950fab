"""What a worker knows of sessions: its harness, the store that keeps them, and problem documents where it keeps none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from concorde_trio.conversations.keeper import NONE_KEPT, keeps_sessions, sessions_of
from concorde_trio.errors import UnknownId, WrongState
from concorde_trio.server.problems import Problem
from concorde_trio.server.seam import Worker
from concorde_trio.sessions.harness import SessionHarness
from concorde_trio.sessions.loop import SessionLoop
from concorde_trio.sessions.store import SessionStore


def harness_of(worker: Worker) -> SessionHarness:
    """The worker's sessions. Problem 409 if its runtime keeps none, 503 while it is not open."""
    if not keeps_sessions(worker.runtime):
        raise Problem(409, NONE_KEPT)
    try:
        return sessions_of(worker.runtime)
    except WrongState as error:
        raise Problem(503, f"the sessions are not open now: {error}; try again", headers={"retry-after": "1"}) from None


def loops_of(worker: Worker) -> Mapping[str, SessionLoop]:
    """The sessions that are in memory, by name."""
    try:
        return sessions_of(worker.runtime).loops if keeps_sessions(worker.runtime) else {}
    except WrongState:
        return {}


def store_of(worker: Worker) -> SessionStore:
    """Where sessions are kept. Problem 409 if that is nowhere."""
    if keeps_sessions(worker.runtime):
        return harness_of(worker).store
    if not hasattr(worker.store, "load_session"):
        raise Problem(409, f"{NONE_KEPT}; and this queue's store, a {type(worker.store).__name__}, keeps none either")
    return cast("SessionStore", worker.store)


async def check_known(worker: Worker, session: str) -> None:
    """UnknownId if there is no such session, neither stored nor in memory."""
    if session not in loops_of(worker) and await store_of(worker).session(session) is None:
        raise UnknownId(f"there is no session {session!r:.80}")
