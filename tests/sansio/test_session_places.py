"""Places of inputs that wait: who came first stays first, whichever way it waits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from concorde_trio._sansio.session_places import Places

IDS = st.sampled_from("abcdef")


def test_a_place_is_kept_until_it_is_given_up() -> None:
    """SES-10: taken again it is the same one; forgotten it is none, and the next one is behind all others."""
    places = Places("abc")
    places.take("a")
    assert places.of("a") < places.of("b") < places.of("c")
    places.forget("a")
    assert places.of("a") == 0
    places.take("a")
    assert places.of("a") > places.of("c") == places.last_of("bc")
    assert places.last_of("xyz") == 0


def test_what_stands_for_an_input_stands_where_that_one_stood() -> None:
    """SES-21: the prompt that a handler made of an input is not behind what came after that input."""
    places = Places("abc")
    places.take("prompt", of="a")
    assert places.of("prompt") == places.of("a") < places.of("b")
    places.take("other", of="gone")
    assert places.of("other") > places.of("c")


@given(st.lists(IDS, unique=True), st.lists(IDS, unique=True))
def test_the_stored_order_is_taken_over_and_what_it_does_not_know_comes_after(
    here: list[str], stored: list[str]
) -> None:
    """SES-10: other processes write into the ledger, which knows the order; what is not in it yet came later."""
    places = Places(here)
    places.learn(stored)
    expected = [*stored, *(each for each in here if each not in stored)]
    assert sorted({*here, *stored}, key=places.of) == expected
