"""What the documentation shows is run: each page is a program, of its Python, its files and its shell commands."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from concorde_trio.cli.commands import program
from tests.docs.pages import FENCE, ROOT, Block, blocks, links, pages, runs

LANGUAGES = {"python", "sh", "text", "json", "jsonl", "sql", "html", "toml", "ini", "dockerfile"}
PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages()]
RUNNABLE = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages() if runs(page)]
MOST_NOT_RUN = 14


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is_and_none_is_left_out(page: Path) -> None:
    """Docs: a block without a language, or one marked as not to be run, could say anything."""
    wrong = [
        f"{page.name}:{block.line} ```{block.language} {' '.join(block.words)}"
        for block in blocks(page)
        if block.language not in LANGUAGES or block.words
    ]
    # Code that is only indented would be code that nobody runs.
    wrong += re.findall(r"\n\n( {4}\S.*)", FENCE.sub("", page.read_text(encoding="utf-8")))
    assert not wrong


@pytest.fixture(scope="module")
def runner() -> Iterator[subprocess.Popen[str]]:
    """Runs one page after another; whatever a page warns of is an error."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "tests.docs.page_runner"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE)
def test_a_page_runs(page: Path, tmp_path: Path, runner: subprocess.Popen[str]) -> None:
    """Docs: the Python and the shell commands of a page, in order, are one program that ends well and warns of nothing."""
    assert runner.stdin is not None
    assert runner.stdout is not None
    runner.stdin.write(json.dumps([str(page), str(tmp_path)]) + "\n")
    runner.stdin.flush()
    assert runner.stdout.readline().strip() == "0", (tmp_path / "printed.txt").read_text(encoding="utf-8")


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    """Docs: what cannot be run here says so in a comment; nothing else is left out."""
    left_out = [(page.name, block.line, block.not_run) for page in pages() for block in blocks(page) if block.not_run]
    assert len(left_out) <= MOST_NOT_RUN, left_out
    assert not [found for found in left_out if len(str(found[2]).split()) < 5]


@pytest.mark.parametrize("page", PAGES)
def test_data_that_a_page_shows_can_be_read(page: Path) -> None:
    """Docs: JSON, TOML and units of systemd are what they say they are."""
    for block in blocks(page):
        if block.language == "json":
            json.loads(block.code)
        elif block.language == "jsonl":
            [json.loads(line) for line in block.code.splitlines()]
        elif block.language == "toml":
            tomllib.loads(block.code)
        elif block.language == "ini":
            unit = configparser.ConfigParser(strict=False, interpolation=None)
            unit.read_string(block.code)
            assert unit.sections()


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_exist(page: Path) -> None:
    """Docs: make targets, and commands and options of concorde-trio, are there, also in what is not run, units and images."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    wrong = []
    for block in blocks(page):
        for words in _commands(block):
            missing = [word for word in words[1:] if word not in targets] if words[0] == "make" else _missing(words[1:])
            wrong += [f"{page.name}:{block.line} {shlex.join(words)}: no {word}" for word in missing]
    assert not wrong


def _commands(block: Block) -> Iterator[list[str]]:
    """What a block has of make and concorde-trio, whoever is told to run it: a shell, systemd, or a container."""
    if block.language == "dockerfile":
        yield from (
            json.loads(found) for found in re.findall(r"^CMD (\[\"concorde-trio\".*\])$", block.code, re.MULTILINE)
        )
    elif block.language in ("sh", "ini"):
        for line in block.code.replace("\\\n", " ").splitlines():
            command = re.match(r"(?:ExecStart=\S+/|(?:[A-Z_]+=\S+ )*)((?:make|concorde-trio) .*)", line)
            if command is not None:
                yield shlex.split(command[1], comments=True)


def _missing(words: list[str]) -> list[str]:
    """Which of the words after ``concorde-trio`` are a command or an option that is not there."""
    command: click.Command | None = program
    if words and not words[0].startswith("-"):
        command = program.get_command(click.Context(program), words.pop(0))
    if command is None:
        return ["such command"]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [word for word in words if word.startswith("--") and word.split("=")[0] not in {"--help", *options}]


@pytest.mark.parametrize("page", PAGES)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    """Docs: a link within the project names a file that is there."""
    wrong = [
        link
        for link in links(page)
        if not re.match(r"https?:|#", link) and not (page.parent / link.split("#")[0]).exists()
    ]
    assert not wrong
