"""Shared directories: which operations work from one host, and whether their locks hold between hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from smtspool import cluster, printing
from smtspool.cluster import Capability, Host, Master, QualificationAttempt, Rights

from .app import Exit, Json, app

_CODES = {
    Rights.EVERY_MASTER: Exit.DONE,
    Rights.ONE_OWNER: Exit.UNANSWERED,
    Rights.REFUSED: Exit.UNQUALIFIED,  # the abort ends the process with it already
}

Shared = Annotated[
    Path, typer.Argument(metavar="DIR", resolve_path=True, help="A directory; for a campaign, its spool/")
]


@app.command(epilog="Example: smtspool probe /mnt/shared/campaign/spool")
def probe(
    directory: Shared,
    publication: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", resolve_path=True, help="Where results go; default: DIR itself."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try the nine operations that a shared directory needs, from this host; exit 74 if one fails."""
    capability = cluster.probe_directory(directory, publication_root=publication)
    if as_json:
        printing.document(capability.to_json())
        return
    table = Table("operation", "works", box=None)
    for operation, works in capability.operations.items():
        table.add_row(operation.value.replace("_", " "), "yes" if works else "not tried")
    print(_described(capability))
    Console(markup=False, emoji=False).print(table)


@app.command(epilog="Example: mpiexec -n 2 -hosts a,b smtspool qualify /mnt/shared/campaign/spool --json")
def qualify(
    directory: Shared,
    timeout: Annotated[float, typer.Option(help="Seconds to meet, and again to prove.", min=0.001)] = 30.0,
    as_json: Json = False,
) -> None:
    """Prove that locks taken in DIR on one host are respected on all others. Run it under mpiexec.

    Exit 0: verified. 3: no error, but all ranks are on one host, so nothing is proved between hosts.
    65: the locks cannot be trusted, or a rank failed; rank 0 prints the reason.
    """
    with cluster.world() as comm:
        master = Master(
            comm,
            Host(directory, lambda: cluster.probe_directory(directory), cluster.processor_name),
            startup=QualificationAttempt(timeout=timeout),
            say=lambda text: _report(master, as_json),
        )
        rights = master.qualify()
        if master.rank == 0:
            _report(master, as_json)
    raise typer.Exit(_CODES[rights])


def _report(master: Master, as_json: bool) -> None:
    result = master.result
    assert result is not None
    if as_json:
        printing.document(result.to_json())
        return
    proof = result.proof
    if not result.clean:
        print(f"refused: {result.error}")
    elif not result.verified:
        print("clean, not verified: all ranks are on one host; start them on several to prove more")
    else:
        print(f"verified in {result.elapsed * 1e3:.1f} ms: transcript {proof.transcript}")
    if result.capability is not None:
        print(_described(result.capability))
    for member in proof.members:
        role = "representative" if member.rank in proof.representatives else "member"
        print(f"rank {member.rank} on {cluster.one_line(member.processor)}: {role}")
    print(
        f"{proof.rounds} rounds, {proof.contention_checks} refusals, {proof.release_checks} releases, "
        f"{proof.identity_checks} identities",
        flush=True,
    )


def _described(capability: Capability) -> str:
    kind = "usually shared between hosts" if capability.distributed else "usually of one host"
    mount = f"{capability.filesystem_type} ({kind}), {capability.mount_source} on {capability.mount_point}"
    return cluster.one_line(f"{capability.root}: {mount}")
