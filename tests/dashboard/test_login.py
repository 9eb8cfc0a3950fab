"""Who is logged in: by the printed link, by the form, and no more once the login is over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.house import House
from tests.dashboard.watched_page import WatchedPage

pytestmark = pytest.mark.slow


def address(house: House) -> str:
    """Where the dashboard is, without the token."""
    return house.link.partition("/login")[0].partition("/#")[0] + "/"


def test_the_printed_link_logs_in_and_leaves_no_token_behind(chromium: Any, house: House) -> None:
    """SRV-6: not in the address, nor in what the page keeps, nor where a script could read it."""
    with WatchedPage(chromium) as page:
        page.open(house.link)
        assert house.token not in page.page.url
        assert page.page.evaluate("() => history.length") <= 2
        kept = page.page.evaluate(
            "() => [document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage)]"
        )
        assert kept == ["", "{}", "{}"]
        page.page.reload()
        page.live()
        page.check()


def test_the_token_can_stand_behind_the_dashboards_own_address(chromium: Any, house: House) -> None:
    """SRV-6: a link of an earlier form logs in too, and its token goes out of the address at once."""
    with WatchedPage(chromium) as page:
        page.open(f"{address(house)}#token={house.token}")
        assert house.token not in page.page.url
        page.check()


def test_an_app_with_a_page_of_its_own_has_the_dashboard_below(chromium: Any, tmp_path: Path) -> None:
    """SRV-1: the link leads to it there too, and the app's page stays what it is."""
    with House(tmp_path, "own") as house, WatchedPage(chromium) as page:
        page.open(house.link)
        run = house.start_run("ann")
        page.page.wait_for_selector(f'.bar[data-run="{run}"]')
        page.check()
        page.page.goto(address(house))
        assert page.page.inner_text("body") == "my own page"


def test_who_is_not_logged_in_gets_a_form_that_takes_the_right_token_only(chromium: Any, house: House) -> None:
    """SRV-6: a wrong token is refused in words, the right one lets in; log out ends it."""
    house.start_run("ann secretly")
    with WatchedPage(chromium) as page:
        page.page.goto(address(house))
        page.page.wait_for_selector("#login:not([hidden])")
        assert page.page.inner_text("#link") == "Logged out"
        assert "ann secretly" not in page.page.content()
        page.page.fill("#token", "not-the-token-of-this-server")
        page.page.keyboard.press("Enter")
        page.until_text("#login-error", "not the operator token")
        assert page.page.inner_text("#link") == "Logged out"
        page.page.fill("#token", f" {house.token} ")
        page.page.click("#login-form button")
        page.live()
        page.until_text("#panel-lanes", "ann secretly")
        assert page.page.input_value("#token") == ""
        page.page.click("#logout")
        page.page.wait_for_selector("#login:not([hidden])")
        assert "ann secretly" not in page.page.content(), "what was seen is not left on the page"
        page.page.reload()
        page.page.wait_for_selector("#login:not([hidden])")
        page.check()


def test_a_login_that_is_over_is_said_and_can_be_renewed(house: House, page: WatchedPage) -> None:
    """SRV-6: after a start with another token the page says that it is logged out, and asks for the new one."""
    house.start_run("ann")
    house.kill()
    house.token = "another-token-of-the-tests"
    house.start()
    page.page.wait_for_selector("#login:not([hidden])")
    page.until_text("#login-error", "You were logged out")
    page.page.fill("#token", house.token)
    page.page.keyboard.press("Enter")
    page.live()
