"""What the documentation shows is run: Python as it stands, shell commands as far as they exist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from concorde_trio.cli.commands import program
from tests.docs.pages import FENCE, ROOT, blocks, links, pages

LANGUAGES = {"python", "sh", "text", "json", "jsonl", "sql", "html", "toml", "yaml", "http"}
PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages()]
RUNNABLE = [
    pytest.param(page, id=str(page.relative_to(ROOT)))
    for page in pages()
    if any(block.language == "python" for block in blocks(page))
]


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


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """Docs: the blocks of a page, in order, are one program that ends well and warns of nothing."""
    lines = [""] * (page.read_text(encoding="utf-8").count("\n") + 1)
    for block in blocks(page):
        if block.language == "python":
            code = block.code.splitlines()
            lines[block.line - 1 : block.line - 1 + len(code)] = code  # so that a traceback names the page's lines
    program = tmp_path / page.with_suffix(".py").name
    program.write_text("\n".join(lines), encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-W", "error", str(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_exist(page: Path) -> None:
    """Docs: make targets and commands of concorde-trio that a page shows are there."""
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    wrong = []
    for block in blocks(page):
        if block.language != "sh":
            continue
        for line in block.code.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            words = [word for word in words if not re.match(r"[A-Z_]+=", word)]
            if not words:
                continue
            if words[0] == "make":
                missing = [word for word in words[1:] if word not in targets]
            elif words[0] == "concorde-trio":
                missing = _missing(words[1:])
            else:
                missing = [] if words[0] in {"cd", "pip", "python"} or shutil.which(words[0]) else words[:1]
            wrong += [f"{page.name}:{block.line} {line}: no {word}" for word in missing]
    assert not wrong


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
