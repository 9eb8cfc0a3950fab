"""Files stay small, named for what they are, and free of the place they were written at."""

from __future__ import annotations

import ast
import re
import statistics
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.structure.tree import PACKAGE, ROOT, files_of_tests, modules, parsed, project

SHIPPED_TEXT = {".py", ".sql", ".html", ".css", ".js", ".md", ".toml", ".json", ".svg", ".txt", ""}


def lines(path: Path) -> int:
    return path.read_text(encoding="utf-8").count("\n")


def test_no_file_is_two_ideas() -> None:
    """Files: none over 500 lines, and most of the package's near 150."""
    assert {
        str(path.relative_to(ROOT)): lines(path) for path in modules() + files_of_tests() if lines(path) > 500
    } == {}
    assert statistics.median(lines(path) for path in modules() if path.name != "__init__.py") < 200


def test_no_module_is_named_for_nothing() -> None:
    """Files: utils, helpers, common and types say nothing of what is in them."""
    nothing = re.compile(r"_?(utils?|helpers?|common|types|misc|base)")
    assert not [path for path in modules() + files_of_tests() if nothing.fullmatch(path.stem)]


def test_every_module_says_its_law_in_its_first_lines() -> None:
    """Files: a module begins with what it is for."""
    assert not [
        str(path.relative_to(ROOT))
        for path in modules() + files_of_tests()
        if (text := path.read_text(encoding="utf-8")).strip() and not text.startswith('"""')
    ]


def test_every_test_file_is_in_the_folder_of_what_it_tests() -> None:
    """Files: nothing but conftest.py stands beside the folders, and each folder has its own test names."""
    beside = [path.name for path in (ROOT / "tests").glob("*.py")]
    assert beside in (["conftest.py"], ["__init__.py", "conftest.py"], ["conftest.py", "__init__.py"])


@pytest.mark.slow
def test_every_test_is_a_sentence_with_a_docstring() -> None:
    """Files: a test says in its docstring which rule it pins, and its name says what holds."""
    wrong = []
    for path in files_of_tests():
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
                continue
            if not ast.get_docstring(node) or node.name.count("_") < 2:
                wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}")
    assert not wrong


def test_nothing_names_the_place_it_was_written_at() -> None:
    """Files: no path of the machine of whoever wrote it."""
    places = re.compile("/" + "(work|root|home)" + "/[a-z]")
    found = []
    for folder in ("concorde_trio", "tests", "docs", "benchmarks", ".ci"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in SHIPPED_TEXT and "__pycache__" not in path.parts:
                found += [str(path.relative_to(ROOT)) for _ in places.finditer(path.read_text(encoding="utf-8"))]
    assert not found


@pytest.mark.slow
def test_a_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    """Files: SQL, pages and the guard are part of what is installed; tests are not."""
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shipped = {
        str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    assert shipped - names == set()
    assert "concorde_trio/py.typed" in names
    assert not [name for name in names if not name.startswith(("concorde_trio/", "concorde_trio-"))]
    (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
    assert {f"{info}/licenses/LICENSE-MIT", f"{info}/licenses/LICENSE-APACHE"} <= names


def test_every_extra_is_one_that_the_design_names() -> None:
    """Files: extras are promises; docs/design.md says what each brings."""
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    extras = set(project()["project"]["optional-dependencies"]) - {"test", "check"}
    assert not {extra for extra in extras if f"`{extra}`" not in design}
