"""New run tags. A tag is written into a prompt, so that the agent can send it back with its requests (TAG-1)."""

from __future__ import annotations

import secrets


def new_tag() -> str:
    """A random run tag: 24 URL-safe characters, 144 random bits (TAG-6 asks for 128)."""
    return secrets.token_urlsafe(18)
