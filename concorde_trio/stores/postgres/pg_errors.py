"""What PostgreSQL's errors mean: whether one passes by itself, and what a person can do about it (REC-5).

The law: a lost connection, a restart, a failover and a conflict with others pass, and are tried again with growing
pauses; a wrong password, a full disk and a broken constraint do not, and are a StoreError at once.
"""

from __future__ import annotations

import re

import psycopg

from concorde_trio.errors import StoreBusy, StoreError
from concorde_trio.stores.postgres.place import Place

_PASSING_CLASSES = frozenset({"08"})  # connection exceptions
_PASSING = frozenset(
    {
        "25006",  # read-only transaction: a standby that was, or will be, the primary
        "25P03",  # idle in a transaction for too long
        "40001",  # serialization failure
        "40P01",  # deadlock
        "53200",  # out of memory
        "53300",  # too many connections
        "55P03",  # a lock was not to be had in time
        "57014",  # cancelled, or the statement's time was up
        "57P01",  # the server, or this connection, is being shut down
        "57P02",  # the server crashed
        "57P03",  # the server is starting
        "57P05",  # idle for too long
        "58030",  # an I/O error
    }
)
_GONE = frozenset({"25006", "25P03", "57P01", "57P02", "57P03", "57P05"})

_REFUSED = re.compile(
    "password authentication failed|no password supplied|no pg_hba.conf entry|role .* does not exist"
    "|database .* does not exist|authentication failed|certificate|server does not support SSL",
    re.IGNORECASE,
)
"""A connection that fails before the server's first word has no code, only a text."""

_ADVICE = {
    "53100": "the server's disk is full; make room",
    "28P01": "see the user and the password in the URL",
    "28000": "see the user in the URL, and pg_hba.conf on the server",
    "3D000": "create the database, or name another one in the URL",
    "42501": "give this user the right to it (to make the schema: CREATE on the database)",
    "XX001": "the database is damaged; restore it from a backup",
    "XX002": "an index is damaged; REINDEX it",
}


def passes(error: BaseException) -> bool:
    """True if trying again later can succeed."""
    if not isinstance(error, psycopg.Error):
        return False
    code = error.sqlstate
    if code is None:
        lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        return lost and not _REFUSED.search(str(error))
    return code in _PASSING or code[:2] in _PASSING_CLASSES


def gone(error: BaseException, connection: psycopg.Connection[tuple[object, ...]] | None) -> bool:
    """True if the connection is of no use any more."""
    if connection is None or connection.closed or connection.broken:
        return True
    return isinstance(error, psycopg.Error) and (error.sqlstate in _GONE or (error.sqlstate or "")[:2] == "08")


def store_error(error: BaseException, place: Place) -> StoreError:
    """The StoreError for an error that does not pass; its cause should be ``error``."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, UnicodeError):
        return StoreError(f"the database {place.name} cannot hold this text: {error}")
    advice = _ADVICE.get(getattr(error, "sqlstate", None) or "")
    return StoreError(f"the database {place.name} refused: {_said(error)}{'; ' + advice if advice else ''}")


def store_busy(error: BaseException | None, place: Place, patience: float) -> StoreBusy:
    """The StoreBusy for an error that did not pass in ``patience`` seconds."""
    said = f" (last: {_said(error)})" if error is not None else ""
    return StoreBusy(
        f"the database {place.name} could not be used for {patience:g} s{said}; see whether the server runs and can be "
        "reached, and whether another session holds what is needed in a long transaction, and try again"
    )


def _said(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
