"""Payloads, names and texts of people who mean harm: they are shown, and nothing of them is ever done."""

from __future__ import annotations

import pytest

from tests.dashboard.house import House
from tests.dashboard.watched_page import WatchedPage

pytestmark = pytest.mark.slow

SCRIPTS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    '"><svg/onload=alert(3)>',
    "</pre></textarea></title><iframe srcdoc='<script>parent.alert(4)</script>'>",
    "javascript:alert(5)",
    "{{constructor.constructor('alert(6)')()}}${alert(7)}",
    "'-alert(8)-'\\\"`;",
    "<style>*{display:none!important}</style><base href=//example.invalid><meta http-equiv=refresh content=0>",
    '<form action="//example.invalid"><button id="logout" name="token">x</button></form>',
    "__proto__",
)
SHOWN_AS = {
    "evil\u202egnp.exe": "evil⟨U+202E⟩gnp.exe",
    "a\u2066b\u2069c": "a⟨U+2066⟩b⟨U+2069⟩c",
    "zero\u200bwidth": "zero⟨U+200B⟩width",
}


def test_hostile_texts_are_shown_as_they_are_and_do_nothing(house: House, page: WatchedPage) -> None:
    """The dashboard: kinds, payloads, sessions, resources, prompts, questions, errors and answers are text everywhere."""
    for text in SCRIPTS:
        name = text[:200]
        house.ask("POST", "/signals", {"kind": name, "payload": {text: [text, {"deep": text}]}})
        house.emit({"session": name, "text": f"ask {text}", "resources": [name, "shared"], "context": {text: text}})
        house.emit({"session": f"after {name}"[:200], "text": f"say {text}", "resources": [name, "shared"]})
    house.ask("POST", f"/sessions/{'ann'}/input", {"text": SCRIPTS[0], "sender": SCRIPTS[1], "id": "one"})
    house.until("/sessions", lambda found: len(found["sessions"]) > 1)
    page.page.reload()
    page.live()
    for view in ("lanes", "runs", "locks", "sessions", "signals"):
        page.show(view)
        page.until_text(f"#panel-{view} .grid", "<script>alert(1)</script>")
        rows = page.page.locator(f"#panel-{view} .row:visible, #panel-{view} .lane:visible")
        for number in range(min(rows.count(), 24)):
            rows.nth(number).click(position={"x": 40, "y": 12})
            page.page.wait_for_function("() => document.querySelector('#detail h2').textContent.length > 0")
    page.show("lanes")
    for chip in page.page.locator(".chip[data-run]:visible").all()[:5]:
        chip.hover()
        page.page.wait_for_selector("#card:not([hidden])")
    page.page.mouse.move(0, 0)
    ask = page.page.locator("#stuck button >> text=Allow").first
    ask.click()
    page.page.wait_for_selector("#ask[open]")
    page.page.keyboard.press("Escape")
    page.until("() => document.querySelector('#ask').childElementCount === 0")
    made = page.page.evaluate(
        "() => document.querySelectorAll('body script, body style, iframe, svg, img, base, body meta, form:not(#login-form)').length"
    )
    assert made == 0
    assert page.page.locator("#logout").count() == 1
    assert page.page.evaluate("() => ({}).polluted === undefined && Object.keys(Object.prototype).length === 0")
    page.check()


def test_what_is_invisible_or_turns_texts_round_is_spelled_out(house: House, page: WatchedPage) -> None:
    """The dashboard: a name can't look like another one by characters that nobody sees."""
    for name in SHOWN_AS:
        house.start_run(name)
    page.show("runs")
    for shown in SHOWN_AS.values():
        page.until_text("#panel-runs .grid", shown)
    text = page.page.inner_text("body")
    assert not [character for character in "\u202e\u2066\u2069\u200b" if character in text]
    page.page.click(f"#panel-runs .row >> text={next(iter(SHOWN_AS.values()))}")
    page.until_text("#detail h2", "⟨U+202E⟩")


def test_a_payload_of_a_megabyte_is_cut_where_it_is_shown(house: House, page: WatchedPage) -> None:
    """The dashboard: the page stays small and says how much more there is; all of it is one press away."""
    big = house.ask("POST", "/signals", {"kind": "big", "payload": "<b>x</b>" * 124_000})["id"]
    house.until(f"/signals/{big}", lambda found: found["state"] == "failed")
    page.show("signals")
    page.page.click("#panel-signals .row >> text=big")
    page.until_text("#detail", "more characters")
    shown = page.page.evaluate("() => document.body.textContent.length")
    assert shown < 60_000
    with page.context.expect_page() as opened:
        page.page.click("#detail a")
    opened.value.wait_for_load_state()
    assert opened.value.url.endswith(f"/signals/{big}")
    assert opened.value.evaluate("() => document.contentType") == "application/json"
    assert "<b>x</b>" * 100 in opened.value.evaluate("() => document.body.textContent")


def test_a_policy_that_trusts_nothing_is_what_the_browser_enforces(page: WatchedPage) -> None:
    """The dashboard: had a text become HTML, a script or a style after all, the browser would refuse it."""
    refused = page.page.evaluate(
        """async () => {
            const refused = {};
            try { document.body.innerHTML = "<p>"; } catch { refused.html = true; }
            // What a debugger evaluates may evaluate, so it is left to a timer.
            await new Promise((done) => setTimeout(() => {
                try { globalThis.eval("1"); } catch { refused.eval = true; }
                done();
            }));
            try { await fetch("http://127.0.0.1:9/"); } catch { refused.fetch = true; }
            const style = document.createElement("div");
            style.setAttribute("style", "color: rgb(1, 2, 3)");
            document.body.append(style);
            refused.style = getComputedStyle(style).color !== "rgb(1, 2, 3)";
            return refused;
        }"""
    )
    assert refused == {"html": True, "eval": True, "fetch": True, "style": True}
    assert page.page.evaluate("found.length") >= 4
    page.wrong.clear()
    page.hosts.clear()
    page.page.evaluate("found.length = 0")
