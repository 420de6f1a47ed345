"""How a campaign is doing: one snapshot of the store's counters, as JSON or as a screen.

Everything comes from counters, so looking costs the same whatever the store holds, and any process may
look at any time.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from smtspool.spool import Spool
from smtspool.store import Counts, Store

from .campaign import Campaign
from .journal import Journal, journal
from .logs import plain
from .profiling import KNOWLEDGE

__all__ = ["Snapshot", "screen", "snapshot"]

STATUS_SCHEMA = "smtspool-status-v1"
WINS = "wins."


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A campaign at one moment; ``taken`` is seconds since the epoch."""

    campaign: str
    taken: float
    backlog: int
    counts: Counts
    counters: dict[str, int | float]
    profile: dict[str, Any] | None = None  # of the coordinator that leads, or led last
    journal: Journal | None = None  # of the store

    def to_json(self) -> dict[str, object]:
        return {"schema": STATUS_SCHEMA, **asdict(self)}

    def counter(self, name: str) -> float:
        return self.counters.get(name, 0)


def snapshot(campaign: Campaign, store: Store) -> Snapshot:
    """Look once."""
    counters = store.counters()
    with Spool.open(campaign.spool) as spool:
        backlog = spool.backlog()
    told = store.get(KNOWLEDGE)
    profile = told if isinstance(told, dict) else None
    now, counts = time.time(), Counts.of(counters)
    return Snapshot(str(campaign.root), now, backlog, counts, counters, profile, journal(store))


def screen(now: Snapshot, before: Snapshot | None = None) -> RenderableType:
    """The status screen; rates are between two snapshots and blank without ``before``."""
    return Panel(
        Group(
            Columns([_progress(now, before), _answers(now)], expand=True),
            Columns([_trouble(now), _engines(now)], expand=True),
            *([] if now.profile is None else [_profile(now, now.profile)]),
        ),
        title=Text(f"smtspool · {plain(now.campaign)}"),
        subtitle=time.strftime("%H:%M:%S", time.localtime(now.taken)),
    )


def _rows(title: str, rows: list[tuple[str, str]]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim", min_width=22)
    table.add_column(justify="right", min_width=10)
    for name, value in rows:
        table.add_row(name, value)
    return table


def _progress(now: Snapshot, before: Snapshot | None) -> Table:
    def rate(name: str) -> str:
        if before is None or now.taken <= before.taken:
            return ""
        return f" ({(now.counter(name) - before.counter(name)) / (now.taken - before.taken):.1f}/s)"

    counts = now.counts
    latency = _ratio(now.counter("admission.latency_seconds"), now.counter("admission.latency_count"))
    return _rows(
        "progress",
        [
            ("files in incoming", f"{now.backlog:,}"),
            ("files accepted", f"{now.counter('admission.accepted'):,.0f}{rate('admission.accepted')}"),
            ("admission latency", f"{latency * 1e3:,.0f} ms"),
            ("queries pending", f"{counts.pending:,}"),
            ("queries waiting (same form)", f"{counts.waiting:,}"),
            ("queries being solved", f"{counts.leased:,}"),
            ("queries answered", f"{counts.done:,}{rate('queries.done')}"),
            ("results to publish", f"{counts.publications_due:,}"),
        ],
    )


def _answers(now: Snapshot) -> Table:
    counts = now.counts
    reused = now.counter("reused.sat") + now.counter("reused.unsat")
    race_ms = 1e3 * _ratio(now.counter("races.seconds"), now.counter("races"))
    return _rows(
        "answers",
        [
            ("sat, verified", f"{counts.sat:,}"),
            ("unsat", f"{counts.unsat:,}"),
            ("unknown", f"{counts.unknown:,}"),
            ("error", f"{counts.error:,}"),
            ("reused by form", f"{reused:,.0f}"),
            ("mean time per race", f"{race_ms:,.1f} ms"),
            ("races with a hedge", f"{now.counter('races.hedged'):,.0f} of {now.counter('races'):,.0f}"),
        ],
    )


def _engines(now: Snapshot) -> Table:
    table = Table(title="engines", title_justify="left", box=None, pad_edge=False)
    table.add_column("engine")
    for column in ("attempts", "wins", "cancelled", "mean ms"):
        table.add_column(column, justify="right")
    names = {name.split(".", 1)[1] for name in now.counters if name.startswith(("attempts.", WINS))}
    for name in sorted(names):
        attempts = now.counter(f"attempts.{name}")
        table.add_row(
            name,
            f"{attempts:,.0f}",
            f"{now.counter(f'{WINS}{name}'):,.0f}",
            f"{now.counter(f'cancelled.{name}'):,.0f}",
            f"{_ratio(now.counter(f'attempt_ms.{name}'), attempts):,.1f}",
        )
    return table


def _trouble(now: Snapshot) -> Table:
    names = {
        "files rejected": "admission.rejected",
        "scans that met a busy lock": "admission.scans.busy",
        "helpers that died": "deaths",
        "queries parked": "parked",
        "stale answers refused": "stale",
        "services found dead": "owners.reaped",
        "disagreements": "disagreements",
        "damaged rows": "damaged",
        "publications given up": "publications.dead",
    }
    rows = [(text, f"{now.counter(name):,.0f}") for text, name in names.items() if now.counter(name)]
    if now.journal is not None and now.journal.stuck_since is not None:
        minutes = (now.taken - now.journal.stuck_since) / 60
        rows.append(("journal kept by a reader", f"{now.journal.bytes >> 20:,} MiB, {minutes:.0f} min"))
    return _rows("trouble", rows or [("none", "")])


def _profile(now: Snapshot, profile: dict[str, Any]) -> Table:
    probes = now.counter("probes")
    probe_ms = 1e3 * _ratio(now.counter("probes.seconds"), probes)
    rows = [
        ("telemetry taken", f"{now.counter('telemetry.accepted'):,.0f}"),
        ("runs in the window", f"{profile['window_records']:,}"),
        ("domains", f"{profile['current_profiles']:,}{'' if profile['served'] else ', not served'}"),
        ("domains suppressed", f"{profile['current_suppressed']:,}"),
        ("generations", f"{profile['generations_published']:,}"),
        ("probes that answered", f"{now.counter('probes.validated'):,.0f} of {probes:,.0f}"),
        ("mean time per probe", f"{probe_ms:,.1f} ms"),
    ]
    trouble = {
        "telemetry rejected": now.counter("telemetry.rejected"),
        "replays that did not match": profile["recovery_replay_mismatches"],
        "publications that failed": profile["publication_failures"],
        "checkpoints that failed": profile["checkpoint_failures"],
    }
    rows += [(text, f"{count:,.0f}") for text, count in trouble.items() if count]
    return _rows("profiles", rows)


def _ratio(total: float, count: float) -> float:
    return total / count if count else 0.0
