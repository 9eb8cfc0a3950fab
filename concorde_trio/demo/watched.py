"""Any model, with a note in the journal of what it was sent and when it had answered.

The law: it adds nothing to a request and takes nothing from a reply; it is where the check sees what sessions did.
"""

from __future__ import annotations

from collections.abc import Callable

from concorde_trio._sansio.model_events import CallStarted, ModelEvent, ModelRequest, Purpose, ReplyEnd
from concorde_trio.demo.reading import Reading, read_errand
from concorde_trio.sessions.model import Model, OnEvent


class WatchedModel:
    """``note(what, errand, **more)`` writes a line: start (of an errand), asked, heard (``text``), answered, finish, broke."""

    def __init__(self, model: Model, note: Callable[..., None]) -> None:
        self._model = model
        self._note = note
        self._started: set[tuple[str, int]] = set()
        self._heard: set[tuple[str, int]] = set()

    @property
    def name(self) -> str:
        """What the provider calls it."""
        return self._model.name

    @property
    def context_window(self) -> int | None:
        """Tokens; None: not known."""
        return self._model.context_window

    async def stream(self, request: ModelRequest, on_event: OnEvent, /) -> None:
        """See ``Model.stream``."""
        if request.purpose is not Purpose.TURN:
            return await self._model.stream(request, on_event)
        reading = read_errand(request.messages)
        session, calls, ended = request.session, False, False
        self._read(session, reading)

        def heard(event: ModelEvent) -> None:
            nonlocal calls, ended
            calls = calls or isinstance(event, CallStarted)
            ended = ended or isinstance(event, ReplyEnd)
            on_event(event)

        try:
            await self._model.stream(request, heard)
        finally:
            what = ("answered" if calls else "finish") if ended else "broke"
            self._note(what, reading.number, session=session)
        return None

    def _read(self, session: str, reading: Reading) -> None:
        new = (session, reading.seq) not in self._started
        self._started.add((session, reading.seq))
        self._note("start" if new else "asked", reading.number, session=session)
        said = [(each.seq, each.text) for each in reading.heard]
        if not reading.number:  # what somebody said when no errand was being done
            said.insert(0, (reading.seq, reading.said))
        for seq, text in said:
            if (session, seq) not in self._heard:
                self._heard.add((session, seq))
                self._note("heard", reading.number, session=session, text=text)
