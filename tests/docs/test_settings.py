"""The table of settings in docs/models-and-tools.md is what the class has."""

from __future__ import annotations

import ast
import re

import attrs

from concorde_trio import SessionSettings
from tests.docs.pages import ROOT

ROW = re.compile(r"^\| `(\w+)` \| .+ \| (\S+) \|$", re.MULTILINE)


def test_the_table_of_settings_has_every_setting_with_its_default() -> None:
    """Docs: a setting that is added, renamed or set otherwise is so in the table too, in the same order."""
    page = (ROOT / "docs" / "models-and-tools.md").read_text(encoding="utf-8")
    table = page[page.index("## Settings") :]
    found = [(name, ast.literal_eval(value.strip("`").replace(",", ""))) for name, value in ROW.findall(table)]
    assert found == [(field.name, field.default) for field in attrs.fields(SessionSettings)]
