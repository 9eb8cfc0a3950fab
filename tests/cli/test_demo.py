"""``demo`` hands over what it was told, and gives the demo's own status."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Command


@pytest.mark.parametrize("status", [0, 1])
def test_the_demo_gets_its_options_and_its_status_is_the_commands(
    command: Command, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """The demo's status says whether the books are right."""
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    told: list[dict[str, object]] = []

    def run_demo(**options: object) -> int:
        told.append(options)
        return status

    monkeypatch.setattr("concorde_trio.demo.run_demo", run_demo)
    assert command("demo").status == status
    assert command("demo", "--keep", "--svg", "out.svg", "--json").status == status
    assert command("demo", "--model", "qwen3", "--base-url", "http://localhost:1/v1").status == status
    nothing = {"keep": False, "svg": None, "as_json": False, "model": None, "base_url": None}
    assert told == [
        nothing,
        {**nothing, "keep": True, "svg": Path("out.svg"), "as_json": True},
        {**nothing, "model": "qwen3", "base_url": "http://localhost:1/v1"},
    ]


def test_an_address_without_a_model_is_refused(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Demo: nobody should believe that a real model answered."""
    monkeypatch.delenv("OPENAI_MODEL", raising=False)
    done = command("demo", "--base-url", "http://localhost:1/v1")
    assert done.status != 0
    assert "--base-url is for a real model; name it with --model" in done.err


def test_ctrl_c_ends_the_demo_tidily(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """130 is what a shell gives for Ctrl-C."""

    def run_demo(**options: object) -> int:
        raise BaseExceptionGroup("in a nursery", [KeyboardInterrupt()])

    monkeypatch.setattr("concorde_trio.demo.run_demo", run_demo)
    done = command("demo")
    assert (done.status, done.out, done.err) == (130, "", "")


def test_a_model_without_a_key_is_refused_before_anything_begins(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Demo: the sentence says what to set, and is all there is."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    done = command("demo", "--model", "gpt-5-mini")
    assert (done.status != 0, done.out) == (True, "")
    assert "there is no API key: set OPENAI_API_KEY" in done.err
