"""The rules of docs/rules.toml and the tests that carry their names, as docs/rules.md.

``python -m tests.docs.rules --write`` writes the page anew; without ``--write`` it is printed.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "docs" / "rules.toml"
PAGE = ROOT / "docs" / "rules.md"

NAME = re.compile(r"\b((?:SIG|CLM|LCK|RUN|PST|TAG|REC|STP|LSE|SES|SRV|SCH)-)(\d+)([ab])?\b")
RANGE = re.compile(rf"{NAME.pattern}(?: to |–){NAME.pattern}")

HEAD = """\
# The rules

What is promised, rule by rule. A test that pins a rule has its name in its docstring; this page lists them. It is made of
[rules.toml](rules.toml) and the tests by `make rules`: change those, not this page. What is *planned* is not there yet, and
what is there *in part* says what is missing.
"""


@attrs.frozen(kw_only=True)
class Rule:
    """One rule. ``where`` are paths below concorde_trio; ``missing`` is said of a rule that is kept in part."""

    name: str
    text: str
    where: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    status: str = "done"
    missing: str = ""


@attrs.frozen
class Pin:
    """A test function that names a rule: its file and its name."""

    path: str
    name: str

    @property
    def sentence(self) -> str:
        """The name as the sentence that it is."""
        return self.name.removeprefix("test_").replace("_", " ")


def chapters() -> list[tuple[str, list[Rule]]]:
    """The chapters in order: title and rules."""
    source: dict[str, Any] = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    rules = [Rule(name=name, **fields) for name, fields in source["rules"].items()]
    return [
        (chapter["title"], [rule for rule in rules if rule.name.startswith(chapter["prefix"] + "-")])
        for chapter in source["chapter"]
    ]


def named_rules(text: str) -> set[str]:
    """The rules that a docstring names; ``REC-2 to REC-4`` names three."""
    found = {"".join(part or "" for part in match.groups()) for match in NAME.finditer(text)}
    for match in RANGE.finditer(text):
        prefix, first, _, other, last, _ = match.groups()
        if prefix == other:
            found |= {f"{prefix}{number}" for number in range(int(first), int(last) + 1)}
    return found


@functools.cache
def pins() -> dict[str, list[Pin]]:
    """Every rule that a test's docstring names, with its tests, in the order of files and lines."""
    found: dict[str, list[Pin]] = defaultdict(list)
    # The suites that every store and runtime must pass are functions of concorde_trio.testing, named for what holds.
    for folder, files, prefix in (("tests", "test_*.py", "test_"), ("concorde_trio/testing", "*.py", "")):
        for path in sorted((ROOT / folder).rglob(files)):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(prefix):
                    for rule in named_rules(ast.get_docstring(node) or ""):
                        found[rule].append(Pin(path.relative_to(ROOT).as_posix(), node.name))
    return found


def render() -> str:
    """The whole page."""
    tests = pins()
    lines = [HEAD]
    for title, rules in chapters():
        lines.append(f"## {title}\n")
        for rule in rules:
            lines += _render(rule, tests.get(rule.name, []))
    return "\n".join(lines)


def _render(rule: Rule, tests: list[Pin]) -> list[str]:
    status = {"planned": " *Planned.*", "part": f" *In part; missing: {rule.missing}.*"}.get(rule.status, "")
    lines = [f"**{rule.name}** {rule.text}{status}\n"]
    if rule.where:
        places = ", ".join(f"[{where}](../concorde_trio/{where})" for where in rule.where)
        lines.append(f"Where: {places}.\n")
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_file[test.path].append(test.sentence)
    for path, sentences in by_file.items():
        lines.append(f"- [{path.removeprefix('tests/')}](../{path}): {'; '.join(sentences)}")
    if by_file:
        lines.append("")
    return lines


def main() -> None:
    """Print the page, or write it with ``--write``."""
    if "--write" in sys.argv[1:]:
        PAGE.write_text(render(), encoding="utf-8")
        print(f"{PAGE.relative_to(ROOT)} is written.")
    else:
        print(render())


if __name__ == "__main__":
    main()
