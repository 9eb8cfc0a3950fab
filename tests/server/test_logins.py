"""Cookies in the place of the operator token: what is one, when it ends, and whose requests it opens for (SRV-6)."""

from __future__ import annotations

import re
from http.cookies import SimpleCookie

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concorde_trio.server.access import Access
from concorde_trio.server.logins import LIFE, REVOKED, Logins
from concorde_trio.server.problems import Problem
from tests.server.house import OPERATOR

AGENT = "agent-token-of-the-tests"
HOST = "localhost:8000"


class Clock:
    """Seconds since the epoch, as a test says."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def logins(clock: Clock | None = None, token: str = OPERATOR) -> Logins:
    """The logins of a server on loopback."""
    return Logins(Access.on("127.0.0.1", operator_token=token), clock=Clock() if clock is None else clock)


def sent(host: str = HOST, **headers: str) -> list[tuple[bytes, bytes]]:
    """The headers of a request."""
    return [
        (b"host", host.encode()),
        *((name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()),
    ]


def cookie(made: Logins, **headers: str) -> str:
    """What a browser sends after a login: ``name=value``."""
    return made.log_in(OPERATOR, sent(**headers)).partition(";")[0]


def refusal(made: Logins, method: str = "GET", **headers: str) -> int | None:
    """The status with which an operator's request is refused, None if it is not."""
    try:
        made.check_operator(method, sent(**headers))
    except Problem as problem:
        assert OPERATOR not in problem.document.detail
        return problem.document.status
    return None


def test_a_cookie_is_for_no_script_no_other_site_and_no_longer_than_it_says() -> None:
    """SRV-6: HttpOnly, SameSite=Strict, Path=/; Secure where the browser speaks TLS; and no token in it."""
    made = logins()
    (plain,) = SimpleCookie(made.log_in(OPERATOR, sent(origin=f"http://{HOST}"))).values()
    assert (plain["httponly"], plain["samesite"], plain["path"], plain["secure"]) == (True, "Strict", "/", "")
    assert int(plain["max-age"]) == LIFE
    assert plain.key == "concorde_trio_8000"
    assert OPERATOR not in plain.value
    (secure,) = SimpleCookie(made.log_in(OPERATOR, sent("house.example", origin="https://house.example"))).values()
    assert (secure.key, secure["secure"]) == ("concorde_trio", True)


@pytest.mark.parametrize("token", ["", "x", OPERATOR[:-1], OPERATOR + "x", OPERATOR.upper(), "ü" * 20, "\ud800" * 20])
def test_nothing_but_the_operator_token_makes_a_cookie(token: str) -> None:
    """SRV-6: 403, and the answer does not say what was wrong with it."""
    with pytest.raises(Problem) as problem:
        logins().log_in(token, sent())
    assert problem.value.document.status == 403


def test_a_cookie_opens_what_the_token_opens_until_its_time_is_up() -> None:
    """SRV-6: it ends by itself, although a browser may keep it."""
    clock = Clock()
    made = logins(clock)
    mine = cookie(made)
    assert refusal(made) == 401
    assert refusal(made, cookie=mine) is None
    assert refusal(made, cookie=f"other=1; {mine}; concorde_trio=x") is None
    clock.now += LIFE - 1
    assert refusal(made, cookie=mine) is None
    clock.now += 1
    assert refusal(made, cookie=mine) == 401


def test_a_cookie_lasts_over_a_restart_with_the_same_token_and_ends_with_another() -> None:
    """SRV-6: what is random at each start ends with it."""
    mine = cookie(logins())
    assert refusal(logins(), cookie=mine) is None
    assert refusal(logins(token="another-operator-token"), cookie=mine) == 401


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"),
        lambda text: re.sub(r"=[0-9]+", lambda found: f"={int(found[0][1:]) + 1}", text),
        lambda text: re.sub(r"=.*", f"={OPERATOR}", text),
        lambda text: re.sub(r"=.*", "=", text),
        lambda text: text.replace("8000", "8001"),
        lambda text: text + "\xff",
        lambda text: text.upper(),
    ],
)
def test_a_cookie_that_was_changed_is_none(change: object) -> None:
    """SRV-6: it is signed, and nobody can make one or lengthen one."""
    made = logins()
    assert callable(change)
    assert refusal(made, cookie=change(cookie(made))) == 401


@pytest.mark.parametrize(
    ("headers", "reads", "changes"),
    [
        ({}, None, 403),
        ({"origin": f"http://{HOST}"}, None, None),
        ({"origin": f"http://{HOST}", "sec_fetch_site": "same-origin"}, None, None),
        ({"sec_fetch_site": "same-origin"}, None, 403),
        ({"sec_fetch_site": "none", "sec_fetch_mode": "navigate"}, None, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, None, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"}, 403, 403),
        ({"sec_fetch_site": "same-site", "sec_fetch_mode": "cors", "origin": "http://localhost:3000"}, 403, 403),
        ({"origin": "http://localhost:3000"}, 403, 403),
        ({"origin": "null"}, 403, 403),
        ({"origin": f"http://{HOST}", "sec_fetch_site": "same-site"}, 403, 403),
    ],
)
def test_a_cookie_opens_nothing_for_pages_of_other_sites_and_ports(
    headers: dict[str, str], reads: int | None, changes: int | None
) -> None:
    """SRV-6: a change needs this server's own origin; ports of one machine share cookies, and are strangers."""
    made = logins()
    mine = cookie(made)
    assert refusal(made, "GET", cookie=mine, **headers) == reads
    for method in ("POST", "DELETE", "PATCH"):
        assert refusal(made, method, cookie=mine, **headers) == changes


def test_a_request_that_bears_a_token_is_judged_by_that_alone() -> None:
    """SRV-6: a wrong token is not made right by a cookie, and a right one needs no origin."""
    made = logins()
    mine = cookie(made)
    assert refusal(made, "POST", cookie=mine, authorization="Bearer wrong-token-of-the-tests") == 401
    assert refusal(made, "POST", cookie=mine, authorization=f"Bearer {OPERATOR}") is None


@given(
    value=st.one_of(
        st.binary(max_size=60),
        st.builds(
            lambda name, text: b"concorde_trio_8000=" + name + text, st.binary(max_size=5), st.binary(max_size=120)
        ),
    ),
    host=st.sampled_from([b"localhost:8000", b"[::1]:8000", b"localhost", b":", b"", b"localhost:8000x"]),
)
def test_no_cookie_that_was_made_up_opens_anything_or_fails(value: bytes, host: bytes) -> None:
    """SRV-5, SRV-6: whatever bytes come in the header."""
    made = logins()
    headers = [(b"host", host), (b"cookie", value), (b"cookie", value[::-1])]
    with pytest.raises(Problem) as problem:
        made.check_operator("GET", headers)
    assert problem.value.document.status == 401
    assert "Max-Age=0" in made.log_out(headers)


def test_a_logout_ends_the_cookie_and_no_other() -> None:
    """SRV-6: who copied it has nothing any more."""
    clock = Clock()
    made = logins(clock)
    first, second = cookie(made), cookie(made)
    gone = made.log_out(sent(cookie=first))
    assert "Max-Age=0" in gone
    assert gone.startswith("concorde_trio_8000=;")
    assert refusal(made, cookie=first) == 401
    assert refusal(made, cookie=second) is None
    assert refusal(made, cookie=f"{first}; {second}") is None


def test_what_is_kept_of_logouts_is_bounded() -> None:
    """SRV-6: what has ended by itself is forgotten, and never more than a bound is kept."""
    clock = Clock()
    made = logins(clock)
    for _ in range(REVOKED + 5):
        made.log_out(sent(cookie=cookie(made)))
        clock.now += 0.01
    assert len(made._revoked) == REVOKED
    clock.now += LIFE + 1
    made.log_out(sent(cookie=cookie(made)))
    assert len(made._revoked) == 1


def test_agents_come_in_by_the_operators_cookie_too() -> None:
    """SRV-6: beyond loopback the user's own pages are agent routes, which a logged-in browser may open."""
    access = Access.on("0.0.0.0", operator_token=OPERATOR, agent_token=AGENT)
    made = Logins(access, clock=Clock())
    mine = cookie(made)
    made.check_agent("GET", sent(cookie=mine))
    for headers in (sent(), sent(cookie=mine[:-1])):
        with pytest.raises(Problem) as problem:
            made.check_agent("GET", headers)
        assert problem.value.document.status == 401
    with pytest.raises(Problem) as problem:
        made.check_agent("GET", sent(cookie=mine), changes=True)
    assert problem.value.document.status == 403
