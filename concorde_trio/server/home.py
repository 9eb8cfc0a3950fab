"""What a person sees who opens the address: what this is, and how to ask it. An app that has a page at ``/`` keeps its own."""

from __future__ import annotations

from quart import Response
from quart_trio import QuartTrio

from concorde_trio.server.problems import SAFE_HEADERS

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>concorde_trio agent server</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}
pre{overflow-x:auto;padding:.75rem;border:1px solid color-mix(in srgb,currentColor 25%,transparent);border-radius:.5rem}</style>
<h1>concorde_trio agent server</h1>
<p>It works. Agents ask <code>GET /runs/current</code> with the tag from their prompt in the header
<code>concorde-run-tag</code>. Operators ask the routes below with their token, which is what follows
<code>#token=</code> in the link that was printed at the start:</p>
<pre>curl -H "Authorization: Bearer $TOKEN" URL/runs</pre>
<ul>
<li><code>/signals</code>, <code>/signals/ID</code>: what happened, and what became of it</li>
<li><code>/runs</code>, <code>/runs/ID</code>: what runs, what waits and for whom</li>
<li><code>/sessions</code>, <code>/sessions/NAME</code>: who talks with the agent, and what each conversation waits for</li>
<li><code>/locks</code>: what is held, and who waits for it</li>
<li><code>/healthz</code>, <code>/readyz</code>: for probes, without a token</li>
</ul>
<p>The command line shows the same, and needs no token on this machine: <code>concorde-trio runs</code>,
<code>concorde-trio why RUN</code>, <code>concorde-trio sessions</code>, <code>concorde-trio chat NAME</code>.</p>
</html>
"""

HEADERS = {
    **SAFE_HEADERS,
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
}


def add_home(app: QuartTrio) -> None:
    """Answer ``/`` unless the app does when it begins to serve."""

    async def home() -> Response:
        return Response(PAGE, content_type="text/html; charset=utf-8", headers=HEADERS)

    @app.before_serving
    async def fill_the_gap() -> None:
        if not any(rule.rule == "/" for rule in app.url_map.iter_rules()):
            app.add_url_rule("/", "concorde_trio_home", home)
