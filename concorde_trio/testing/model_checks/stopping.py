"""That a client can be stopped wherever it waits, and that its requests are each alone."""

from __future__ import annotations

import trio

from concorde_trio._sansio.model_events import CallDelta, CallStarted, Ping, ReplyEnd, StopReason, TextDelta
from concorde_trio.testing.model_checks.asking import HOLDS, Heard, MakeModel, asked, hear, same_reply, served
from concorde_trio.testing.model_dialects import Dialect
from concorde_trio.testing.model_server import HeardRequest, ServerAnswer, event_stream

EVENTS = (
    Ping(),
    TextDelta("thinking "),
    TextDelta("aloud"),
    CallStarted(0, "c", "write"),
    CallDelta(0, '{"path":'),
    CallDelta(0, '"a"}'),
    ReplyEnd(StopReason.CALLS),
)


def phases(dialect: Dialect) -> dict[str, ServerAnswer]:
    """Every place where a server can fall silent (F-02), by name."""
    head, *rest = event_stream(dialect.stream(EVENTS))
    status_line = head.index(b"\r\n") + 2
    silent: dict[str, tuple[bytes, ...]] = {
        "before the status line": (),
        "in the status line": (head[:9],),
        "after the status line": (head[:status_line],),
        "in the headers": (head[: len(head) - 5],),
        "before the first byte": (head,),
        "in the first event": (head, rest[0][:-6]),
        "after pings alone": (head, rest[0]),
        "in the text": (head, *rest[:2]),
        "in an event of the text": (head, *rest[:2], rest[2][: len(rest[2]) // 2]),
        "after a call began": (head, *rest[:4]),
        "in the arguments of a call": (head, *rest[:5]),
        "before the end": (head, *rest[:6]),
        "in the end": (head, *rest[:6], rest[6][:9]),
    }
    return {
        "while it sends the request": ServerAnswer(deaf=True),
        **{name: ServerAnswer(pieces=pieces, then="stall") for name, pieces in silent.items()},
    }


async def a_stalled_request_ends_when_it_is_cancelled(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-3, F-02, F-08: in every phase; no end is told, nothing is told afterwards, and the server sees the client go."""
    async with served(make_model, dialect) as (server, model):
        for number, (phase, answer) in enumerate(phases(dialect).items()):
            server.answers(answer)
            heard = Heard()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(hear, model, None, heard)
                exchange = await server.exchange(number)
                await exchange.played.wait()
                nursery.cancel_scope.cancel()
            told = list(heard.events)
            assert heard.error is None, f"SES-3: cancelled {phase}, the client raised {heard.error!r} instead"
            assert not heard.returned, f"SES-3: stalled {phase}, the client returned"
            assert not heard.complete, f"SES-13: stalled {phase}, the client told of an end"
            with trio.move_on_after(HOLDS) as scope:
                await exchange.gone.wait()
            assert not scope.cancelled_caught, f"F-08: cancelled {phase}, the client kept its connection"
            assert heard.events == told, f"SES-12: cancelled {phase}, and then {heard.events[len(told) :]} was told"


async def a_client_can_be_used_after_a_cancelled_request(make_model: MakeModel, dialect: Dialect) -> None:
    """SES-3: a request that was cancelled, before it began or in its middle, leaves nothing behind."""
    stalled, good = phases(dialect)["in the text"], ServerAnswer(pieces=event_stream(dialect.stream(EVENTS)))
    async with served(make_model, dialect) as (server, model):
        with trio.CancelScope() as scope:
            scope.cancel()
            await hear(model)
        assert not server.requests, "SES-12: a request that was cancelled before it began was sent"
        for _ in range(3):
            server.answers(stalled)
            async with trio.open_nursery() as nursery:
                number = len(server.exchanges)
                nursery.start_soon(hear, model)
                await (await server.exchange(number)).played.wait()
                nursery.cancel_scope.cancel()
            server.answers(good)
            same_reply(await hear(model), EVENTS, "SES-3")


async def requests_at_the_same_time_do_not_mix(make_model: MakeModel, dialect: Dialect) -> None:
    """Model: safe to call concurrently; one that stalls, fails or is cancelled is nothing to the others."""

    def answer(request: HeardRequest) -> ServerAnswer:
        body = request.body.decode()
        number = body.partition("number <")[2].partition(">")[0]
        if number in ("3", "7"):
            return ServerAnswer(pieces=event_stream(dialect.stream([TextDelta("3")]))[:2], then="stall")
        if number == "5":
            return ServerAnswer(then="reset")
        said = [TextDelta(f"{number},")] * 20
        return ServerAnswer(pieces=event_stream(dialect.stream([*said, ReplyEnd()])))

    async with served(make_model, dialect) as (server, model):
        server.answers(answer)
        heard = [Heard() for _ in range(20)]
        over = trio.Semaphore(0)

        async def one(number: int) -> None:
            await hear(model, asked(f"number <{number}>"), heard[number])
            over.release()

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(one, number)
            for _ in range(18):
                await over.acquire()
            nursery.cancel_scope.cancel()
        for number, each in enumerate(heard):
            if number in (3, 7):
                assert not each.complete, f"Model: number {number} stalled, and ended"
            elif number == 5:
                assert each.error is not None, "Model: number 5 was reset, and did not fail"
            else:
                expected = f"{number}," * 20
                assert each.reply.text == expected, f"Model: number {number} got {each.reply.text!r}"
