"""The colours of the page: texts can be read in both themes, and the dark one is the same wherever it is chosen."""

from __future__ import annotations

import re

import pytest

from tests.structure.tree import PACKAGE

TEXT = (PACKAGE / "server" / "dashboard" / "colours.css").read_text(encoding="utf-8")
BLOCK = re.compile(r"^(\s*)(:root[^{]*)\{(.*?)^\1\}", re.MULTILINE | re.DOTALL)
BLOCKS = [dict(re.findall(r"--([a-z0-9-]+): (#[0-9a-f]{6});", body)) for _, _, body in BLOCK.findall(TEXT)]
READ = [(ink, ground) for ink in ("ink", "ink-2", "ink-3", "accent") for ground in ("ground", "sheet", "raised")] + [
    ("ink", "sunk"),
    ("ink", "accent-soft"),
    ("ink-2", "accent-soft"),
    ("ink", "waiting-soft"),
    ("warn", "warn-soft"),
    ("warn", "sheet"),
    ("bad", "bad-soft"),
    ("bad", "sheet"),
    ("good", "sheet"),
    ("good", "ground"),
    ("done-ink", "sheet"),
    ("failed-ink", "sheet"),
    ("limited-ink", "sheet"),
    ("sheet", "bad"),
    ("sheet", "accent"),
    ("ink", "done"),
    ("running-ink", "running"),
    ("post-ink", "post"),
]
SEEN = [(edge, "sheet") for edge in ("edge-strong", "focus", "running", "waiting", "held", "post", "failed", "limited")]


def light_of(colour: str) -> float:
    """Relative luminance, as WCAG defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The ratio of two colours, 1 to 21."""
    lights = sorted((light_of(one), light_of(other)))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def test_dark_is_dark_by_the_systems_wish_and_by_the_button() -> None:
    """The dashboard: the two dark blocks are one, and give a value to every colour of the light one."""
    light, chosen, wished = BLOCKS
    assert chosen == wished
    assert chosen.keys() == light.keys()


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_and_edges_stand_out_from_what_is_behind_them(theme: int) -> None:
    """The dashboard: 4.5 for texts, 3 for what only has to be seen (WCAG 2.2, 1.4.3 and 1.4.11)."""
    colours = BLOCKS[theme]
    faint = {
        f"{ink} on {ground}": round(contrast(colours[ink], colours[ground]), 2)
        for least, pairs in ((4.5, READ), (3.0, SEEN))
        for ink, ground in pairs
        if contrast(colours[ink], colours[ground]) < least
    }
    assert faint == {}
