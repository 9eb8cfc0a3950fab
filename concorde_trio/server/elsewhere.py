"""What another process of the fleet answers: who asks here is sent there, by 307, which keeps the method and the body.

The law: what is told of locks and events is the leader's, and what is done to a session in a run is told where that run is. A
member that does not know where says 503, and never answers with half of it.
"""

from __future__ import annotations

from quart import request

from concorde_trio.errors import SessionElsewhere
from concorde_trio.server.problems import Problem, ProblemDocument
from concorde_trio.server.seam import Worker


async def to_leader(worker: Worker) -> None:
    """Raise Problem 307 to the leader, or 503 if there is none to be asked, unless the lock table is here."""
    if worker.leads:
        return
    seen = await worker.leader()
    if seen is None:
        raise Problem(503, "nobody leads the fleet at this moment; ask again", headers={"retry-after": "1"})
    if seen.url is None:
        raise Problem(
            503,
            f"member {seen.member[:12]} leads the fleet, and has no agent server that can be asked from this machine; see "
            "`concorde-trio fleet` for where it is",
        )
    raise Problem(
        307,
        f"the lock table is at the leader of the fleet: ask {seen.url}",
        headers={"location": there(seen.url)},
    )


def session_elsewhere(error: SessionElsewhere) -> ProblemDocument:
    """The answer to who asks for a session that is in a run of another member."""
    if error.url is None:
        return ProblemDocument(status=409, detail=str(error))
    return ProblemDocument(status=307, detail=str(error), headers={"location": there(error.url)})


def there(url: str) -> str:
    """The address of the current request at another member."""
    raw: bytes = request.scope.get("raw_path") or request.path.encode()
    query: bytes = request.scope.get("query_string", b"")
    path = raw.partition(b"?")[0].decode("latin-1")
    return f"{url.rstrip('/')}{path}{'?' if query else ''}{query.decode('latin-1')}"
