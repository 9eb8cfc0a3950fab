"""``GET /metrics`` over real HTTP."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from concorde_trio.server import metrics_routes
from concorde_trio.server.access import Access
from tests.server.house import OPERATOR, House, open_house

pytestmark = pytest.mark.slow

AGENT = "agent-token-of-the-tests"


async def test_a_prometheus_can_scrape_without_a_token_on_loopback(house: House) -> None:
    """SRV-6, SRV-7: what it shows is counts; the official parser reads them."""
    await house.start(session="ann")
    answer = await house.agent.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert answer.headers["cache-control"] == "no-store"
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    (running,) = [each for each in families["concorde_trio_runs"].samples if each.labels["state"] == "running"]
    assert running.value == 1
    assert "ann" not in answer.text
    openmetrics = await house.agent.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text")
    assert openmetrics.text.endswith("# EOF\n")


async def test_beyond_loopback_a_scraper_needs_the_agents_token() -> None:
    """SRV-6: as every agent does."""
    access = Access.on("0.0.0.0", operator_token=OPERATOR, agent_token=AGENT)
    async with open_house(access=access) as house:
        assert (await house.agent.get("/metrics")).status_code == 401
        answer = await house.agent.get("/metrics", headers={"authorization": f"Bearer {AGENT}"})
        assert answer.status_code == 200


async def test_without_the_extra_nothing_is_counted_and_the_route_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SRV-7: the library is no part of what every server needs."""

    def find(name: str, *rest: Any) -> Any:
        return None if name == "prometheus_client" else importlib.util.find_spec(name, *rest)

    monkeypatch.setattr(metrics_routes, "find_spec", find)
    async with open_house() as house:
        assert house.worker.bus.measured is None
        answer = await house.agent.get("/metrics")
        assert answer.status_code == 404
        assert "pip install 'concorde-trio[metrics]'" in answer.json()["detail"]
