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
    told: list[dict[str, object]] = []

    def run_demo(**options: object) -> int:
        told.append(options)
        return status

    monkeypatch.setattr("concorde_trio.demo.run_demo", run_demo)
    assert command("demo").status == status
    assert command("demo", "--keep", "--svg", "out.svg", "--json").status == status
    assert told == [
        {"keep": False, "svg": None, "as_json": False},
        {"keep": True, "svg": Path("out.svg"), "as_json": True},
    ]


def test_ctrl_c_ends_the_demo_tidily(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """130 is what a shell gives for Ctrl-C."""

    def run_demo(**options: object) -> int:
        raise BaseExceptionGroup("in a nursery", [KeyboardInterrupt()])

    monkeypatch.setattr("concorde_trio.demo.run_demo", run_demo)
    done = command("demo")
    assert (done.status, done.out, done.err) == (130, "", "")
