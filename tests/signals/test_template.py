"""Template handlers: a text with holes, one prompt a signal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from concorde_trio.errors import InvalidHandler, InvalidName, InvalidPrompt, TemplateError
from concorde_trio.records import PostOutcome, Prompt, Signal
from concorde_trio.signals.handlers import SignalHandler
from concorde_trio.signals.tags import new_tag
from concorde_trio.signals.template import template_handler


def signal(payload: Any = None, kind: str = "message.received") -> Signal:
    return Signal(id="s1", seq=7, kind=kind, payload=payload, emitted_at=12.5)


def prompt_of(handler: SignalHandler, of: Signal) -> Prompt:
    prompts = handler.call(of)
    assert isinstance(prompts, tuple)
    (prompt,) = prompts
    return prompt


def text_of(template: str, payload: Any = None, **arguments: Any) -> str:
    return prompt_of(template_handler(template, **arguments), signal(payload)).text


def test_a_template_sees_the_signal_and_the_fields_of_its_payload() -> None:
    """CLM-4: a template handler gives one prompt of a signal."""
    assert text_of("{{ user }}: {{ text }} ({{ signal.kind }} {{ signal.seq }})", {"user": "ann", "text": "hi"}) == (
        "ann: hi (message.received 7)"
    )
    assert text_of("{{ signal.payload[1] }} {{ data }}", ["a", "b"]) == "b {}"


def test_a_template_handler_is_repeatable_and_may_have_a_post_phase() -> None:
    """CLM-6: template handlers say repeatable=True."""

    def after(signal: Signal, outcome: PostOutcome) -> None: ...

    handler = template_handler("hello", post=after)
    assert handler.repeatable
    assert not handler.is_async
    assert handler.post is after


def test_every_field_of_the_prompt_is_a_value_or_a_function_of_the_signal() -> None:
    """CLM-4: the prompt has what the functions of the signal gave."""
    by_value = template_handler(
        "x",
        session="ann",
        resources=["budget"],
        tag="t" * 16,
        usage_limit=5,
        context={"a": 1},
        time_limit=2,
    )
    expected = Prompt(
        text="x", session="ann", resources=["budget"], tag="t" * 16, usage_limit=5, context={"a": 1}, time_limit=2
    )
    assert prompt_of(by_value, signal()) == expected
    by_function = template_handler(
        "x",
        session=lambda s: s.payload["user"],
        resources=lambda s: [s.payload["what"]],
        tag=lambda s: s.payload["tag"],
        usage_limit=lambda s: 5,
        context=lambda s: {"a": 1},
        time_limit=lambda s: 2.0,
    )
    assert prompt_of(by_function, signal({"user": "ann", "what": "budget", "tag": "t" * 16})) == expected


def test_the_tag_of_the_prompt_is_the_one_in_its_text() -> None:
    """TAG-1: the handler writes the tag into the text too."""
    handler = template_handler("send {{ tag }}", tag=new_tag)
    first, second = prompt_of(handler, signal()), prompt_of(handler, signal())
    assert first.text == f"send {first.tag}"
    assert first.tag != second.tag


def test_a_payload_cannot_stand_in_for_the_tag_or_the_signal() -> None:
    """TAG-1: what comes from outside is reached as data only."""
    payload = {"tag": "theirs", "signal": "theirs", "data": "theirs", "range": "theirs"}
    assert text_of("{{ tag }} {{ signal.id }} {{ data.tag }} {{ data.data }}", payload, tag="ours") == (
        "ours s1 theirs theirs"
    )
    with pytest.raises(TemplateError, match="'tag' is undefined"):
        text_of("{{ tag }}", payload)


def test_data_may_come_from_a_function_or_be_given() -> None:
    """CLM-4: data is the payload unless said otherwise."""
    assert text_of("{{ name }}", {"user": "ann"}, data=lambda s: {"name": s.payload["user"].upper()}) == "ANN"
    assert text_of("{{ name }}", data={"name": "ann"}) == "ann"
    with pytest.raises(TemplateError, match=r"'message\.received' gave list .*not a mapping"):
        text_of("x", data=lambda s: ["ann"])


def test_nothing_is_escaped_and_the_trailing_newline_is_kept() -> None:
    """CLM-4: a prompt is no HTML."""
    assert text_of("{{ text }}\n", {"text": "<b> & 'c'"}) == "<b> & 'c'\n"


@pytest.mark.parametrize(
    ("template", "line"),
    [("a\n{{ b", 2), ("{% if a %}\n", 1), ("a\n\n{{ b|nothing }}", 3), ("{% endfor %}", 1), ("a\n{{ 'b }}", 2)],
)
def test_a_template_that_does_not_compile_is_refused_where_it_is_written(template: str, line: int) -> None:
    """CLM-5: no signal has to fail for it; the message gives the line."""
    with pytest.raises(TemplateError, match=f"does not compile: line {line}: "):
        template_handler(template)


@pytest.mark.parametrize("template", ["{% include 'a' %}", "{% extends 'a' %}", "{% import 'a' as b %}"])
def test_a_template_is_one_text(template: str) -> None:
    """CLM-5: what could never be rendered is refused where it is written."""
    with pytest.raises(TemplateError, match="put it all into one text"):
        template_handler(template)


@pytest.mark.parametrize(("text", "fix"), [(Path("a.txt"), r"path\.read_text\(\)"), (None, "must be text")])
def test_a_template_that_is_no_text_is_refused(text: Any, fix: str) -> None:
    """CLM-5: misuse is loud at once."""
    with pytest.raises(TemplateError, match=fix):
        template_handler(text)


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("a\n{{ nobody }}", r"\(line 2\): UndefinedError: 'nobody' is undefined"),
        ("{{ user.age }}", "no attribute 'age'"),
        ("{{ user.__class__ }}", "SecurityError"),
        ("{{ items.append(3) }}", "SecurityError"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ signal.payload.user + 1 }}", "TypeError"),
    ],
)
def test_a_template_that_cannot_be_rendered_says_so_and_names_the_kind(template: str, why: str) -> None:
    """CLM-5: the message says what was wrong."""
    with pytest.raises(TemplateError, match=rf"(?s)the template of 'message\.received' could not be rendered.*{why}"):
        text_of(template, {"user": "ann", "items": [1, 2]})


def test_a_template_cannot_change_what_it_was_given() -> None:
    """CLM-6: a handle that may be run again has no effects."""
    given = {"items": [1]}
    with pytest.raises(TemplateError, match="SecurityError"):
        text_of("{{ signal.payload['items'].clear() }}", given)
    with pytest.raises(TemplateError):
        text_of("{% set signal.seq = 3 %}{{ signal.seq }}", given)
    assert given == {"items": [1]}


@pytest.mark.parametrize("name", ["session", "data", "resources", "tag", "usage_limit", "context", "time_limit"])
def test_errors_of_the_functions_are_not_wrapped(name: str) -> None:
    """CLM-5: the message of the failed signal is the function's own."""

    def failing(of: Signal) -> Any:
        raise KeyError("no such person")

    arguments: dict[str, Any] = {name: failing}
    handler = template_handler("x", **arguments)
    with pytest.raises(KeyError, match="no such person"):
        handler.call(signal())


@pytest.mark.parametrize(
    ("arguments", "error", "fix"),
    [
        ({"session": ""}, InvalidName, "session"),
        ({"resources": "budget"}, InvalidPrompt, "list of names"),
        ({"usage_limit": 0}, InvalidPrompt, "usage_limit"),
        ({"time_limit": -1}, InvalidPrompt, "time_limit"),
        ({"data": [1]}, InvalidHandler, "data must be a mapping"),
        ({"session": lambda a, b: "x"}, InvalidHandler, r"session must be callable|callable as session\(signal\)"),
        ({"post": lambda s: None}, InvalidHandler, r"post\(signal, outcome\)"),
    ],
)
def test_wrong_arguments_are_refused_where_they_are_written(arguments: Any, error: type[Exception], fix: str) -> None:
    """CLM-5, CLM-7: misuse is loud at once."""
    with pytest.raises(error, match=fix):
        template_handler("x", **arguments)


def test_an_async_function_of_the_signal_is_refused() -> None:
    """CLM-6: a template handler is plain, so that many signals fit one commit."""

    async def session(of: Signal) -> str:
        return "ann"

    argument: Any = session
    with pytest.raises(InvalidHandler, match="write an async handle function instead"):
        template_handler("x", session=argument)


def test_a_value_of_the_wrong_type_from_a_function_is_the_prompts_own_error() -> None:
    """CLM-7: a session that is no name fails its signal."""
    handler = template_handler("x", session=lambda s: s.payload)
    with pytest.raises(InvalidName, match="session"):
        handler.call(signal("a\nb"))


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'x' * 10**10 }}",
        "{{ [1] * 10**9 }}",
        "{{ 10**7 * 'x' }}",
        "{{ 10 ** (10 ** 10) }}",
        "{{ 'x'.ljust(10**10) }}",
        "{{ 'x'|center(10**10) }}",
        "{{ 'x'|center(width=10**10) }}",
        "{{ 'a\nb'|indent(10**9) }}",
        "{{ '%9999999999d' % 1 }}",
        "{{ '%*d' % (10**10, 1) }}",
        "{{ '%9999999999d'|format(1) }}",
        "{{ '{:9999999999}'.format(1) }}",
        "{{ '{:{}}'.format(1, 10**10) }}",
        "{{ ('x' * 10**6).replace('x', 'y' * 10**6) }}",
        "{{ ('x' * 10**6)|replace('x', 'y' * 10**6) }}",
        "{{ (['x' * 10**5] * 10**5)|join }}",
        "{{ ''.join(['x' * 10**5] * 10**5) }}",
        "{{ ('x' * 10**6).translate({120: 'y' * 10**6}) }}",
        "{% set n = namespace(x='x') %}{% for _ in range(40) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x='x') %}{% for _ in range(40) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
        "{% set n = namespace(x=9) %}{% for _ in range(60) %}{% set n.x = n.x * n.x %}{% endfor %}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(10**9) %}{% endfor %}",
        "{% for a in range(2000) %}{{ 'x' * 1000 }}{% endfor %}",
        "{{ lipsum(10**6) }}",
        "{{ [0]|batch(10**10, 'x')|list }}",
    ],
)
def test_a_template_cannot_take_the_workers_memory(template: str) -> None:
    """CLM-5: nothing a handler does takes the worker with it; what is too large is measured before it is made."""
    with pytest.raises(TemplateError, match="TooLarge|OverflowError|unsafe|undefined"):
        text_of(template)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ '-' * 20 }}", "-" * 20),
        ("{{ 2 ** 10 * 3 + 1 - 7 % 4 }}", "3070"),
        ("{{ 'a' ~ 1 ~ none }}", "a1None"),
        ("{{ 'a' + 'b' }} {{ [1] + [2] }}", "ab [1, 2]"),
        ("{{ '%s: %05.1f' % ('a', 2.25) }}", "a: 002.2"),
        ("{{ '%d'|format(1700000000000) }}", "1700000000000"),
        ("{{ '{} {:>4}'.format(1700000000000, 'a') }}", "1700000000000    a"),
        ("{{ [1, 'b']|join(', ') }} {{ '-'.join(['a', 'b']) }}", "1, b a-b"),
        ("{{ 'abc'|replace('b', 'x') }}{{ 'abc'.replace('b', '') }}", "axcac"),
        ("{{ 'a\nb'|indent(2) }}", "a\n  b"),
        ("{{ 'a'|center(3) }}{{ 3.14159|round(2) }}", " a 3.14"),
        ("{% for a in range(3) %}{{ a }}{% endfor %}", "012"),
        ("{% for a in [3, 1]|sort %}{{ loop.index }}{{ a }}{% endfor %}", "1123"),
        ("{{ [1, 2, 3]|batch(2)|list }}", "[[1, 2], [3]]"),
        ("{{ {'a': [1, none, true]}|tojson }}", '{"a": [1, null, true]}'),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(1) }}{{ range(2)|list }}", "<1>[0, 1]"),
    ],
)
def test_what_templates_are_for_is_not_in_the_way_of_the_bounds(template: str, text: str) -> None:
    """CLM-4: the ordinary operators and filters of Jinja work."""
    assert text_of(template) == text
