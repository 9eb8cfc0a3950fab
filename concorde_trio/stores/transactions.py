"""Which transactions the running task is inside of: the one place that SIG-2's "raises at once" is decided.

The law: a transaction is seen by the task that opened it and by every task started inside it, for as long as it is
open; another store's transaction is none of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from concorde_trio.errors import InsideTransaction


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


_entered: ContextVar[tuple[OpenTransaction, ...]] = ContextVar("concorde_trio_transactions", default=())


def inside(store: object) -> bool:
    """True in a task that is inside an open transaction of this store."""
    return any(each.store is store and not each.over for each in _entered.get())


def refuse_inside(store: object, what: str) -> None:
    """InsideTransaction if the task is inside an open transaction of this store; ``what`` it tried, with the fix."""
    if inside(store):
        raise InsideTransaction(f"{what} inside a transaction of the same store would wait for itself for ever")


@contextmanager
def entered(transaction: OpenTransaction) -> Iterator[None]:
    """The body, and tasks started in it, are inside ``transaction``."""
    _entered.set((*_entered.get(), transaction))
    try:
        yield
    finally:
        # No token: a context manager may be left in another context than it was entered in.
        _entered.set(tuple(each for each in _entered.get() if each is not transaction))
