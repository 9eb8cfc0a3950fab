"""Suites as sentences: every public async function of a module is one check, and its name is what it says."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any


def sentences(*modules: ModuleType) -> Mapping[str, Any]:
    """Name → function, for each that the modules define themselves, in their order."""
    return MappingProxyType(
        {
            name: function
            for module in modules
            for name, function in vars(module).items()
            if inspect.iscoroutinefunction(function) and function.__module__ == module.__name__ and name[0] != "_"
        }
    )


async def run_all(checks: Mapping[str, Any], *given: Any) -> None:
    """Run all of them, one after another; the first that fails raises what it raised, with its name in a note."""
    for name, check in checks.items():
        try:
            await check(*given)
        except BaseException as error:
            error.add_note(f"while checking: {name.replace('_', ' ')}")
            raise
