"""Both stores once more, with sessions: their changes alone and among a worker's, and every read compared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from concorde_trio._sansio.changes import Change
from concorde_trio._sansio.session_changes import (
    AddInput,
    AddMessage,
    EmitSignals,
    LinkInputs,
    SaveSession,
    SessionChange,
    SettleInputs,
)
from concorde_trio.messages import Input, InputState, Message, Role
from concorde_trio.records import Usage
from concorde_trio.sessions.store import SessionFilter
from concorde_trio.testing.session_store_checks.samples import all_of
from tests.stores.test_stores_agree import CHANGES, NEW, SESSIONS, SIGNALS, TIMES, StoresAgree

pytestmark = pytest.mark.slow

IDS = st.sampled_from([f"i{number}" for number in range(6)])
SEQS = st.integers(1, 8) | st.integers(1, 30)
NUMBERS = st.integers(0, 9) | st.sampled_from([-1, 2**63])
WORDS = st.sampled_from(["", "hello", "żółć 🙂"]) | st.sampled_from(["a\0b", "\ud800"])
JSONS = st.sampled_from([None, [], {"a": [0.1, None]}, "漢", [[[[1]]]], float("inf")])


@st.composite
def _message(draw: Any) -> AddMessage:
    seq = draw(SEQS)
    role = draw(st.sampled_from([Role.USER, Role.ASSISTANT, Role.SUMMARY, Role.SUMMARY]))
    covers = draw(st.integers(-1, seq)) if role is Role.SUMMARY and draw(st.integers(0, 9)) else None
    message = Message(
        seq=seq,
        role=role,
        text=draw(WORDS) if draw(st.integers(0, 5)) == 0 else "hello",
        at=draw(TIMES),
        provider=draw(JSONS) if draw(st.integers(0, 5)) == 0 else None,
        covers=covers,
        keeps=tuple(draw(st.lists(SEQS, max_size=3))) if role is Role.SUMMARY else (),
    )
    return AddMessage(draw(SESSIONS), message)


@st.composite
def _input(draw: Any) -> AddInput:
    odd = draw(st.integers(0, 5)) == 0
    spoken = Input(
        id=draw(IDS),
        text=draw(WORDS) if odd else "hello",
        at=draw(TIMES),
        sender=draw(st.none() | WORDS) if odd else None,
        attachments=tuple(draw(st.lists(JSONS, max_size=2))) if odd else (),
    )
    return AddInput(
        session=draw(SESSIONS), input=spoken, prompt=draw(st.booleans()), signal_id=draw(st.none() | SIGNALS)
    )


IDS_OF = st.lists(IDS, min_size=1, max_size=2).map(tuple)
SESSION_CHANGES = st.one_of(
    st.builds(
        SaveSession,
        session=SESSIONS,
        at=TIMES,
        last_epoch=NUMBERS,
        last_registration=st.integers(0, 9),
        usage=st.builds(Usage, input_tokens=st.integers(0, 9), cost=st.none() | st.floats(0, 9)),
        held=st.booleans(),
    ),
    _message(),
    _message(),
    _input(),
    _input(),
    st.builds(SettleInputs, IDS_OF, st.sampled_from([*InputState, InputState.DELIVERED]), TIMES),
    st.builds(LinkInputs, IDS_OF, SIGNALS),
    st.builds(EmitSignals, st.lists(NEW, max_size=2).map(tuple)),
)


class SessionStoresAgree(StoresAgree):
    """What ``StoresAgree`` does, and sessions."""

    @rule(changes=st.lists(SESSION_CHANGES, min_size=1, max_size=5))
    def sessions_step(self, changes: list[SessionChange]) -> None:
        self.both(lambda store: store.apply(changes))  # type: ignore[arg-type]

    @rule(change=SESSION_CHANGES)
    def one_change(self, change: SessionChange) -> None:
        self.both(lambda store: store.apply([change]))  # type: ignore[list-item]

    @rule(changes=st.lists(SESSION_CHANGES | CHANGES, min_size=2, max_size=4))
    def mixed_step(self, changes: list[Change]) -> None:
        self.write(changes)

    @rule(before=TIMES, limit=st.integers(0, 3))
    def prune_sessions(self, before: float, limit: int) -> None:
        self.both(lambda store: store.prune_sessions(before, limit))  # type: ignore[attr-defined]

    @rule(
        prefix=st.none() | st.sampled_from(["", "a", "bob", "x", "\ud800"]),
        before=st.none() | st.tuples(TIMES, SESSIONS),
        limit=st.integers(0, 3),
    )
    def list_sessions(self, **where: Any) -> None:
        self.both(lambda store: store.sessions(SessionFilter(**where)))  # type: ignore[attr-defined]

    @rule(session=SESSIONS, after=st.integers(-1, 9), limit=st.integers(0, 4))
    def list_messages(self, session: str, after: int, limit: int) -> None:
        self.both(lambda store: store.messages(session, after=after, limit=limit))  # type: ignore[attr-defined]
        self.both(lambda store: store.latest_messages(session, limit=limit))  # type: ignore[attr-defined]

    @invariant()
    def all_reads_of_sessions_agree(self) -> None:
        async def read(store: Any) -> dict[str, Any]:
            found = await all_of(store)
            inputs = {f"i{number}": await store.input(f"i{number}") for number in range(6)}
            return {
                **{name: value for name, value in found.items() if name not in ("pending", "signals", "unfinished")},
                **inputs,
                "ann's": await store.unsettled_inputs("ann"),
            }

        self.both(read)


TestSessionStoresAgree = SessionStoresAgree.TestCase
profile = settings.default
assert profile is not None
TestSessionStoresAgree.settings = settings(stateful_step_count=25, max_examples=max(10, profile.max_examples // 6))
