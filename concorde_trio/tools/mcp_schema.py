"""Whether a tool's input schema is one that a model's provider takes.

The law: what is said to be wrong here is wrong everywhere. A provider that finds a fault in one schema refuses the whole
request, and with it the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from concorde_trio._sansio.json_values import encode
from concorde_trio.errors import InvalidValue

LARGEST = 1_000_000
"""Bytes of a schema's JSON text."""


def schema_fault(schema: Mapping[str, Any]) -> str | None:
    """What is wrong with it, to be read after "its input schema"; None if nothing that can be seen is."""
    try:
        encode(dict(schema), what="it", max_bytes=LARGEST)
    except InvalidValue as error:
        return f"cannot be sent: {error}"
    if schema.get("type", "object") != "object":
        return f"is of the type {schema['type']!r:.80}, not 'object'"
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return f"has properties that are no object: {properties!r:.80}"
    for name, each in properties.items():
        if not isinstance(each, dict | bool):
            return f"says {each!r:.80} of {name!r:.80}, which is no schema"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
        return f"has a list of required names that is none: {required!r:.80}"
    return None
