"""Which transactions the running task is inside of: the one place that SIG-2's "raises at once" is decided.

The law: a transaction is seen by the task that opened it and by every task started inside it, for as long as it is
open; another store's transaction is none of ours.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar

import trio

from concorde_trio.errors import InsideTransaction, TransactionOver


class OpenTransaction(Protocol):
    """What is asked of a transaction here."""

    @property
    def over(self) -> bool:
        """True once it committed, rolled back or ran out of time."""
        ...

    @property
    def store(self) -> object:
        """The store it belongs to."""
        ...


class HeldTransaction(OpenTransaction, Protocol):
    """One that holds a writer."""

    async def end(self, *, commit: bool) -> None:
        """Commit or roll back. Shielded inside, for a commit is never abandoned."""
        ...


T = TypeVar("T", bound=HeldTransaction)

_FIRST_WORD = re.compile(r"(?:\s|;|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$))*([a-zA-Z]*)", re.DOTALL)

_entered: ContextVar[tuple[OpenTransaction, ...]] = ContextVar("concorde_trio_transactions", default=())


def inside(store: object) -> bool:
    """True in a task that is inside an open transaction of this store."""
    return any(each.store is store and not each.over for each in _entered.get())


def refuse_inside(store: object, what: str) -> None:
    """InsideTransaction if the task is inside an open transaction of this store; ``what`` it tried, with the fix."""
    if inside(store):
        raise InsideTransaction(f"{what} inside a transaction of the same store would wait for itself for ever")


def first_word(sql: str) -> str:
    """The word that a statement begins with, after white space and comments, in lower case."""
    first = _FIRST_WORD.match(sql)
    return first[1].lower() if first else ""


@contextmanager
def entered(transaction: OpenTransaction) -> Iterator[None]:
    """The body, and tasks started in it, are inside ``transaction``."""
    _entered.set((*_entered.get(), transaction))
    try:
        yield
    finally:
        # No token: a context manager may be left in another context than it was entered in.
        _entered.set(tuple(each for each in _entered.get() if each is not transaction))


@asynccontextmanager
async def bounded(tx: T, time_limit: float) -> AsyncIterator[T]:
    """The block of a transaction that has begun: commits on leaving, rolls back on an exception.

    After ``time_limit`` seconds it is rolled back, the body cancelled, and TransactionOver raised.
    """
    try:
        with entered(tx), trio.move_on_after(time_limit) as scope:  # noqa: ASYNC100  The body is theirs.
            yield tx
        if scope.cancelled_caught or trio.current_time() >= scope.deadline:
            raise TransactionOver(
                f"the transaction passed its time_limit of {time_limit:g} s and was rolled back; "
                "do less in it, or give it more time"
            )
    except BaseException:
        await tx.end(commit=False)  # noqa: ASYNC102  Shielded inside.
        raise
    await tx.end(commit=True)
