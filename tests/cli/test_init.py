"""``init`` writes a project, or nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from concorde_trio.cli import init as init_module
from tests.cli.running import Command

FILES = [
    *(".gitignore", "README.md", "gateway.py", "handlers.py", "pyproject.toml", "tests/test_handlers.py"),
    "work-shop-2.service",
]


def written(folder: Path) -> list[str]:
    """Every file in a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_project_is_written_and_what_comes_next_is_said(command: Command, here: Path) -> None:
    """Named as its folder, with no place of ours in it."""
    done = command("init", "a/Work Shop 2")
    assert done.status == 0, done
    folder = here / "a" / "Work Shop 2"
    assert written(folder) == FILES
    assert "cd 'a/Work Shop 2'" in done.out
    assert "concorde-trio serve gateway:gateway" in done.out
    for path in FILES:
        text = (folder / path).read_text()
        assert "@name@" not in text
        assert text.endswith("\n")
    assert 'name = "work-shop-2"' in (folder / "pyproject.toml").read_text()
    assert "User=work-shop-2" in (folder / "work-shop-2.service").read_text()


def test_this_folder_is_the_default(command: Command, here: Path) -> None:
    """With --json one document."""
    folder = here / "2fast"
    folder.mkdir()
    os.chdir(folder)
    (folder / "notes.txt").write_text("mine")
    said = command("init", "--json").json
    assert (said["folder"], said["name"]) == (str(folder), "agents-2fast")
    assert written(folder) == sorted([*said["files"], "notes.txt"])


def test_nothing_that_is_there_is_overwritten(command: Command, here: Path) -> None:
    """The files are named, and none is written; a link that leads nowhere is there, too."""
    (here / "x" / "tests").mkdir(parents=True)
    (here / "x" / "handlers.py").write_text("mine")
    (here / "x" / "tests" / "test_handlers.py").symlink_to("nowhere")
    done = command("init", "x")
    assert done.status == 1
    sentence = done.sentence()
    assert "nothing was written" in sentence and "x/handlers.py, x/tests/test_handlers.py" in sentence
    assert written(here / "x") == ["handlers.py"]
    assert (here / "x" / "handlers.py").read_text() == "mine"
    (here / "file").write_text("")
    assert "is a file; name a folder" in command("init", "file").sentence()


def test_what_cannot_be_written_leaves_nothing_half_written(
    command: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a full disk, at the last file."""
    monkeypatch.setattr(init_module, "FILES", {**init_module.FILES, "\ud800": "gitignore.txt"})
    done = command("init", "x/y")
    assert done.status == 1
    assert not (here / "x").exists()


@pytest.mark.parametrize("folder", ["concorde-trio", "Concorde_Trio", "trio", "root"])
def test_a_project_never_has_the_name_of_what_it_needs(command: Command, here: Path, folder: str) -> None:
    """pip would put it in the place of that, and a unit would run as root."""
    assert command("init", folder).status == 0
    written = (here / folder / "pyproject.toml").read_text()
    name = "agents-" + folder.lower().replace("_", "-")
    assert f'name = "{name}"' in written
    assert f"User={name}\n" in (here / folder / f"{name}.service").read_text()
