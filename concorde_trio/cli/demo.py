"""``demo``: a household on one machine, to be watched."""

from __future__ import annotations

from pathlib import Path

import click

from concorde_trio.cli.options import json_option


@click.command()
@click.option("--keep", is_flag=True, help="Leave it serving at the end, until Ctrl-C.")
@click.option("--svg", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Draw the timeline here.")
@json_option
def demo(keep: bool, svg: Path | None, as_json: bool) -> int:
    """Watch three people share a budget and two workspaces.

    A dozen messages become runs of a small agent program, each a real
    process: in parallel where they may, in order where they must. It takes
    under 30 seconds, downloads nothing and leaves nothing behind but a drawing.

    \b
    Examples:
      concorde-trio demo
      concorde-trio demo --keep
      concorde-trio demo --svg timeline.svg --json
    """
    from concorde_trio.demo import run_demo

    return run_demo(keep=keep, svg=svg, as_json=as_json)
