"""What a docstring says to a model: of the whole tool, and of each parameter. Google, numpy and Sphinx style."""

from __future__ import annotations

import inspect

import attrs
import docstring_parser


@attrs.frozen
class Said:
    """The description, and by name what is said of parameters."""

    description: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> Said:
    """The description is the summary, what follows it, and what is said of the result. A text in no known style stays as it is."""
    if not text or not text.strip():
        return Said("", {})
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return Said(inspect.cleandoc(text), {})
    parts = [parsed.short_description, parsed.long_description]
    if parsed.returns is not None and parsed.returns.description:
        parts.append(f"Returns: {parsed.returns.description}")
    parameters = {each.arg_name: each.description.strip() for each in parsed.params if each.description}
    description = "\n\n".join(part.strip() for part in parts if part and part.strip())
    return Said(description or inspect.cleandoc(text), parameters)
