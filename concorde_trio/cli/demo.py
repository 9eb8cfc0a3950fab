"""``demo``: a household on one machine, to be watched."""

from __future__ import annotations

from pathlib import Path

import click

from concorde_trio.cli.options import json_option


@click.command()
@click.option("--keep", is_flag=True, help="Leave it serving at the end, until Ctrl-C.")
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Draw the timeline here.")
@click.option(
    "--model",
    envvar="OPENAI_MODEL",
    show_envvar=True,
    metavar="NAME",
    help="Let this model answer, not a script. Its key is in OPENAI_API_KEY.",
)
@click.option(
    "--base-url",
    metavar="URL",
    help="Where it is, if not at OpenAI: any server of Chat Completions.  [env var: OPENAI_BASE_URL]",
)
@json_option
def demo(keep: bool, svg: Path | None, model: str | None, base_url: str | None, as_json: bool) -> int:
    """Watch three people share a budget and two workspaces.

    A dozen messages become turns of sessions, with a real shell and real
    files: in parallel where they may, in order where they must. A script
    answers in place of a model: that takes under 30 seconds, downloads nothing
    and leaves nothing behind but a drawing. With --model a real model answers
    (it may take minutes, and costs what it costs); what it did otherwise than
    it was asked is listed as not checked.

    \b
    Examples:
      concorde-trio demo
      concorde-trio demo --keep
      concorde-trio demo --svg timeline.svg --json
      concorde-trio demo --model gpt-5-mini
      concorde-trio demo --model qwen3 --base-url http://localhost:11434/v1
    """
    from concorde_trio.demo import run_demo

    return run_demo(keep=keep, svg=svg, as_json=as_json, model=model, base_url=base_url)
