"""Sessions over HTTP, on a real worker: what operators see of them and say to them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.server.house import open_house
from tests.server.session_house import SessionHouse, open_session_house, path_of

pytestmark = pytest.mark.slow

NAMES = [
    "ann",
    "a/b",
    "/",
    "//a//",
    "..",
    "a/messages",
    "a%2Fb",
    "100%",
    "zoë 家",
    "?x=1",
    "a#b",
    "-",
    "a\\b",
    "x" * 200,
]


@pytest.fixture
async def house() -> AsyncIterator[SessionHouse]:
    """A served worker with sessions."""
    async with open_session_house() as opened:
        yield opened


async def test_an_input_becomes_a_run_of_its_session_and_is_answered(house: SessionHouse) -> None:
    """SES-20, SRV-3: without a run in flight it is a signal; its receipt says which."""
    receipt = await house.say("ann", "hello", sender="Ann")
    assert (receipt["state"], receipt["session"], receipt["again"]) == ("accepted", "ann", False)
    await house.model.answer("ann", "hi there")
    settled = await house.worker.wait_settled(receipt["signal_id"])
    assert (settled.kind, settled.state) == ("session.input", "done")
    found = await house.get("sessions", "ann", "messages")
    assert [(each["role"], each["text"]) for each in found["messages"]] == [
        ("user", "hello"),
        ("assistant", "hi there"),
    ]
    assert found["messages"][0]["inputs"][0]["sender"] == "Ann"
    shown = await house.until("ann", on="input")
    assert (shown["messages"], shown["queue"], shown["run"], shown["status"]) == (2, [], None, "waiting_for_input")


async def test_what_a_session_waits_for_is_told_at_any_moment(house: SessionHouse) -> None:
    """SES-12a, LSE-8: the model, a tool, then input; each with its time left."""
    await house.say("ann", "do it")
    await house.model.until_asked("ann")
    shown = await house.get("sessions", "ann")
    assert (shown["status"], shown["waiting_on"]["on"]) == ("model", "model")
    (hold,) = shown["holds"]
    assert (
        hold["what"] == "llm" and 0 < hold["left"] <= 300 and shown["run"]["id"].startswith(shown["run"]["signal_id"])
    )
    await house.model.call("ann", "call-1", {"path": "x"})
    await house.tool.begun.wait()
    shown = await house.until("ann", on="tool")
    (hold,) = shown["holds"]
    assert (hold["call_id"], hold["tool"], hold["kind"]) == ("call-1", "work", "execute")
    assert "work" in shown["waiting_on"]["about"] and shown["waiting_on"]["then"]
    house.tool.give("done")
    await house.model.answer("ann", "it is done")
    await house.until("ann", on="input", run=None)


async def test_input_that_waits_for_a_run_says_which_run_holds_its_lock(house: SessionHouse) -> None:
    """LCK-7, SES-12a: the lock answer, where input waits for a run of its session."""
    first = await house.worker.emit(
        "prompts", [{"text": "hold it", "session": "other", "resources": ["desk"]}, {"text": "x", "session": "ann"}]
    )
    await house.model.until_asked("other")
    await house.model.until_asked("ann")
    second = await house.worker.emit("prompts", [{"text": "next", "session": "ann", "resources": ["desk"]}])
    await house.model.answer("ann", "done")
    await house.until("ann", run=None)
    receipt = await house.say("ann", "and this")
    shown = await house.until("ann", on="lock")
    while shown["lock"] is None:
        shown = await house.get("sessions", "ann")
    assert shown["lock"]["run"]["signal_id"] == receipt["signal_id"]
    assert shown["lock"]["edges"][0]["blocker"]["run_id"] == f"{second}-1"
    assert shown["lock"]["root"]["run_id"] == f"{first}-1"
    assert [(each["id"], each["text"]) for each in shown["queue"]] == [(receipt["id"], "and this")]
    rows = (await house.get("sessions"))["sessions"]
    assert {each["name"]: each["waiting_on"]["on"] for each in rows} == {"ann": "lock", "other": "model"}


async def test_an_id_that_is_sent_again_gives_the_first_receipt_and_another_text_a_conflict(
    house: SessionHouse,
) -> None:
    """SES-10a: 202, then 200; 409 for something else under that id, in whatever session."""
    first = await house.say("ann", "once", id="telegram 4711")
    again = await house.post("sessions", "ann", "input", text="once", id="telegram 4711")
    assert again == {**first, "again": True, "input": again["input"]}
    for session, text in (("ann", "twice"), ("bob", "once")):
        answer = await house.operator.post(
            path_of("sessions", session, "input"), json={"text": text, "id": "telegram 4711"}
        )
        assert answer.status_code == 409 and "id names one input" in answer.json()["detail"]
    await house.model.answer("ann", "yes")
    await house.until("ann", on="input", run=None)
    again = await house.post("sessions", "ann", "input", text="once", id="telegram 4711")
    assert (again["id"], again["input"]) == (first["id"], "delivered")
    assert len(house.model.requests) == 1


async def test_a_full_queue_refuses_and_says_so() -> None:
    """SES-10: bounded; 429, and nothing of it is left."""
    async with open_session_house(max_queue=1) as house:
        await house.say("ann", "first")
        await house.model.until_asked("ann")
        await house.say("ann", "second")
        answer = await house.operator.post("/sessions/ann/input", json={"text": "third", "id": "three"})
        assert answer.status_code == 429 and "queue holds 1" in answer.json()["detail"]
        assert answer.headers["retry-after"]
        assert await house.harness.store.input("three") is None


async def test_a_queued_input_is_taken_back_once(house: SessionHouse) -> None:
    """SES-10a: cancelled by its sender; what is delivered already is not."""
    first = await house.say("ann", "first")
    await house.model.until_asked("ann")
    second = await house.say("ann", "second")
    path = path_of("sessions", "ann", "inputs", second["id"])
    for _ in range(2):
        answer = await house.operator.delete(path)
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    answer = await house.operator.delete(path_of("sessions", "ann", "inputs", first["id"]))
    assert answer.status_code == 409 and "delivered" in answer.json()["detail"]
    assert (await house.operator.delete(path_of("sessions", "ann", "inputs", "nobody"))).status_code == 404
    assert (await house.get("sessions", "ann"))["queue"] == []


async def test_an_interrupt_ends_the_turn_and_what_it_held_is_resumed() -> None:
    """SES-12: hold_queue, resume; with nothing in flight it does nothing and says so."""
    async with open_session_house(on_interrupt="hold_queue") as house:
        await house.say("ann", "first")
        await house.model.until_asked("ann")
        assert (await house.post("sessions", "ann", "interrupt"))["interrupted"] is True
        await house.until("ann", run=None)
        assert (await house.post("sessions", "ann", "interrupt"))["interrupted"] is False
        assert (await house.post("sessions", "ann", "resume"))["resumed"] is False
        assert (await house.post("sessions", "ann", "compact", status=202))["asked"] == "compact"


async def test_an_approval_answers_one_call_and_no_other() -> None:
    """SES-18: the question is shown with its arguments and time left; an answer for nothing is a 404."""
    async with open_session_house(policy=lambda call, kind: "ask") as house:
        await house.say("ann", "do it")
        await house.model.call("ann", "call/1", {"path": "x"})
        shown = await house.until("ann", on="approval")
        (asked,) = shown["approvals"]
        assert (asked["call_id"], asked["tool"], asked["kind"]) == ("call/1", "work", "execute")
        assert asked["arguments"] == '{"path": "x"}' and 0 < asked["left"] <= 3600
        wrong = await house.operator.post(path_of("sessions", "ann", "approvals", "call/2"), json={"allow": True})
        assert wrong.status_code == 404
        await house.post("sessions", "ann", "approvals", "call/1", allow=True)
        await house.tool.begun.wait()
        house.tool.give("done")
        await house.model.call("ann", "call/1")
        await house.until("ann", on="approval")
        await house.post("sessions", "ann", "approvals", "call/1", allow=False)
        await house.model.answer("ann", "well")
        await house.until("ann", run=None)
        found = (await house.get("sessions", "ann", "messages"))["messages"]
        assert [each["outcome"] for each in found if each["role"] == "tool"] == ["ok", "denied"]


@pytest.mark.parametrize("name", NAMES)
async def test_any_name_is_reached_by_its_percent_encoded_form(house: SessionHouse, name: str) -> None:
    """CLM-7: names are used as written, slashes, dots and percent signs too."""
    receipt = await house.say(name, "hello")
    assert receipt["session"] == name
    await house.model.answer(name, "hi")
    assert (await house.until(name, run=None, on="input"))["name"] == name
    assert len((await house.get("sessions", name, "messages"))["messages"]) == 2
    assert (await house.post("sessions", name, "interrupt"))["session"] == name
    assert [each["name"] for each in (await house.get("sessions", prefix=name))["sessions"]] == [name]


async def test_a_name_with_slashes_is_reached_below_the_prefix_of_a_users_app() -> None:
    """CLM-7, SRV-1: the routes answer alike in both."""
    async with open_session_house(url_prefix="/agents") as house:
        await house.say("a/b%2F", "hello")
        await house.model.answer("a/b%2F", "hi")
        assert (await house.until("a/b%2F", run=None, on="input"))["name"] == "a/b%2F"


async def test_sessions_and_messages_are_given_in_pages(house: SessionHouse) -> None:
    """SRV-2: limit, cursor, prefix; the last messages unless asked from somewhere."""
    for name in ("ann/1", "bob", "ann/2"):
        await house.say(name, "hello")
        await house.model.answer(name, "hi")
        await house.until(name, run=None, on="input")
    first = await house.get("sessions", limit=2)
    assert [each["name"] for each in first["sessions"]] == ["ann/2", "bob"] and first["next"]
    rest = await house.get("sessions", limit=2, before=first["next"])
    assert [each["name"] for each in rest["sessions"]] == ["ann/1"] and rest["next"] is None
    assert [each["name"] for each in (await house.get("sessions", prefix="ann/"))["sessions"]] == ["ann/2", "ann/1"]
    path = ("sessions", "bob", "messages")
    assert [each["seq"] for each in (await house.get(*path, limit=1))["messages"]] == [2]
    page = await house.get(*path, limit=1, after=0)
    assert [each["seq"] for each in page["messages"]] == [1] and page["next"] == 1
    assert (await house.get(*path, after=2)) == {"messages": [], "next": None, "previous": 3}


async def test_messages_are_read_backward_from_the_last_one_and_forward_again(house: SessionHouse) -> None:
    """SRV-2: previous leads back as before, next leads on as after; both together are a range."""
    path = ("sessions", "ann", "messages")
    for number in range(4):
        await house.say("ann", f"hello {number}")
        await house.model.answer("ann", f"hi {number}")
        await house.until("ann", run=None, on="input", messages=2 * number + 2)

    def seqs(page: Any) -> list[int]:
        return [each["seq"] for each in page["messages"]]

    page = await house.get(*path, limit=3)
    assert (seqs(page), page["next"], page["previous"]) == ([6, 7, 8], None, 6)
    page = await house.get(*path, limit=3, before=page["previous"])
    assert (seqs(page), page["next"], page["previous"]) == ([3, 4, 5], 5, 3)
    assert seqs(await house.get(*path, after=page["next"])) == [6, 7, 8]
    page = await house.get(*path, limit=3, before=page["previous"])
    assert (seqs(page), page["previous"]) == ([1, 2], None)
    page = await house.get(*path, after=2, before=6)
    assert (seqs(page), page["next"], page["previous"]) == ([3, 4, 5], None, 3)
    page = await house.get(*path, after=2, before=8, limit=2)
    assert (seqs(page), page["next"]) == ([3, 4], 4)
    assert seqs(await house.get(*path, before=1)) == []


async def test_a_worker_whose_runtime_keeps_no_sessions_says_what_to_do() -> None:
    """SRV-5: a problem document; what the store has of sessions is still shown."""
    async with open_house() as house:
        assert (await house.operator.get("/sessions")).json() == {"sessions": [], "next": None}
        assert (await house.operator.get("/sessions/ann")).status_code == 404
        for method, path, body in (
            ("POST", "/sessions/ann/input", {"text": "hello"}),
            ("POST", "/sessions/ann/interrupt", None),
            ("POST", "/sessions/ann/approvals/x", {"allow": True}),
            ("DELETE", "/sessions/ann/inputs/x", None),
            ("GET", "/sessions/ann/live", None),
        ):
            answer = await house.operator.request(method, path, json=body)
            assert answer.status_code == 409
            assert answer.headers["content-type"] == "application/problem+json"
            assert "InProcessRuntime" in answer.json()["detail"]
