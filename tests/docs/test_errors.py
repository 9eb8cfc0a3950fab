"""docs/errors.md is complete, and says of each exception why it comes and what cures it."""

from __future__ import annotations

import re
import tomllib

import concorde_trio.errors
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
CLASS = re.compile(r"^ *class ([A-Za-z]\w*)\(([^)]*)\):", re.MULTILINE)
ENTRY = re.compile(r"^### (\w+)\n\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)

# Raised and caught by the package itself, or by a program of the demo: nobody outside sees one.
INNER = {
    "ConnectionLost",
    "GaveUp",
    "PipeClosed",
    "Problem",
    "RowMismatch",
    "ScriptedFailure",
    "ScriptedFault",
    "Stopped",
    "TooLarge",
    "TooLong",
    "Unfit",
}


def _classes() -> dict[str, type[BaseException]]:
    return {name: value for name, value in vars(concorde_trio.errors).items() if isinstance(value, type)}


def test_every_exception_has_its_place_on_the_page() -> None:
    """Docs: none is missing, none is made up, and they come in the order of the module."""
    assert [name for name, _ in ENTRY.findall(PAGE)] == list(_classes())


def test_every_exception_is_explained_by_cause_and_cure() -> None:
    """Docs: who meets one wants to know why, and what to do."""
    for name, text in ENTRY.findall(PAGE):
        cause, _, cure = text.partition("**Cure.** ")
        assert "**Cause.** " in cause, name
        assert cure.strip(), name


def test_what_an_exception_is_besides_stands_there() -> None:
    """Docs: "also a ValueError" is what decides who catches it."""
    texts = dict(ENTRY.findall(PAGE))
    for name, value in _classes().items():
        for base in value.__bases__:
            if base.__name__ in (
                "ValueError",
                "TypeError",
                "RuntimeError",
                "LookupError",
                "WrongState",
            ) or name.startswith("Refused"):
                named = base.__name__ == "RequestRefused" or f"`{base.__name__}`" in texts[name].partition("**")[0]
                assert named, (name, base)


def test_no_exception_that_somebody_could_see_is_elsewhere() -> None:
    """Docs: a class that is raised to users belongs into concorde_trio.errors."""
    elsewhere = set()
    for path in (ROOT / "concorde_trio").rglob("*.py"):
        if path.name == "errors.py" or "testing" in path.parts:
            continue
        for name, bases in CLASS.findall(path.read_text(encoding="utf-8")):
            if any(re.fullmatch(r"\w*(Error|Exception)", base.strip()) for base in bases.split(",")):
                elsewhere.add(name)
    assert elsewhere - INNER == set()


def test_the_page_quotes_what_is_really_said() -> None:
    """Docs: the sentences of failed runs and signals are those of the code, up to what is filled in."""
    source = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "concorde_trio").rglob("*.py")))
    code = re.sub(r'"\s*\n\s*f?"', "", source)
    tables = PAGE.partition("## In the error of a run")[2].partition("## What you asked for")[0]
    quoted = re.findall(r"^\| (.*?) \|", tables, re.MULTILINE)
    assert len(quoted) > 10
    for cell in quoted:
        for sentence in re.findall(r"`([^`]+)`", cell):
            for piece in re.split(r"…|'|\d of \d|NAME", sentence):
                if len(piece.strip(" ;:")) > 8:
                    assert piece.strip(" ;:") in code, piece


def test_the_extras_that_errors_and_pages_name_exist() -> None:
    """Docs: `pip install 'concorde-trio[x]'` names extras that there are."""
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    )
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for named in re.findall(r"pip install [^`\n]*\[([a-z,]+)\]", page.read_text(encoding="utf-8")):
            assert set(named.split(",")) <= extras, page
