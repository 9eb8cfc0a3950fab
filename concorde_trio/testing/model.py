"""The conformance suite of model clients: the same sentences for every one, and for yours.

``model_checks`` maps each sentence to an async function of a callable that makes a client, and of the dialect that a
provider of it would speak. With pytest::

    @pytest.mark.parametrize("check", model_checks.values(), ids=model_checks.keys())
    async def test_my_client(check):
        await check(lambda base_url, key: MyModel(base_url, key), MyDialect())

The provider is a ``ModelServer`` on a real socket of this machine. ``OpenAIDialect`` and ``AnthropicDialect`` are there; for
another API write a ``Dialect``: what bytes say what event.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from concorde_trio.testing.model_checks import answering, failing, stopping
from concorde_trio.testing.model_checks.asking import Check, MakeModel
from concorde_trio.testing.model_dialects import Dialect


def _checks(module: ModuleType) -> dict[str, Check]:
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.iscoroutinefunction(function) and function.__module__ == module.__name__ and name[0] != "_"
    }


model_checks: Mapping[str, Check] = MappingProxyType(_checks(answering) | _checks(failing) | _checks(stopping))
"""Sentence → async function of ``make_model`` and ``dialect``. Each docstring begins with the rule it holds to."""


async def check_model(make_model: MakeModel, dialect: Dialect) -> None:
    """Run all of them, one after another; the first that fails raises AssertionError, with its name in a note.

    ``make_model(base_url, key)`` makes a client that sends its requests to ``base_url`` with that key.
    """
    for name, check in model_checks.items():
        try:
            await check(make_model, dialect)
        except BaseException as error:
            error.add_note(f"while checking: {name.replace('_', ' ')}")
            raise
