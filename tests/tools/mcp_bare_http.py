"""An HTTP server by hand, in a thread: an MCP server of an older protocol at /mcp, and pages that are none."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class BareHttp:
    """Setting ``session`` to another number makes it forget its clients, as a restart does."""

    def __init__(self) -> None:
        self.session = 1
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.bare = self  # type: ignore[attr-defined]
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    @property
    def bare(self) -> BareHttp:
        return self.server.bare  # type: ignore[attr-defined,no-any-return]

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        match self.path:
            case "/mcp":
                self._mcp(request)
            case "/page":
                self._answer(200, b"<p>Welcome</p>", "text/html")
            case "/locked":
                self._answer(401, b"who are you?", "text/plain")
            case "/stray":
                self._answer(200, b"{]", "application/json")
            case "/silent":
                self.bare.closing.wait(60)
                self.close_connection = True
            case _:
                self._answer(404, b"", "text/plain")

    def do_GET(self) -> None:
        self._answer(405, b"", "text/plain")

    def do_DELETE(self) -> None:
        self._answer(200, b"", "text/plain")

    def _mcp(self, request: dict[str, Any]) -> None:
        session = f"session {self.bare.session}"
        if request["method"] not in ("initialize", "server/discover") and self.headers["mcp-session-id"] != session:
            self._answer(404, b"", "text/plain")
            return
        result: dict[str, Any]
        match request["method"]:
            case "initialize":
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
                result["serverInfo"] = {"name": "bare", "version": "0"}
            case "tools/list":
                result = {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                result = {"content": [{"type": "text", "text": f"done in {session}"}]}
            case _ if "id" not in request:
                self._answer(202, b"", "text/plain")
                return
            case _:
                self._answer(400, b"", "text/plain")
                return
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
        self._answer(200, body, "application/json", session)

    def _answer(self, status: int, body: bytes, kind: str, session: str | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if session is not None:
            self.send_header("mcp-session-id", session)
        self.end_headers()
        self.wfile.write(body)
