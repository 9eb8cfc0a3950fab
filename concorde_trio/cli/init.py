"""``init``: a small project that works, to begin with. The files stand in the folder ``project``, as they are written.

The law: nothing that is there is overwritten, and all files are written or none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import click

from concorde_trio.cli.options import json_option
from concorde_trio.cli.show import document, say, visible

FILES = {
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
    "gateway.py": "gateway.py.txt",
    "handlers.py": "handlers.py.txt",
    "tests/test_handlers.py": "tests/test_handlers.py.txt",
    "@name@.service": "service.txt",
}
"""What is written, by path in the project, and the text that it is made of."""

TAKEN = {"concorde-trio", "trio", "pytest", "pytest-trio", "hatchling", "root", "nobody", "daemon"}
"""Names of what a project needs itself, for pip would put the project in its place, and of users that are not for it."""

EMIT = 'concorde-trio emit order.placed \'{"customer": "ann", "item": "a lamp"}\' --wait'


@click.command()
@click.argument("folder", metavar="[DIR]", default=".")
@json_option
def init(folder: str, as_json: bool) -> None:
    """Write a small project that works into DIR, by default this folder.

    A gateway, a handler with a resource and a post phase, tests of it on a
    clock that jumps, a systemd unit, a README. The project is called as its
    folder. Files that are there are never overwritten: then nothing is written.

    \b
    Examples:
      concorde-trio init workshop
      cd workshop && python -m pytest && concorde-trio serve gateway:gateway
    """
    if "\0" in folder:
        raise click.UsageError("a path cannot have a NUL in it.")
    root = Path(folder)
    name = _name(root)
    texts = {path.replace("@name@", name): _text(source, name) for path, source in FILES.items()}
    _write(root, texts)
    if as_json:
        document({"folder": str(root.resolve()), "name": name, "files": sorted(texts)})
        return
    for path in texts:
        say(f"wrote {visible(str(root / path))}")
    say()
    say("Now:")
    if root.resolve() != Path.cwd():
        say(f"  cd {visible(_quoted(str(root)))}")
    say("  pip install pytest pytest-trio   # for its tests")
    say("  python -m pytest")
    say("  concorde-trio serve gateway:gateway")
    say("and in another terminal, in the same folder:")
    say(f"  {EMIT}")


def _name(root: Path) -> str:
    """A name for a distribution, a unit and a user, out of the folder's."""
    words = re.findall(r"[a-z0-9]+", root.resolve().name.lower())
    name = "-".join(words)[:30].strip("-")
    return name if name and name[0].isalpha() and name not in TAKEN else f"agents-{name}".strip("-")


def _text(source: str, name: str) -> str:
    place = files("concorde_trio.cli") / "project"
    for part in source.split("/"):
        place = place / part
    return place.read_text(encoding="utf-8").replace("@name@", name)


def _write(root: Path, texts: Mapping[str, str]) -> None:
    if root.exists() and not root.is_dir():
        raise click.ClickException(f"{visible(str(root))} is a file; name a folder.")
    there = [path for path in texts if (root / path).is_symlink() or (root / path).exists()]
    if there:
        names = ", ".join(visible(str(root / path)) for path in there)
        raise click.ClickException(f"nothing was written, for there is already: {names}; name another folder.")
    made: list[Path] = []
    try:
        for path, text in texts.items():
            target = root / path
            for parent in reversed([each for each in target.parents if not each.exists()]):
                parent.mkdir()
                made.append(parent)
            with target.open("x", encoding="utf-8") as file:
                made.append(target)
                file.write(text)
    except BaseException:
        for each in reversed(made):
            with suppress(OSError):
                each.rmdir() if each.is_dir() else each.unlink()
        raise


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
