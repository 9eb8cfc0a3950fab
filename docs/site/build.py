"""Stages the pages, has Zensical make HTML of them, and looks at what came out.

What is staged: the pages of docs and the changelog, with links that lead out of docs taken away (what they led to is
in no site); the reference, made of docstrings; pictures. Zensical checks every link and anchor between them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from docs.site.linking import link_names, unlink_outside
from docs.site.reference import Reference, reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SETTINGS = Path(__file__).with_name("zensical.toml")
STYLE = SETTINGS.with_name("wide.css")
PICTURES = {".svg", ".png"}

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
ELSEWHERE = re.compile(r"""(?:<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=|url\()["']?(https?:[^"'\s)>]+)""")


class SiteError(Exception):
    """The site could not be built, or there was something to warn of."""


def pages() -> list[Path]:
    """The pages that people write, and rules.md."""
    return sorted(DOCS.rglob("*.md"))


def navigation() -> list[str]:
    """The paths that the navigation leads to, in its order, as seen from docs."""
    return list(_paths(tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["project"]["nav"]))


def _paths(items: list[Any]) -> list[str]:
    found: list[str] = []
    for item in items:
        for target in item.values():
            found += [target] if isinstance(target, str) else _paths(target)
    return found


def stage(folder: Path) -> None:
    """Write everything that the site is made of into a folder."""
    made = reference()
    for page in pages():
        place = page.relative_to(DOCS)
        _write(folder / "docs" / place, _staged(page.read_text(encoding="utf-8"), place, made))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _write(folder / "docs" / "changelog.md", _staged(changes, Path("changelog.md"), made))
    for path, text in made.pages.items():
        _write(folder / "docs" / path, text)
    for path in DOCS.rglob("*"):
        if path.suffix in PICTURES:
            _write(folder / "docs" / path.relative_to(DOCS), path.read_bytes())
    shutil.copyfile(SETTINGS, folder / "zensical.toml")
    shutil.copyfile(STYLE, folder / "docs" / STYLE.name)


def _staged(text: str, place: Path, made: Reference) -> str:
    return link_names(unlink_outside(text, place), place, made.names)


def _write(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def build(folder: Path) -> Path:
    """Build the site into ``folder``, which is emptied first; its start page. SiteError says what is wrong with it."""
    if folder.exists() and any(folder.iterdir()) and not (folder / "search.json").exists():
        raise SiteError(f"{folder} is there and is no site; name another folder, or remove it")
    with tempfile.TemporaryDirectory() as name:
        staged = Path(name)
        stage(staged)
        missing = [path for path in navigation() if not (staged / "docs" / path).exists()]
        if missing:
            raise SiteError(f"the navigation in {SETTINGS.name} names pages that are not there: {', '.join(missing)}")
        make(staged)
        if folder.exists():
            shutil.rmtree(folder)
        shutil.copytree(staged / "site", folder)
    return folder / "index.html"


def make(staged: Path) -> None:
    """Have Zensical make HTML of what is staged, strictly."""
    program = Path(sys.executable).with_name("zensical")
    if not program.exists():
        raise SiteError("zensical is not installed here; run: pip install -e '.[docs]'")
    result = subprocess.run(
        [str(program), "build", "--clean", "--strict"], cwd=staged, capture_output=True, text=True, check=False
    )
    said = COLOUR.sub("", result.stdout + result.stderr)
    # It counts broken links alone: what an extension of it has to say is a line of text and no failure.
    if result.returncode or re.search(r"\b(warning|error)\b", said, re.IGNORECASE):
        raise SiteError(f"zensical has something to say of the pages:\n{said.partition('Traceback')[0].strip()}")
    for page in sorted((staged / "site").rglob("*.html")):
        if found := ELSEWHERE.search(page.read_text(encoding="utf-8")):
            raise SiteError(f"{page.name} loads {found[1]} from another host")
