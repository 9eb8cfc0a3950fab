"""``schedules``, ``schedule`` and ``unschedule`` on a queue that nobody serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Command

MORNING = ("schedule", "morning", "0 7 * * *", "--zone", "Europe/Berlin", "--kind", "day.began")


def test_a_schedule_is_put_listed_shown_and_removed(command: Command, household: Path) -> None:
    """SCH-1, SCH-5: without a worker, which is said."""
    done = command(*MORNING, "--payload", '{"n": 1}')
    assert done.status == 0, done
    assert done.out.startswith("morning is scheduled: day.began next at 20")
    assert "no worker serves this queue now" in done.err
    assert command(*MORNING, "--payload", '{"n": 1}').out.startswith("morning is scheduled so already")
    command("schedule", "gifts", "--at", "2099-12-24T18:00", "--zone", "Europe/Berlin", "--kind", "gifts.due")
    listed = command("schedules")
    head, gifts, morning = listed.out.splitlines()
    assert head.split() == ["NAME", "KIND", "WHEN", "NEXT", "LAST", "FIRED", "MISSED"]
    assert gifts.split()[:3] == ["gifts", "gifts.due", "at"]
    assert "0 7 * * *  Europe/Berlin" in morning
    assert "what is due meanwhile will be missed" in listed.err
    page = command("schedules", "--json").json
    assert [(each["name"], each["payload"], each["cron"]) for each in page["schedules"]] == [
        ("gifts", None, None),
        ("morning", {"n": 1}, "0 7 * * *"),
    ]
    assert page["schedules"][0]["at"] == 4_101_814_800.0
    shown = command("schedules", "morning")
    assert '"n": 1' in shown.out
    assert command("schedules", "morning", "--json").json == page["schedules"][1]
    assert command("unschedule", "morning").out == "morning is removed\n"
    assert command("unschedule", "gifts", "--json").json == {"name": "gifts", "removed": True}
    assert command("schedules").err == "no schedules\n"
    gone = command("unschedule", "morning")
    assert (gone.status, gone.sentence()) == (1, "there is no schedule 'morning'")


def test_json_says_whether_anything_changed(command: Command, household: Path) -> None:
    """SCH-5: a script may put them at every start."""
    assert command(*MORNING, "--json").json["changed"] is True
    assert command(*MORNING, "--json").json["changed"] is False
    assert command(*MORNING, "--json", "--payload", "2").json["changed"] is True


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("schedule", "s", "--kind", "k"), 'give either a cron expression, such as "0 7 * * *", or --at INSTANT'),
        (("schedule", "s", "0 7 * * *", "--at", "2099-01-01T00:00Z", "--kind", "k"), "give either"),
        (("schedule", "s", "0 7 * *", "--kind", "k"), "has 4"),
        (("schedule", "s", "0 7 * * *", "--zone", "Berlin", "--kind", "k"), "did you mean Europe/Berlin"),
        (("schedule", "s", "--at", "soon", "--kind", "k"), "an instant is a date and time with its offset"),
        (("schedule", "s", "--at", "2001-01-01T00:00Z", "--kind", "k"), "has passed: it is 20"),
        (("schedule", "s", "0 7 * * *"), "--kind"),
        (("schedule", "a b", "0 7 * * *", "--kind", "k"), "morning-report"),
        (("schedule", "s", "0 7 * * *", "--kind", "k", "--payload", "{"), "not JSON"),
        (("schedules", "--limit", "3"), "--limit"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_nothing_is_stored(
    arguments: tuple[str, ...], says: str, command: Command, household: Path
) -> None:
    """SCH-6: exit status 2."""
    done = command(*arguments)
    assert says in done.sentence()
    assert done.status == 2
    assert command("schedules", "--json").json["schedules"] == []


def test_a_misspelt_queue_is_not_made(command: Command, here: Path) -> None:
    """SCH-6: as for every command."""
    assert "there is no concorde.db" in command(*MORNING).sentence()
    assert not list(here.iterdir())
