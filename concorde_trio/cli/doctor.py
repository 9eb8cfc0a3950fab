"""``doctor``: what stands in a queue that no rule allows, or that a worker which died left there. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import click

from concorde_trio.cli.options import json_option, store_option
from concorde_trio.cli.queue import database_path, is_postgres
from concorde_trio.cli.show import coloured, document, plural, say, visible

if TYPE_CHECKING:
    from concorde_trio._sansio.diagnosis import Evidence, Finding

SHOWN = 5
"""Ids shown of a finding; --json has more."""


@click.command()
@store_option
@json_option
def doctor(store: str | None, as_json: bool) -> int:
    """Look for rows that no rule allows, and say which rule, which rows and what to do.

    Works beside a worker and without one, and changes nothing. "cut" is what a worker that died left and the next start
    settles; "broken" is what nothing should ever have written. Every row is read, which takes a while in a large queue.
    Exit status: 0 all is well, 1 something was found.

    \b
    Examples:
      concorde-trio doctor
      concorde-trio doctor --store postgresql://concorde@db/agents --json
    """
    from concorde_trio._sansio.diagnosis import diagnose

    path = database_path(store)
    if store is not None and is_postgres(store):
        from concorde_trio.stores.urls import examine_postgres

        evidence = examine_postgres(store)
    else:
        from concorde_trio.stores.sqlite_examination import examine_sqlite

        evidence = examine_sqlite(path)
    findings = diagnose(evidence)
    if as_json:
        document({"served": evidence.served, "findings": [attrs.asdict(found) for found in findings]})
    else:
        _show(evidence, findings)
    return 1 if findings else 0


def _show(evidence: Evidence, findings: list[Finding]) -> None:
    for found in findings:
        ids = ", ".join(visible(each) for each in found.ids[:SHOWN])
        more = f" and {found.count - SHOWN:,} more" if found.count > SHOWN else ""
        kind = coloured(found.kind, "red" if found.kind == "broken" else "yellow")
        say(f"{kind}: {found.what} ({found.rule})")
        say(f"  {ids}{more}")
        say(f"  {found.advice}")
    served = "a worker has it" if evidence.served else "no worker has it"
    say(f"{plural(len(findings), 'finding')}; {served}")
