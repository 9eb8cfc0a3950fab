"""New run tags."""

from __future__ import annotations

from concorde_trio.signals.tags import new_tag


def test_a_new_tag_is_random_and_fits_a_header() -> None:
    """TAG-6: 16 to 128 visible ASCII characters without comma, at least 128 random bits."""
    tags = {new_tag() for _ in range(1000)}
    assert len(tags) == 1000
    for tag in tags:
        assert len(tag) * 6 >= 128
        assert 16 <= len(tag) <= 128
        assert all(33 <= ord(character) < 127 and character != "," for character in tag)
    # Every place varies: none of the characters is fixed.
    assert all(len({tag[place] for tag in tags}) > 30 for place in range(24))
