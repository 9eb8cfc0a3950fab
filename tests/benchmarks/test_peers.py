"""Peers: their programs are asked, read and doubted in one way. None is installed here."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.bench import Bench, Skipped
from benchmarks.peers import adapter, environment
from benchmarks.peers.adapter import SCRIPTS, ask, read_answer
from benchmarks.peers.catalog import PEERS
from benchmarks.peers.scripts.order import out_of_order

ANSWER = {
    "jobs": 10,
    "ran": 10,
    "seconds": 2.0,
    "emit_seconds": 0.5,
    "out_of_order": 0,
    "version": "1",
    "how": "somehow",
    "fsync": "every commit",
}


def said(**other: object) -> str:
    return "a library's chatter\n" + json.dumps(ANSWER | other) + "\n"


def test_a_peer_that_did_all_of_the_work_once_has_a_rate() -> None:
    """Benchmarks: the last line of its output counts."""
    answer = read_answer("one", said(), 10)
    assert answer.rate == 5.0
    assert answer.order == "kept"
    assert read_answer("one", said(out_of_order=3), 10).order == "broken 3 times in 10"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no answer"),
        ("Traceback: no", "no answer"),
        ("{}", "no answer"),
        (said(jobs=9, ran=9), "9 of 10 jobs"),
        (said(ran=11), "in 11 runs"),
        (said(more=1), "no answer"),
    ],
)
def test_a_peer_that_did_not_is_skipped_with_what_it_did(text: str, says: str) -> None:
    """Benchmarks: no rate for work that was not done, or was done twice."""
    with pytest.raises(Skipped, match=f"one: .*{says}"):
        read_answer("one", text, 10)


def test_every_peer_has_a_program_that_needs_only_what_it_names() -> None:
    """Benchmarks: a program imports Python's library, the log beside it, and what its environment has."""
    homes = {"psycopg": "psycopg[binary,pool]"}
    for name, peer in PEERS.items():
        tree = ast.parse((SCRIPTS / f"{peer.script}.py").read_text(encoding="utf-8"))
        imported = {
            module.split(".")[0]
            for node in ast.walk(tree)
            for module in (
                [each.name for each in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        others = imported - set(sys.stdlib_module_names) - {"job_log", "order"}
        needed = {need.split("=")[0].split(">")[0] for need in peer.needs}
        assert {homes.get(other, other) for other in others} <= needed, name
        assert all("=" in need for need in peer.needs), name  # a version that is known
        assert peer.lacks
        assert peer.about


def test_each_job_that_began_too_soon_is_counted() -> None:
    """Benchmarks: order a key is checked from what happened, not from what is promised."""
    overlapping = [(0, 0, 0.0, 2.0), (0, 3, 1.0, 3.0)]
    swapped = [(1, 1, 0.0, 1.0), (1, 7, 1.0, 2.0), (1, 4, 2.0, 3.0)]
    well = [(2, 2, 0.0, 1.0), (2, 5, 1.0, 2.0)]
    assert out_of_order([*overlapping, *swapped, *well]) == 2
    assert out_of_order(well) == 0


@pytest.mark.slow
def test_a_peer_without_an_environment_is_run_and_read(tmp_path: Path) -> None:
    """Benchmarks: the protocol, with the two that need nothing but Python."""

    def postgres() -> str:
        raise AssertionError

    for name in ("serial", "asyncio-locks"):
        folder = tmp_path / name
        folder.mkdir()
        answer = ask(name, PEERS[name], jobs=20, keys=4, seconds=0.0, folder=folder, postgres=postgres)
        assert (answer.jobs, answer.out_of_order) == (20, 0)


@pytest.mark.slow
def test_a_program_that_fails_is_skipped_with_its_last_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks: others are measured all the same."""
    (tmp_path / "serial_worker.py").write_text("raise SystemExit('no disk left')")
    monkeypatch.setattr(adapter, "SCRIPTS", tmp_path)
    with pytest.raises(Skipped, match="serial: it ended with 1: no disk left"):
        ask("serial", PEERS["serial"], jobs=1, keys=1, seconds=0.0, folder=tmp_path, postgres=str)


def test_an_environment_that_is_whole_is_not_made_again(tmp_path: Path) -> None:
    """Benchmarks: installed once, and anew when another version is wanted."""
    home = tmp_path / "some"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python").touch()
    (home / "installed.txt").write_text(f"{sys.version}\nsome==1", encoding="utf-8")
    assert environment.python("some", ("some==1",), tmp_path) == str(home / "bin" / "python")


def test_what_cannot_be_installed_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks: without a network a peer is left out, and said so."""

    def create(home: Path, **options: object) -> None:
        program = home / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\necho 'no network' >&2\nexit 1\n")
        program.chmod(0o755)

    monkeypatch.setattr(environment.venv, "create", create)
    with pytest.raises(Skipped, match="some: pip install some==1 failed: no network"):
        environment.python("some", ("some==1",), tmp_path)

    def refuse(home: Path, **options: object) -> None:
        raise subprocess.CalledProcessError(1, "ensurepip")

    monkeypatch.setattr(environment.venv, "create", refuse)
    with pytest.raises(Skipped, match="other: .*cannot be made: .*ensurepip"):
        environment.python("other", ("other==1",), tmp_path)
    bench = Bench()
    bench.skip("twice")
    bench.skip("twice")
    assert bench.skipped == ["twice"]
