"""An MCP server of an older protocol, by hand, over stdio: what the official library would never send.

``python mcp_bare_server.py [stubborn | sloppy]``: a stubborn one ends neither at the end of its stdin nor on SIGTERM; a sloppy one lists
tools that fit no protocol, and one that fits it and no model.
"""

from __future__ import annotations

import json
import signal
import sys
import time

PAGES = {None: (["first", "surrogate", "chatter"], "next"), "next": (["grow", "huge", "flood"], None)}
SLOPPY: list[object] = [
    {"name": "no_schema"},
    {"name": "text", "inputSchema": {"type": "string"}},
    {
        "name": "hidden",
        "inputSchema": {"type": "object", "properties": {"token": 5}},
        "annotations": {"readOnlyHint": "maybe"},
    },
    {"name": "odd", "inputSchema": {"type": "object", "required": "x"}},
    {"name": "odder", "inputSchema": {"type": "object", "properties": {"a": "string"}}},
    5,
]
grown: list[str] = []


def send(**message: object) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def tool(name: str) -> dict[str, object]:
    return {"name": name, "inputSchema": {"type": "object"}}


def text(words: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": words}]}


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "bare", "version": "0"},
        }
    if method == "tools/list":
        names, cursor = PAGES[params.get("cursor")]  # type: ignore[index]
        more = grown if cursor is None else []
        sloppy = SLOPPY if sys.argv[1:] == ["sloppy"] and cursor else []
        return {
            "tools": [*sloppy, *(tool(name) for name in [*names, *more])],
            **({"nextCursor": cursor} if cursor else {}),
        }
    if method != "tools/call":
        return None
    match params["name"]:
        case "surrogate":
            return text("before \ud800 after \u0000")
        case "chatter":
            print("Listening on nothing at all", flush=True)
        case "grow":
            grown.append("grown")
            send(method="notifications/tools/list_changed")
        case "huge":
            return text("x" * 200_000)
        case "flood":
            for _ in range(20_000):
                print('{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}}')
    return text(f"{params['name']} done")


if sys.argv[1:] == ["stubborn"]:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        result = answer(request["method"], request.get("params") or {})
        if result is None:
            send(id=request["id"], error={"code": -32601, "message": "no such method"})
        else:
            send(id=request["id"], result=result)
while sys.argv[1:] == ["stubborn"]:
    time.sleep(1)
