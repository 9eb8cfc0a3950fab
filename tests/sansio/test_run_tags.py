"""Which run a tag names, and what is masked."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.run_tags import MASK, RunTags, check_tag, erase, erase_json
from concorde_trio.errors import InternalError, InvalidTag

TAG = "tag-0123456789abcdef"
OTHER = "tag-fedcba9876543210"

few_letters = st.text("ab[]\\", min_size=16, max_size=20)
tags = few_letters | st.text("".join(map(chr, range(33, 127))).replace(",", ""), min_size=16, max_size=128)


def known(*known_tags: str) -> RunTags[str]:
    run_tags = RunTags[str]()
    for tag in known_tags:
        run_tags.expect(tag)
    return run_tags


@pytest.mark.parametrize("tag", ["!" * 16, "~" * 128, TAG, '"quoted"\\and/so-on'])
def test_a_tag_is_16_to_128_visible_ascii_characters(tag: str) -> None:
    """TAG-6."""
    assert check_tag(tag) is tag


@pytest.mark.parametrize(
    "tag",
    [
        "",
        "a" * 15,
        "a" * 129,
        "a" * 16 + ",",
        "a" * 8 + " " + "a" * 8,
        "a" * 16 + "\n",
        "a" * 16 + "\x7f",
        "a" * 16 + "é",
        "a" * 16 + "\0",
        b"a" * 16,
        None,
        12345678901234567,
    ],
)
def test_anything_else_is_no_tag_and_the_message_does_not_tell_it(tag: object) -> None:
    """TAG-6, TAG-4: a refused tag is not repeated in the error either."""
    with pytest.raises(InvalidTag) as refused:
        check_tag(tag)
    assert "new_tag() makes one" in str(refused.value)
    assert "aaaa" not in str(refused.value)
    for method in (RunTags[str]().expect, lambda tag: RunTags[str]().claim(tag, "r1")):
        with pytest.raises(InvalidTag):
            method(tag)  # type: ignore[arg-type]


def test_a_live_tag_names_its_run() -> None:
    """TAG-3."""
    run_tags = RunTags[str]()
    assert run_tags.claim(TAG, "r1")
    assert run_tags.claim(OTHER, "r2")
    assert run_tags.lookup([TAG]) == "r1"
    assert run_tags.lookup((OTHER,)) == "r2"


@pytest.mark.parametrize(
    "values",
    [
        [],
        [""],
        [" "],
        [TAG, TAG],
        [TAG, ""],
        [f"{TAG},{OTHER}"],
        [f"{TAG}, {TAG}"],
        [f" {TAG}"],
        [f"{TAG} "],
        [TAG.upper()],
        [TAG[:-1]],
        [TAG + "x"],
        [f'"{TAG}"'],
        [OTHER],
        ["x" * 10_000],
    ],
)
def test_everything_else_names_nothing(values: list[str]) -> None:
    """TAG-3: no fallback, not even with a single run in flight."""
    run_tags = RunTags[str]()
    run_tags.claim(TAG, "r1")
    run_tags.expect(OTHER)
    assert run_tags.lookup(values) is None


def test_a_tag_is_live_from_claim_to_release_only() -> None:
    """TAG-1: not while the run waits, and not after it."""
    run_tags = known(TAG)
    assert run_tags.lookup([TAG]) is None
    run_tags.claim(TAG, "r1")
    run_tags.release(TAG, "r1")
    assert run_tags.lookup([TAG]) is None


def test_a_tag_that_is_live_on_another_run_stays_there() -> None:
    """TAG-2: the second claim is refused, and the refused run cannot release the first one's."""
    run_tags = RunTags[str]()
    assert run_tags.claim(TAG, "r1")
    assert not run_tags.claim(TAG, "r2")
    run_tags.release(TAG, "r2")
    assert run_tags.lookup([TAG]) == "r1"
    assert run_tags.claim(TAG, "r1"), "its own run has it already"
    run_tags.release(TAG, "r1")
    assert run_tags.claim(TAG, "r2")
    assert run_tags.lookup([TAG]) == "r2"


def test_an_expected_and_a_live_tag_are_masked_until_nobody_has_it() -> None:
    """TAG-4: two queued runs carry one tag; it is masked until both are over."""
    run_tags = known(TAG, TAG)
    text = f"use {TAG}, please"
    assert run_tags.mask(text) == f"use {MASK}, please"
    run_tags.claim(TAG, "r1")
    run_tags.forget(TAG)
    run_tags.forget(TAG)
    assert run_tags.mask(text) == f"use {MASK}, please"
    run_tags.release(TAG, "r1")
    assert run_tags.mask(text) == text
    with pytest.raises(InternalError):
        run_tags.forget(TAG)


@pytest.mark.parametrize("distance", range(20))
def test_a_tag_is_masked_wherever_it_stands(distance: int) -> None:
    """TAG-4: at any distance from the start, at the ends, twice, without anything between."""
    before = "é" * distance
    run_tags = known(TAG)
    assert run_tags.mask(f"{before}{TAG}") == f"{before}{MASK}"
    assert run_tags.mask(f"{TAG}{before}{TAG}!") == f"{MASK}{before}{MASK}!"


def test_overlapping_tags_leave_nothing_of_each_other() -> None:
    """TAG-4: one in another, and one that begins in another."""
    run_tags = known("a" * 16, "a" * 16 + "b" * 8, "b" * 8 + "c" * 8)
    assert run_tags.mask("-" + "a" * 16 + "b" * 8 + "-") == f"-{MASK}-"
    assert run_tags.mask("-" + "a" * 16 + "b" * 8 + "c" * 8 + "-") == f"-{MASK}-"
    assert run_tags.mask("-" + "a" * 40 + "-") == f"-{MASK}-"
    assert run_tags.mask("-" + "a" * 16 + "c" * 8 + "-") == f"-{MASK}{'c' * 8}-"
    assert known(TAG + "wxyz", (TAG + "wxyz")[2:20]).mask(f"-{TAG}wxyz-") == f"-{MASK}-"


def test_the_end_of_a_mask_makes_no_new_tag() -> None:
    """TAG-4: masking goes on until nothing is left."""
    run_tags = known(TAG, "tag]" + "0" * 12)
    assert run_tags.mask(TAG + "0" * 12) == f"[run {MASK}"


def test_a_tag_inside_json_text_is_masked_as_json_writes_it() -> None:
    """TAG-4: tool arguments are JSON text, in which quotes and backslashes are escaped."""
    tag = 'with"quote\\and-backslash'
    assert known(tag).mask(json.dumps({"command": f"curl -H {tag}"})) == json.dumps({"command": f"curl -H {MASK}"})


def test_every_string_of_a_json_value_is_masked_keys_included() -> None:
    """TAG-4."""
    value = {"a": [TAG, 1, None, True, {"deep": f"x{TAG}"}], TAG: 1.5, f"{OTHER}": "plain"}
    run_tags = known(TAG, OTHER)
    assert run_tags.mask_json(value) == {
        "a": [MASK, 1, None, True, {"deep": f"x{MASK}"}],
        MASK: 1.5,
        f"{MASK} 2": "plain",
    }
    assert value["a"][0] == TAG, "what was given is not changed"  # type: ignore[index]
    assert run_tags.mask_json(TAG) == MASK
    assert list(run_tags.mask_json({"z": 1, "a": 2})) == ["z", "a"]


def test_a_value_deeper_than_the_stack_is_masked() -> None:
    """TAG-4, SRV-5: what an agent nests cannot break what shows it."""
    value: object = TAG
    for _ in range(20_000):
        value = [value]
    masked = known(TAG).mask_json(value)
    while isinstance(masked, list):
        masked = masked[0]
    assert masked == MASK


def test_erasing_takes_one_tag_out_of_a_text_and_of_a_value() -> None:
    """TAG-4: what is stored of a run once it has ended."""
    assert erase(f"{TAG} {OTHER}", TAG) == f"{MASK} {OTHER}"
    assert erase_json({"a": [TAG], TAG: OTHER}, TAG) == {"a": [MASK], MASK: OTHER}


@given(st.lists(tags, min_size=1, max_size=5), st.data())
def test_no_known_tag_stands_in_a_masked_text(known_tags: list[str], data: st.DataObject) -> None:
    """TAG-4: whatever the tags are and however they overlap; a text without any comes back as it was."""
    run_tags = known(*known_tags)
    whole = st.sampled_from(known_tags)
    parts = whole.flatmap(
        lambda tag: st.tuples(st.integers(0, 9), st.integers(9, 20)).map(lambda cut: tag[slice(*cut)])
    )
    text = "".join(data.draw(st.lists(whole | parts | st.text(max_size=9) | few_letters, max_size=8)))
    masked = run_tags.mask(text)
    assert not any(tag in masked for tag in known_tags)
    if not any(tag in text or json.dumps(tag)[1:-1] in text for tag in known_tags):
        assert masked == text
    assert run_tags.mask(masked) == masked


around = st.text(st.characters(exclude_categories=["Lu"]), max_size=40)


@given(around, st.text("ABCDEFG", min_size=16, max_size=128), around)
def test_what_stands_around_a_tag_stays(before: str, tag: str, after: str) -> None:
    """TAG-4: masking takes the tag and nothing else."""
    assert known(tag).mask(before + tag + after) == before + MASK + after


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["expect", "forget", "claim", "release"]),
            st.sampled_from([TAG, OTHER]),
            st.sampled_from(["r1", "r2"]),
        ),
        max_size=30,
    )
)
def test_masks_and_claims_follow_the_calls(calls: list[tuple[str, str, str]]) -> None:
    """TAG-2, TAG-4: against counts that are kept beside."""
    run_tags = RunTags[str]()
    expected = {TAG: 0, OTHER: 0}
    live: dict[str, str] = {}
    for what, tag, run in calls:
        if what == "expect":
            run_tags.expect(tag)
            expected[tag] += 1
        elif what == "forget" and expected[tag]:
            run_tags.forget(tag)
            expected[tag] -= 1
        elif what == "claim":
            assert run_tags.claim(tag, run) == (live.setdefault(tag, run) == run)
        elif what == "release":
            run_tags.release(tag, run)
            if live.get(tag) == run:
                del live[tag]
        for one in (TAG, OTHER):
            assert run_tags.lookup([one]) == live.get(one)
            assert run_tags.mask(f"x{one}") == ("x" + MASK if expected[one] or one in live else f"x{one}")
