"""A household on one machine, to be watched: ``concorde-trio demo``.

Three people share a budget and two workspaces, and every message of theirs becomes turns of sessions: a model, scripted
or real, with a shell and files. The files: ``errands`` (what is asked for), ``household`` (gateway, handlers, routes),
``script`` (the model, unless there is a real one) and ``reading`` (what it goes by), ``program`` (what it runs in the shell),
``people`` (who send it), ``board``, ``screen`` and ``report`` (what is shown), ``watched``, ``evidence`` and ``check`` (whether it
was right), ``play``.
"""

from __future__ import annotations

from pathlib import Path

from concorde_trio.errors import UsageError


def run_demo(
    *,
    keep: bool = False,
    svg: Path | None = None,
    as_json: bool = False,
    model: str | None = None,
    base_url: str | None = None,
) -> int:
    """Play it. The exit status: 0 if nothing is wrong, else 1. KeyboardInterrupt after Ctrl-C.

    ``model``: the name of a real one, behind Chat Completions at ``base_url`` (or OPENAI_BASE_URL), with the key in
    OPENAI_API_KEY; a script otherwise. UsageError for what can never work. ``keep``: serve on at the end, until Ctrl-C. ``svg``: where to draw the timeline; otherwise a new file in the system's
    temporary folder. ``as_json``: print one JSON document and nothing else.
    """
    if model is None and base_url is not None:
        raise UsageError("--base-url is for a real model; name it with --model")
    real = None
    if model is not None:
        from concorde_trio.models.openai import OpenAIModel

        real = OpenAIModel(model, base_url=base_url)
    if not as_json:
        print("\nThree people share a kitchen, a garden and a budget. Ctrl-C ends it.", flush=True)
    # A second's import: whoever waits has something to read.
    from concorde_trio.demo.play import play_demo

    return play_demo(keep=keep, svg=svg, as_json=as_json, model=real)
