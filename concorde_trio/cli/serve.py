"""``serve``: run somebody's Gateway in the foreground until told to stop."""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import click
import trio

from concorde_trio.cli.entry import leaves
from concorde_trio.cli.hard_stop import HardStop
from concorde_trio.cli.loading import load_object, wrong_target
from concorde_trio.cli.options import Duration, json_option
from concorde_trio.cli.serve_log import Told
from concorde_trio.cli.show import say, visible
from concorde_trio.errors import ConcordeError
from concorde_trio.log_context import JsonLogFormatter

if TYPE_CHECKING:
    from concorde_trio.gateway import Gateway

logger = logging.getLogger("concorde_trio.serve")

LOG_LEVELS = ("debug", "info", "warning", "error")


@click.command()
@click.argument("target", metavar="MODULE:GATEWAY")
@click.option("--host", help="Listen here instead of where the Gateway says.")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen on this port; 0 is any free one.")
@click.option("--drain-for", type=Duration(), help="After so long, a drain becomes a park: 10m.")
@click.option("--park-for", type=Duration(), help="After so long, a park becomes a cancel: 30s.")
@click.option(
    "--capacity",
    type=click.IntRange(1),
    help="Execute at most so many runs at once here; other processes on the same PostgreSQL queue take the rest.",
)
@click.option("--wait", is_flag=True, help="Wait for another worker of this queue to end.")
@click.option(
    "--log-level",
    type=click.Choice(LOG_LEVELS, case_sensitive=False),
    default="info",
    show_default=True,
    help="What is logged on stderr.",
)
@click.option(
    "--log-json",
    is_flag=True,
    help="Log one JSON object a line, each with its run, signal and session where it has one.",
)
@json_option
def serve(
    target: str,
    host: str | None,
    port: int | None,
    drain_for: float | None,
    park_for: float | None,
    capacity: int | None,
    wait: bool,
    log_level: str,
    log_json: bool,
    as_json: bool,
) -> None:
    """Serve a queue with a Gateway of yours.

    MODULE is imported from the current folder, and its GATEWAY runs until it
    is told to stop. Its address and operator token are printed as a link.

    The first Ctrl-C or SIGTERM drains (claimed runs end, nothing new is
    claimed), a second parks (waiting runs stay stored), a third cancels.
    What ignores even that is cut off after a while, with status 1.

    \b
    Examples:
      concorde-trio serve household:gateway
      concorde-trio serve household:gateway --port 8080 --drain-for 10m --park-for 30s
    """
    gateway = load_gateway(target)
    _override(gateway, host, port)
    _override_options(gateway, drain_for, park_for, wait, capacity)
    _log(log_level.upper(), gateway.worker.mask if log_json else None)
    hard_stop = HardStop(gateway, logger)
    hard_stop.start()
    try:
        trio.run(_run, gateway, target, as_json)
    except Exception as error:
        if all(isinstance(leaf, ConcordeError | OSError) for leaf in leaves(error)):
            raise
        # A runtime that cannot be opened, a hook of the app: theirs, so they need to see where.
        traceback.print_exception(error)
        cause = next(leaves(error))
        raise click.ClickException(f"{target} stopped: {type(cause).__name__}: {cause}") from None
    finally:
        hard_stop.over()


def _log(level: str, mask: Callable[[str], str] | None) -> None:
    """Log on stderr, as lines of JSON if there is a ``mask`` for them."""
    handler = logging.StreamHandler(sys.stderr)
    formatter: logging.Formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(formatter if mask is None else JsonLogFormatter(mask=mask))
    logging.basicConfig(level=level, handlers=[handler])


async def _run(gateway: Gateway, target: str, as_json: bool) -> None:
    gateway.worker.bus.call(Told(logger, gateway.worker.locks))
    async with trio.open_nursery() as nursery:
        await _start(nursery, gateway, target, as_json)
    logger.info("stopped")


async def _start(nursery: trio.Nursery, gateway: Gateway, target: str, as_json: bool) -> None:
    url: str = await nursery.start(gateway.run)
    # What is here now stays: to look through all of it for garbage would hold up everything for 50 ms, every so often.
    gc.collect()
    gc.freeze()
    if as_json:
        # On one line, so that who started this can read a line and go on.
        say(json.dumps({"url": url, "link": gateway.link, "pid": os.getpid()}))
    else:
        say(f"{target} serves at {url} (Ctrl-C to stop)\n{gateway.link}")


def _override(gateway: Gateway, host: str | None, port: int | None) -> None:
    if host is not None:
        known = gateway.access.hosts
        if known is not None and host.strip("[]").lower() not in {name.strip("[]") for name in known}:
            # The tokens and the names that the server answers to were chosen for the address in the module.
            raise click.BadParameter(
                f"this Gateway answers on {', '.join(sorted(known))}; to listen elsewhere, make it with host=, "
                "operator_token= and agent_token=.",
                param_hint="'--host'",
            )
        gateway.host = host
    if port is not None:
        gateway.port = port


def _override_options(
    gateway: Gateway, drain_for: float | None, park_for: float | None, wait: bool, capacity: int | None
) -> None:
    options = gateway.worker.options
    gateway.worker.options = attrs.evolve(
        options,
        drain_for=options.drain_for if drain_for is None else drain_for,
        park_for=options.park_for if park_for is None else park_for,
        capacity=options.capacity if capacity is None else capacity,
        wait_for_queue=options.wait_for_queue or wait,
    )


def load_gateway(target: str) -> Gateway:
    """The Gateway that ``target`` names; UsageError when it is something else."""
    found = load_object(target)
    from concorde_trio.gateway import Gateway

    if isinstance(found, type) and issubclass(found, Gateway):
        raise wrong_target(f"{visible(target)} is the class, not a Gateway; make one: gateway = {found.__name__}(...).")
    if not isinstance(found, Gateway):
        raise wrong_target(f"{visible(target)} is of type {type(found).__name__}, not a Gateway.")
    return found
