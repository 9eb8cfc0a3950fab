"""One suite over all model clients, against a server that plays bytes on a real socket."""

from __future__ import annotations

import pytest

from concorde_trio.models.anthropic import AnthropicModel
from concorde_trio.models.openai import OpenAIModel
from concorde_trio.sessions.model import Model
from concorde_trio.testing import model_checks
from concorde_trio.testing.model_checks.asking import Check, MakeModel
from concorde_trio.testing.model_dialects import AnthropicDialect, Dialect, OpenAIDialect

pytestmark = pytest.mark.slow


def openai(base_url: str, key: str) -> Model:
    return OpenAIModel("gpt-check", base_url=base_url, api_key=key)


def anthropic(base_url: str, key: str) -> Model:
    return AnthropicModel("claude-check", base_url=base_url, api_key=key)


CLIENTS = {"openai": (openai, OpenAIDialect()), "anthropic": (anthropic, AnthropicDialect())}

THOUSANDS = {"a_reply_that_is_cut_at_any_byte_is_no_reply"}
"""Checks with a thousand requests; the others take milliseconds."""


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS.keys())
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=name, marks=[pytest.mark.slow] if name in THOUSANDS else [])
        for name, check in model_checks.items()
    ],
)
async def test_every_client(check: Check, client: tuple[MakeModel, Dialect]) -> None:
    """SES-2, SES-3, SES-11, SES-13, LSE-3, F-02, F-03, F-04, F-18: the rule is in the docstring of each check."""
    await check(*client)


def test_every_check_names_its_rule() -> None:
    """The suite is read by people who write a client."""
    for name, check in model_checks.items():
        assert check.__doc__, name
        assert check.__doc__.split()[0].rstrip(".,:").split("-")[0] in ("SES", "LSE", "Model", "Keys"), name
