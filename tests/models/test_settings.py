"""What a model client is told when it is made, and where its key comes from."""

from __future__ import annotations

import logging
import subprocess
import sys
from typing import Any

import pytest

from concorde_trio import AnthropicModel, OpenAIModel
from concorde_trio._sansio.model_events import ReplyEnd
from concorde_trio.errors import UsageError
from concorde_trio.models.keys import Secrets
from concorde_trio.testing.model_checks.asking import asked, hear
from concorde_trio.testing.model_server import ServerAnswer, event_stream, open_model_server, whole
from tests.models.talking import BASE, DIALECTS, request_of

KINDS = {"OPENAI": OpenAIModel, "ANTHROPIC": AnthropicModel}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in KINDS:
        for name in ("API_KEY", "BASE_URL"):
            monkeypatch.delenv(f"{provider}_{name}", raising=False)


@pytest.mark.parametrize("provider", KINDS)
async def test_a_key_comes_from_the_environment_unless_it_is_given(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys: given, of the environment, none; a server at another address may be given none."""
    kind = KINDS[provider]
    with pytest.raises(UsageError, match=f"{provider}_API_KEY"):
        kind("m")
    request = await request_of(kind, asked(), api_key=None)
    assert "no-key" in " ".join(request.headers.values())
    monkeypatch.setenv(f"{provider}_API_KEY", " sk-environment\n")
    kind("m")
    request = await request_of(kind, asked(), api_key=None)
    assert "sk-environment" in " ".join(request.headers.values())
    request = await request_of(kind, asked(), api_key="sk-given")
    assert "sk-given" in " ".join(request.headers.values())


@pytest.mark.parametrize("provider", KINDS)
async def test_an_address_comes_from_the_environment_unless_it_is_given(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys: with another address no key is needed, and a repr shows neither key nor password."""
    kind = KINDS[provider]
    async with open_model_server() as server:
        server.answers(ServerAnswer(pieces=(whole(418, b'{"error":{"message":"a teapot"}}'),)))
        monkeypatch.setenv(f"{provider}_BASE_URL", server.url + BASE[kind])
        heard = await hear(kind("m"))
        assert heard.error.status == 418
        assert str(heard.error) == f"m at {server.url}{BASE[kind]}: status 418: a teapot"
    shown = repr(kind("m", base_url="https://me:secret@models.example/v1?key=hidden", api_key="sk-1"))
    assert shown == f"{kind.__name__}('m', base_url='https://models.example/v1')"


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"name": ""}, "named"),
        ({"name": None}, "named"),
        ({"base_url": "localhost:8000"}, "base_url"),
        ({"base_url": "ftp://x/"}, "base_url"),
        ({"api_key": 5}, "api_key"),
        ({"api_key": "sk-\u2026"}, "copy it again"),
        ({"context_window": 0}, "context_window"),
        ({"max_output_tokens": "many"}, "max_output_tokens"),
        ({"options": [1]}, "options"),
        ({"options": {"messages": []}}, "messages"),
        ({"prices": 3}, "three numbers"),
        ({"prices": (1, 2)}, "three numbers"),
        ({"prices": (1, -2, 3)}, "three numbers"),
        ({"prices": (1, float("nan"), 3)}, "three numbers"),
    ],
)
def test_settings_that_can_never_work_are_refused_at_once(kind: Any, settings: dict[str, Any], word: str) -> None:
    """Model: where they were written, not at the first request; no key is in what is said."""
    with pytest.raises(UsageError, match=word) as caught:
        kind(**{"name": "m", "base_url": "http://127.0.0.1:9", "api_key": "sk-1", **settings})
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize(("provider", "library"), [("OpenAI", "openai"), ("Anthropic", "anthropic")])
def test_a_missing_library_is_named_with_its_extra(
    provider: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Model: what to install, and no ImportError."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UsageError, match=rf"pip install 'concorde-trio\[{library}\]'"):
        KINDS[provider.upper()]("m", api_key="sk-1")


@pytest.mark.parametrize("kind", KINDS.values())
async def test_more_fields_headers_and_parameters_go_where_they_say(kind: Any) -> None:
    """Model: and a header that is a secret is treated like a key."""
    options = {"top_p": 0.5, "extra_headers": {"X-Api-Token": "tok-777"}, "extra_query": {"version": "2"}}
    request = await request_of(kind, asked(), options=options)
    assert request.headers["x-api-token"] == "tok-777"
    assert request.path.endswith("?version=2")
    assert b'"top_p":0.5' in request.body.replace(b" ", b"")
    assert b"extra_" not in request.body
    async with open_model_server() as server:
        server.answers(ServerAnswer(pieces=(whole(401, b'{"error":{"message":"bad tok-777"}}'),)))
        heard = await hear(kind("m", base_url=server.url, api_key="sk-1", options=options))
        assert str(heard.error).endswith("bad [key]")


@pytest.mark.parametrize("kind", KINDS.values())
async def test_what_the_http_library_logs_of_a_request_has_no_password_and_no_key_of_its_address(
    kind: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Keys: libraries log the whole address of each request, and ``serve`` shows what they log."""
    caplog.set_level(logging.DEBUG)
    async with open_model_server() as server:
        server.answers(ServerAnswer(pieces=event_stream(DIALECTS[kind].stream([ReplyEnd()]))))
        address = server.url.replace("://", "://me:hidden-word@") + BASE[kind]
        heard = await hear(kind("m", base_url=address, api_key="sk-1"))
        assert heard.complete, heard.error
    said = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("http"))
    assert "/v1/" in said
    assert "hidden-word" not in said


def test_a_secret_is_found_in_every_form_in_which_it_is_echoed() -> None:
    """Keys: as it is, as part of a URL, after Bearer; and where there is none, nothing is changed."""
    secrets = Secrets.of("https://u:p%2Fw@h/", "sk/1+2", headers={"Authorization": "Bearer abc", "Accept": "text"})
    assert secrets.scrub("sk/1+2 sk%2F1%2B2 p/w p%2Fw Bearer abc abc text") == "[key] " * 6 + "text"
    assert Secrets.of("https://h/", None).scrub("sk-1") == "sk-1"


@pytest.mark.parametrize("written", ["a%2Fb+c%3D", "a/b%20c=", "a%2fb%20c%3d"])
def test_a_secret_in_the_query_of_an_address_is_scrubbed_however_it_is_written(written: str) -> None:
    """Keys never reach an error: as the address has it, as a library quotes it, and as it is."""
    address = f"https://tok-1@h/v1?api-version=2&api_key={written}&subscription-token=t%2B1"
    secrets = Secrets.of(address, None)
    for form in (written, "a/b c=", "a%2Fb%20c%3D", "a%2Fb+c%3D", "t+1", "t%2B1", "tok-1"):
        assert secrets.scrub(f"GET /v1?x={form} failed") == "GET /v1?x=[key] failed"
    assert secrets.scrub("api-version=2") == "api-version=2"
    assert "tok-1" not in secrets.scrub(address) and written not in secrets.scrub(address)


@pytest.mark.slow
def test_importing_the_package_or_the_scripted_model_imports_no_sdk() -> None:
    """Model: an SDK takes most of a second to import; only its own client does it, when one is made."""
    code = (
        "import sys, concorde_trio; concorde_trio.ScriptedModel, concorde_trio.OpenAIModel, concorde_trio.AnthropicModel;"
        "print(sorted({'openai', 'anthropic', 'httpx2'} & set(sys.modules)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
