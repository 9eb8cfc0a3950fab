"""What a handler of the user's logs is put down to the run that its request came from."""

from __future__ import annotations

import io
import json
import logging

import pytest
from quart_trio import QuartTrio

from concorde_trio import JsonLogFormatter
from tests.server.house import open_house

pytestmark = pytest.mark.slow

TAG = "tag-of-ann-0123456789"


async def test_a_handlers_line_says_which_run_asked_and_nobodys_says_nobody() -> None:
    """Logs, TAG-3: as current_run() does."""
    app, stream = QuartTrio("theirs"), io.StringIO()
    logger = logging.getLogger("tests.request_logs")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLogFormatter())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)

    @app.get("/work")
    async def work() -> str:
        logger.info("asked")
        return "ok"

    async with open_house(app=app) as house:
        run_id = await house.start(session="ann", tag=TAG)
        await house.agent.get("/work", headers={"concorde-run-tag": TAG})
        await house.agent.get("/work")
    logger.removeHandler(handler)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["run_id"], line["session"]) for line in lines] == [(run_id, "ann"), (None, None)]
