"""Thousands of requests at once, while runs begin and end: each comes from its own run, or from nobody (TAG-3, SRV-8)."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import trio
from quart import Blueprint, Response, g
from quart_trio import QuartTrio

from concorde_trio import current_run, new_tag
from tests.server.house import House, open_house, request, wire

pytestmark = pytest.mark.slow

RUNS = 20
REQUESTS = 250
"""By each of as many clients as there are runs."""


def name() -> str:
    """The run that this request comes from."""
    run = current_run()
    return "nobody" if run is None else run.id


def theirs() -> QuartTrio:
    """Hooks, a nested blueprint, a child task, a stream: all of them look, with others' requests in between."""
    app, outer, inner = QuartTrio("theirs"), Blueprint("outer", __name__), Blueprint("inner", __name__)

    @app.before_request
    async def before() -> None:
        g.seen = {name()}
        await trio.lowlevel.checkpoint()

    @outer.before_request
    async def outer_before() -> None:
        await trio.lowlevel.checkpoint()
        g.seen.add(name())

    @app.after_request
    async def after(response: Response) -> Response:
        g.seen.add(name())
        response.headers["seen"] = ",".join(sorted(g.seen))
        return response

    @inner.get("/who")
    async def who() -> Response:
        seen = g.seen

        async def child() -> None:
            await trio.lowlevel.checkpoint()
            seen.add(name())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
            nursery.start_soon(child)
        seen.add(name())

        async def pieces():  # type: ignore[no-untyped-def]
            await trio.lowlevel.checkpoint()
            yield name()

        return Response(pieces())

    outer.register_blueprint(inner, url_prefix="/inner")
    app.register_blueprint(outer, url_prefix="/outer")
    return app


def lines(*tags: str) -> tuple[str, ...]:
    """Header lines with these tags."""
    return tuple(f"concorde-run-tag: {tag}" for tag in tags)


async def ask(house: House, asked: list[tuple[tuple[str, ...], str]]) -> None:
    """Send all on one connection at once, and compare every answer with who it must come from."""
    async with wire(house.url) as connection, trio.open_nursery() as nursery:
        data = b"".join(request("/outer/inner/who", *header) for header, _ in asked)
        nursery.start_soon(connection.send, data)
        for header, expected in asked:
            answer = await connection.answer()
            assert answer is not None
            assert (answer.status, answer.headers["seen"], answer.body.decode()) == (200, expected, expected), header


async def test_of_thousands_of_requests_each_comes_from_its_own_run_or_nobody() -> None:
    """TAG-3, SRV-8: 20 runs in flight; right, missing, foreign, dead, unknown and doubled tags, interleaved."""
    drawn = random.Random(20)
    async with open_house(app=theirs()) as house:
        tags = [new_tag() for _ in range(RUNS)]
        runs = [await house.start(session=f"s{index}", tag=tag) for index, tag in enumerate(tags)]
        dead = [new_tag() for _ in range(5)]
        for tag in dead:
            await house.start(session="eve", tag=tag)
            await house.end("eve")
        kinds: Counter[str] = Counter()

        def one(mine: int) -> tuple[tuple[str, ...], str]:
            kind = drawn.choice(("right", "right", "missing", "foreign", "dead", "unknown", "doubled", "list"))
            kinds[kind] += 1
            other = drawn.randrange(RUNS)
            return {
                "right": (lines(tags[mine]), runs[mine]),
                "missing": ((), "nobody"),
                "foreign": (lines(tags[other]), runs[other]),
                "dead": (lines(drawn.choice(dead)), "nobody"),
                "unknown": (lines(new_tag()), "nobody"),
                "doubled": (lines(tags[mine], tags[other]), "nobody"),
                "list": (lines(f"{tags[mine]}, {tags[other]}"), "nobody"),
            }[kind]

        async def come_and_go() -> None:
            """Runs whose tags live, and then are dead, while the others' requests are under way."""
            for _ in range(20):
                tag = new_tag()
                run_id = await house.start(session="guest", tag=tag)
                await ask(house, [(lines(tag), run_id)] * 3)
                await house.end("guest")
                await ask(house, [(lines(tag), "nobody")] * 3)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(come_and_go)
            for mine in range(RUNS):
                nursery.start_soon(ask, house, [one(mine) for _ in range(REQUESTS)])
        assert sum(kinds.values()) == RUNS * REQUESTS
        assert min(kinds.values()) > 400
