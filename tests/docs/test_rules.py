"""docs/rules.md is true: what it names exists, what it promises is pinned by tests, and it is up to date."""

from __future__ import annotations

import pytest

from tests.docs.rules import PAGE, ROOT, Rule, chapters, named_rules, pins, render

RULES = [rule for _, rules in chapters() for rule in rules]
LAST = {
    "SIG": 8,
    "CLM": 7,
    "LCK": 7,
    "RUN": 7,
    "PST": 5,
    "TAG": 6,
    "REC": 6,
    "STP": 5,
    "LSE": 11,
    "SES": 22,
    "SRV": 8,
    "SCH": 7,
}
EVERY = pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])


def test_every_rule_is_there_once_and_in_its_order() -> None:
    """Docs: no rule is forgotten, and none is made up."""
    expected = []
    for prefix, last in LAST.items():
        for number in range(0 if prefix == "SES" else 1, last + 1):
            expected.append(f"{prefix}-{number}")
            expected += {"SES-10": ["SES-10a", "SES-10b"], "SES-12": ["SES-12a"]}.get(expected[-1], [])
    assert [rule.name for rule in RULES] == expected


@EVERY
def test_a_rule_says_something_and_where_it_is_kept(rule: Rule) -> None:
    """Docs: a rule that is kept names files that exist, and one that is planned claims none."""
    assert rule.text.strip().endswith(".")
    assert rule.status in {"done", "part", "planned"}
    assert bool(rule.missing) == (rule.status == "part")
    assert bool(rule.where) == (rule.status != "planned")
    assert not [where for where in rule.where if not (ROOT / "concorde_trio" / where).exists()]


@EVERY
def test_a_rule_that_is_kept_is_pinned_by_a_test(rule: Rule) -> None:
    """Docs: a promise that no test holds us to is none. (TAG-5 promises that something is not the case.)"""
    if rule.status != "planned" and rule.name != "TAG-5" and rule.name not in pins():
        pytest.fail(f"no test names {rule.name} in its docstring")


def test_tests_name_no_rule_that_does_not_exist() -> None:
    """Docs: a slip in a docstring would hide a test from the page."""
    known = {rule.name for rule in RULES}
    assert not {name: found for name, found in pins().items() if name not in known}


def test_the_page_is_up_to_date() -> None:
    """Docs: the page is what the rules and the tests make of it; `make rules` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == render(), "docs/rules.md is out of date: run `make rules`"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("LCK-2: a run starts.", {"LCK-2"}),
        ("SIG-1, SIG-2 and SES-10a.", {"SIG-1", "SIG-2", "SES-10a"}),
        ("REC-2 to REC-4, all of them", {"REC-2", "REC-3", "REC-4"}),
        ("Q-28 and RFC-9457 are none", set()),
    ],
)
def test_the_rules_of_a_docstring_are_found(text: str, names: set[str]) -> None:
    """Docs: names, lists of names and ranges."""
    assert named_rules(text) == names
