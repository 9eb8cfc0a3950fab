"""``simulate``: play a scenario file on a virtual clock, and print what happened as one JSON object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from concorde_trio.cli.options import decode, json_option, parse_json, read_json
from concorde_trio.cli.show import document, first_line, visible
from concorde_trio.errors import InvalidScenario


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=str))
@click.option("--svg", metavar="OUT", type=click.Path(dir_okay=False, path_type=Path), help="Draw the timeline too.")
@json_option
def simulate(file: str, svg: Path | None, as_json: bool) -> None:
    """Play a scenario on a virtual clock and print its result as JSON.

    FILE is a JSON file, or - for stdin: a scenario of signals, or of one
    session. No agent is started and nothing is stored; the real worker and
    lock table, or the real session loop, run.

    \b
    Examples:
      concorde-trio simulate philosophers.json
      concorde-trio simulate philosophers.json --svg timeline.svg
      concorde-trio simulate stalled-stream.json
      jq .input case.json | concorde-trio simulate -
    """
    scenario = _read(file)
    from concorde_trio import simulate as simulation

    try:
        parsed = simulation.parse_scenario(scenario)
    except InvalidScenario as error:
        raise click.UsageError(f"{_shown(file)} is no scenario: {error}") from None
    if svg is not None and not isinstance(parsed, simulation.SignalScenario):
        raise click.UsageError(
            f"{_shown(file)} is a scenario of a session; --svg draws scenarios of signals only. Leave it out."
        )
    result = simulation.simulate(parsed)
    if svg is not None and isinstance(parsed, simulation.SignalScenario):
        rows = simulation.rows_from_result(parsed, result)
        _write(svg, simulation.timeline_svg(rows, title=_title(file, scenario), start=0.0))
    document(result)


def _read(file: str) -> Any:
    if file == "-":
        return read_json("-", "FILE")
    try:
        data = Path(file).read_bytes()
    except FileNotFoundError:
        raise click.UsageError(f"there is no file {_shown(file)}.") from None
    except IsADirectoryError:
        raise click.UsageError(f"{_shown(file)} is a folder; name a scenario file.") from None
    except (OSError, ValueError) as error:
        raise click.ClickException(f"cannot read {_shown(file)}: {getattr(error, 'strerror', error)}") from None
    return parse_json(decode(data, _shown(file), "FILE"), _shown(file), "FILE")


def _write(file: Path, drawing: str) -> None:
    try:
        file.write_text(drawing, encoding="utf-8")  # no locale decides what a picture is encoded in
    except (OSError, ValueError) as error:
        raise click.ClickException(f"cannot write {visible(str(file))}: {getattr(error, 'strerror', error)}") from None


def _title(file: str, scenario: dict[str, Any]) -> str:
    about = scenario.get("about")
    if isinstance(about, str) and first_line(about):
        return visible(first_line(about))
    return "Scenario" if file == "-" else visible(Path(file).stem)


def _shown(file: str) -> str:
    return "stdin" if file == "-" else visible(file)
