"""The live server against its own OpenAPI document, with thousands of requests that schemathesis makes of it."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from concorde_trio.stores.sqlite import SqliteStore
from tests.server.house import OPERATOR
from tests.server.session_house import SessionHouse, open_session_house

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(importlib.util.find_spec("schemathesis") is None, reason="schemathesis is not installed"),
]

STREAMS = ("watch_events", "watch_session")
"""Answers without end, which have tests of their own."""

SEED = "4711"

MORE_THAN_A_SCHEMA_SAYS = """
[[operations]]
include-operation-id = "put_schedule"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400"]
"""
"""A schema cannot say which days there are, which zones, and which instants are still to come."""


async def furnish(house: SessionHouse) -> dict[str, str]:
    """Something in most states; ids by the names of the path's fields."""
    await house.say("ann", "hello")
    await house.model.answer("ann", "hi")
    first = await house.worker.emit(
        "prompts", [{"text": "x", "session": "bob", "resources": ["budget"]}, {"text": "y"}]
    )
    await house.worker.emit("prompts", [{"text": "x", "session": "carl", "resources": ["budget"]}])
    await house.say("ann", "do it")
    await house.model.call("ann", "call-1")
    await house.tool.begun.wait()
    queued = await house.say("ann", "and that")
    return {"signal_id": first, "run_id": f"{first}-1", "name": "ann", "input_id": queued["id"], "call_id": "call-1"}


async def run(house: SessionHouse, folder: Path, config: str, *options: str) -> tuple[int, str]:
    """How many cases were made, and the report; every check passed."""
    (folder / "schemathesis.toml").write_text(config)
    done = await trio.run_process(
        [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml"),
            *("run", f"{house.url}/openapi.json", "--checks", "all", "--no-color", "--seed", SEED, *options),
            *("--header", f"Authorization: Bearer {OPERATOR}"),
            *(part for name in STREAMS for part in ("--exclude-operation-id", name)),
        ],
        capture_stdout=True,
        stderr=subprocess.STDOUT,
        check=False,
        cwd=folder,
    )
    report = done.stdout.decode()
    assert done.returncode == 0, report
    cases = re.search(r"(\d+) generated, (\d+) passed", report)
    assert cases is not None and cases[1] == cases[2], report
    return int(cases[1]), report


@pytest.mark.parametrize("known", [False, True], ids=["any path", "paths that lead somewhere"])
async def test_thousands_of_requests_get_no_answer_that_the_document_does_not_tell_of(
    tmp_path: Path, known: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """SRV-5: no 500, no status, content type, header or document that is not declared; what is wrong is refused, what is right is
    not; no method that is not declared, and nothing without the token.

    NUL, which no store can hold, has tests of its own.
    """
    config = "[generation]\nallow-x00 = false\n" + MORE_THAN_A_SCHEMA_SAYS
    async with open_session_house(store=SqliteStore(tmp_path / "queue.db")) as house:
        ids = await furnish(house)
        if known:
            fixed = ", ".join(f'"path.{name}" = {json.dumps(value)}' for name, value in ids.items())
            config += f"\n[[operations]]\ninclude-path-regex = '\\{{'\nparameters = {{ {fixed} }}\n"
        made, report = await run(house, tmp_path, config, "--max-examples", "12" if known else "36")
        assert made > (300 if known else 1_000), report
        assert (await house.agent.get("/healthz")).status_code == 200
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
