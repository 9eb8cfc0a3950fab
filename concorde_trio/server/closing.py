"""What a handler can know of the server's stop: an event that is set when it begins."""

from __future__ import annotations

import trio
from quart import current_app

NAME = "concorde_trio"
"""The app's extension, and the blueprint of the built-in routes."""


def server_closing() -> trio.Event:
    """Set when the server begins to stop. A long answer watches it and ends; call this in a handler."""
    closing: trio.Event = current_app.extensions[NAME]
    return closing
