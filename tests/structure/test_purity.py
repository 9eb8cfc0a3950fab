"""The pure parts import what the whitelist has, and nothing else: a new module of the standard library can't slip in."""

from __future__ import annotations

import re
import sys

from tests.structure.tree import PACKAGE, imports, modules, project

PURE = ("_sansio", "events", "messages", "records", "errors", "documents")
ALLOWED = {
    "__future__", "abc", "attrs", "bisect", "codecs", "collections", "concorde_trio", "contextlib", "dataclasses", "enum",
    "functools", "hashlib", "heapq", "itertools", "json", "math", "operator", "re", "string", "types", "typing", "unicodedata",
}  # fmt: skip


def test_the_pure_parts_import_only_what_is_pure() -> None:
    """LCK-5: no clock, no randomness, no logging, no I/O and no Trio in _sansio, events, records and errors."""
    wrong = []
    for path in modules():
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part in PURE:
            for line, name in imports(path):
                top, *rest = name.split(".")
                if top not in ALLOWED or (top == "concorde_trio" and rest[:1] and rest[0] not in PURE):
                    wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    assert not wrong


def _libraries() -> dict[str, str]:
    """Every library that the package imports, and one place where it does."""
    return {
        name.split(".")[0]: f"{path.relative_to(PACKAGE)}:{line}"
        for path in modules()
        for line, name in imports(path)
        if name.split(".")[0] not in {"concorde_trio", *sys.stdlib_module_names}
    }


def test_every_library_has_an_owner() -> None:
    """Layers: a third-party library that is imported anywhere is named by a contract that says where it may be."""
    owned = {
        library
        for contract in project()["tool"]["importlinter"]["contracts"]
        if contract.get("ignore_imports")
        for library in contract["forbidden_modules"]
    }
    everywhere = {"trio", "outcome", "attrs"}  # outcome is what Trio's own interfaces hand around
    assert not {name: where for name, where in _libraries().items() if name not in owned | everywhere}


def test_every_library_is_a_dependency_that_we_declare() -> None:
    """Files: what is imported is installed, and not only because something else happens to need it."""
    says = project()["project"]
    declared = [*says["dependencies"], *(one for extra in says["optional-dependencies"].values() for one in extra)]
    names = {re.split(r"[^A-Za-z0-9_-]", one)[0].replace("-", "_").lower() for one in declared}
    # Parts of what quart-schema[msgspec], quart, mcp and opentelemetry-api are to their users.
    brought = {"msgspec", "werkzeug", "mcp_types", "opentelemetry"}
    assert not {name: where for name, where in _libraries().items() if name not in names | brought}
