"""A run's row out of a prompt: whatever the prompt says, the row can be stored, and what could not says why."""

from __future__ import annotations

from concorde_trio._sansio import json_values
from concorde_trio._sansio.run_tags import check_tag
from concorde_trio.errors import InvalidTag, InvalidValue
from concorde_trio.records import Prompt, Run, SignalRecord


def make_run(
    record: SignalRecord, index: int, prompt: Prompt, position: int, now: float, time_limit: float | None
) -> tuple[Run, str | None]:
    """The row of a run, and why it fails at once: a bad tag (TAG-6) or a context no store can hold (REC-3).

    ``index`` is the prompt's place in its signal, ``position`` the run's in its queue; ``time_limit`` is for a prompt
    that has none.
    """
    run_id = f"{record.id}-{index + 1}"
    tag, context, fault = prompt.tag, prompt.context, None
    try:
        if tag is not None:
            check_tag(tag)
        if context is not None:
            # A copy: what its handler, or a route that is given it, does to its own must not change what is kept.
            context = json_values.decode(json_values.encode(context, what="context"))
    except (InvalidTag, InvalidValue) as error:
        tag, context, fault = None, None, str(error)
    run = Run(
        id=run_id,
        signal_id=record.id,
        signal_seq=record.seq,
        position=position,
        index=index,
        session=prompt.session if prompt.session is not None else f"run_{run_id}",
        prompt=prompt.text,
        resources=tuple(prompt.resources),
        usage_limit=prompt.usage_limit,
        context=context,
        tag=tag,
        time_limit=prompt.time_limit if prompt.time_limit is not None else time_limit,
        queued_at=now,
    )
    return run, fault
