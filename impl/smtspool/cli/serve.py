"""``serve``: admit and solve until stopped."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from smtspool import cluster, printing, service
from smtspool.errors import InfrastructureError
from smtspool.store import Counts, Store

from .app import Dir, Engines, Exit, Jobs, Json, Timeout, app, timeout_ms


@app.command(epilog="Examples: smtspool serve campaign · smtspool serve campaign --once -j 4 -e z3 -e cvc5")
def serve(
    directory: Dir,
    once: Annotated[bool, typer.Option("--once", help="Answer what is there, then exit.")] = False,
    jobs: Jobs = None,
    engine: Engines = None,
    order: Annotated[str | None, typer.Option("--order", help="dfs, bfs, priority or fifo.")] = None,
    timeout: Timeout = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Prometheus on this port of localhost, or the next free one.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(help="text or json.")] = None,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Record every protocol action, one JSON line each.")
    ] = None,
    mpi: Annotated[
        bool | None,
        typer.Option("--mpi/--no-mpi", help="Be one master of an MPI job. Default: under mpiexec."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every answer.")] = False,
    as_json: Json = False,
) -> None:
    """Admit and solve until stopped. SIGINT, SIGTERM or SIGHUP drains; a second one stops at once.

    With --once the exit code is 3 if the campaign holds an unknown or an error. Under `mpiexec -n N` each
    rank is a master: all admit if the spool's locks hold between the hosts, else one (docs/cluster.md).
    """
    campaign = service.Campaign.open(directory)
    flags = {
        "jobs": jobs,
        "engines": engine,
        "order": order,
        "timeout_ms": timeout_ms(timeout),
        "metrics_port": metrics_port,
        "log_format": log_format,
    }
    settings, _ = service.load(campaign.root, flags=flags)
    service.log_to_stderr(settings.log_format, logging.DEBUG if verbose else logging.INFO)
    with service.collected_signals() as received:
        with nullcontext() if trace is None else service.traced(trace):
            if cluster.started_by_mpi() if mpi is None else mpi:
                with cluster.world() as comm:
                    service.MasteredService(comm, campaign, settings, cluster.processor_name, once).run(
                        received
                    )
            else:
                with service.Service(campaign, settings, once=once) as running:
                    service.run_until_signalled(running, received)
        try:
            counts = _report_end(campaign, as_json)
        except (OSError, InfrastructureError) as error:  # the disk is still full, or the terminal is gone
            if not received:
                raise
            service.complain(str(error))
    if received:
        raise typer.Exit(128 + received[0])
    if counts.done > counts.sat + counts.unsat:
        raise typer.Exit(Exit.UNANSWERED)


def _report_end(campaign: service.Campaign, as_json: bool) -> Counts:
    with Store.view(campaign.store) as store:
        now = service.snapshot(campaign, store)
    if as_json:
        printing.document(now.to_json())
    else:
        print(printing.summary(now))
    return now.counts
