"""Every exception of the package, by whose fault it is: the caller's, the store's, the agent's, ours.

The law of this module: a message says what was expected, what came, and what to do next. All of them derive
from :class:`ConcordeError`; those of the caller also derive from the built-in exception a Python programmer
would look for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concorde_trio.documents import ProblemDetails


class ConcordeError(Exception):
    """The root of every exception this package raises on purpose."""


# --- the caller's: a wrong argument, a wrong moment --------------------------------------------------------


class UsageError(ConcordeError):
    """Something was asked for that can never be right; the message says what to write instead."""


class InvalidName(UsageError, ValueError):
    """A kind, session or resource name is not 1 to 200 characters without control characters (CLM-7)."""


class InvalidPrompt(UsageError, ValueError):
    """A field of a Prompt has the wrong type or value."""


class InvalidValue(UsageError, ValueError):
    """A value that JSON, or a store, cannot hold; ``place`` says where it stands (SIG-5)."""

    def __init__(self, message: str, *, place: str) -> None:
        super().__init__(message)
        self.place = place


class InvalidSchedule(UsageError, ValueError):
    """A schedule is none: its cron expression, zone or instant, as ``place`` says (SCH-6)."""

    def __init__(self, message: str, *, place: str) -> None:
        super().__init__(message)
        self.place = place


class InvalidTag(UsageError, ValueError):
    """A run tag is not 16 to 128 visible ASCII characters without comma (TAG-6)."""


class InvalidHandler(UsageError, TypeError):
    """A handler, or what a handler returned, has the wrong shape (CLM-3, CLM-4)."""


class InvalidScenario(UsageError, ValueError):
    """A scenario file of ``simulate`` is none; ``place`` names the field."""

    def __init__(self, message: str, *, place: str) -> None:
        super().__init__(message)
        self.place = place


class InsideTransaction(UsageError, RuntimeError):
    """An emit without ``tx``, or a wait for a signal, inside a transaction would deadlock (SIG-2)."""


class TransactionOver(UsageError, RuntimeError):
    """A transaction was used after it committed, rolled back, or ran out of its time (SIG-2)."""


class UnknownId(UsageError, LookupError):
    """No signal or run has this id, and no schedule this name."""


class WrongState(UsageError):
    """The signal or run exists, but is in a state in which this cannot be done."""


class SessionElsewhere(WrongState):
    """A run of this session is in flight in another process of the fleet. ``url``: of its agent server, None if it has none."""

    def __init__(self, session: str, url: str | None) -> None:
        where = f"ask there: {url}" if url else "it has no agent server that could be asked"
        super().__init__(f"session {session!r:.80} runs in another process of the fleet; {where}")
        self.url = url


class InputConflict(UsageError, ValueError):
    """An input's id was submitted again with other text or attachments (SES-10a)."""


class TemplateError(UsageError):
    """A template does not compile, or could not be rendered; the message names the kind."""


class OutsideRequest(UsageError, RuntimeError):
    """The run that a request came from was asked for where no request of an installed app is being answered (SRV-8)."""


class CannotServe(ConcordeError):
    """The agent server could not start: its address cannot be used, or the app's own start failed."""


# --- the store's --------------------------------------------------------------------------------------------


class StoreError(ConcordeError):
    """The database refused for a reason that does not pass by itself (full, corrupt, a broken constraint)."""


class StoreBusy(StoreError):
    """The database could not be reached for longer than its patience; trying again later can succeed."""


class SchemaTooNew(StoreError):
    """The database was written by a newer version of this package."""


class QueueTaken(StoreError):
    """Another worker serves this queue; the message says who (REC-1)."""


# --- the agent's --------------------------------------------------------------------------------------------


class LeaseLost(StoreError):
    """This process could not renew its lease in time, or another one leads now: what it writes changes no row.

    A worker hears of it by itself: it stops what ran under the lease, and joins its fleet again.
    """


class ProgramError(ConcordeError):
    """A program could not be started, or did not keep its contract."""


class ProgramNotStarted(ProgramError):
    """A program could not be started: it is missing, not executable, or its folder is none. Nothing ran."""


class TooManyThreads(ConcordeError):
    """A plain tool was not run: threads of earlier calls that were given up take all the room (SES-8)."""


class ModelError(ConcordeError):
    """A model request failed; the message has the provider's words, without any key.

    ``status``: the HTTP status, None if there is none. ``retry_after``: what the provider said of when to come back, as it
    stood in the header (SES-11), or None. ``connection``: no answer, or one that broke off: trying again can succeed.
    """

    def __init__(
        self, message: str, *, status: int | None = None, retry_after: str | None = None, connection: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
        self.connection = connection


# --- a server's, as its Client tells it ----------------------------------------------------------------------


class ServerGone(ConcordeError):
    """Nobody answers at that address, or the answer broke off.

    ``unheard``: the request has certainly changed nothing, so that it can be made again or in another way.
    """

    def __init__(self, message: str, *, unheard: bool) -> None:
        super().__init__(message)
        self.unheard = unheard


class ServerSilent(ConcordeError):
    """Somebody listens there, and has not answered in time. The request may have been taken."""


class RequestRefused(ConcordeError):
    """The server answered with an error. ``status``: of HTTP. ``problem``: its problem document (RFC 9457), None if it sent none.

    Its subclasses are for what is the caller's fault; it is itself for a wrong token (401), a server that is not ready (503), ...
    """

    def __init__(self, message: str, *, status: int, problem: ProblemDetails | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem = problem


class RefusedRequest(RequestRefused, UsageError):
    """400, 413, 415: the request can never be right; ``problem["errors"]`` has every wrong field."""


class RefusedId(RequestRefused, UnknownId):
    """404: there is no such thing."""


class RefusedState(RequestRefused, WrongState):
    """409: it is in a state in which this cannot be done."""


# --- ours ---------------------------------------------------------------------------------------------------


class InternalError(ConcordeError):
    """A rule of this package was broken by this package. Please report it."""
