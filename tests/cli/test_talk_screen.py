"""What a talk shows of a turn's end."""

from __future__ import annotations

import pytest

from concorde_trio.cli.talk_screen import TalkScreen

ENDED = {"outcome": "ok", "error": None}


@pytest.mark.parametrize(("texts", "says"), [(["", " \n"], True), (["", "so"], False)])
def test_a_turn_that_ends_without_a_word_is_said_to(
    texts: list[str], says: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """SES-12a: who waits for an answer sees that none comes any more."""
    screen = TalkScreen()
    screen.show("TurnEnded", ENDED)
    assert "no answer" not in capsys.readouterr().out, "what was said before we came is not known"
    screen.show("TurnStarted", {})
    for text in texts:
        screen.show("text", {"text": text})
    screen.show("TurnEnded", ENDED)
    assert ("(no answer)" in capsys.readouterr().out) is says
