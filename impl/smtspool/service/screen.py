"""The status screen, which shows a :class:`Snapshot` on a terminal of at least 80 columns by 24 rows.

Trouble comes first. A feature that a campaign does not use has no row. If not everything fits, the least
important sections lose their last lines, and say so.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from .figures import ago, amount, duration, per_second
from .logs import plain
from .status import Snapshot

__all__ = ["status_screen"]

WINS = "wins."
WIDE = 110
BORDER = 2
# Lines that every section keeps.
LEAST = 2

Row = tuple[str, str]


@dataclass(slots=True)
class _Section:
    """Lines below one another; ``weight`` is their importance."""

    lines: list[Text]
    weight: int


def status_screen(
    now: Snapshot, *, width: int = 80, height: int | None = None, live: bool = False
) -> RenderableType:
    """The screen in so many columns, and rows if they are limited; ``live`` adds how to leave it."""
    progress, answers = _progress(now), _answers(now)
    engines = _engines(now)
    columns = [progress, answers]
    services = _Section(_services(now, detailed=True), 2)
    sections = [_Section(_trouble(now, width - 2 * BORDER), 3), services]
    if width < WIDE:
        sections.append(_Section(_table_lines(engines), 1))
    else:
        columns.append(engines)
    sections.append(_Section(_profile(now), 0))
    if height is not None:
        room = height - BORDER - max(map(len, columns))
        if sum(len(section.lines) for section in sections) > room:
            services.lines = _services(now, detailed=False)
        _fit(sections, room)
    lines = [line for section in sections for line in section.lines]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    hint = "Ctrl-C leaves, services go on · " if live else ""
    return Panel(
        Group(_side_by_side(columns), *lines),
        title=Text(f"smtspool · {plain(now.campaign)}", overflow="ellipsis", no_wrap=True),
        subtitle=Text(hint + time.strftime("%H:%M:%S", time.localtime(now.taken))),
        border_style="red" if any(trouble.severe for trouble in now.trouble()) else "none",
        width=width,
    )


def _fit(sections: list[_Section], room: int) -> None:
    """Drop lines, those of the least important sections first, until all fit into so many rows."""
    for section in sorted(sections, key=lambda one: one.weight):
        excess = sum(len(one.lines) for one in sections) - room
        if excess <= 0:
            return
        if len(section.lines) > LEAST:
            dropped = min(excess + 1, len(section.lines) - LEAST + 1)
            del section.lines[-dropped:]
            section.lines.append(Text(f"  … {dropped} more lines", style="dim"))
    # Too low for two lines of each: whole sections go.
    for section in sorted(sections, key=lambda one: one.weight):
        if sum(len(one.lines) for one in sections) > room:
            section.lines.clear()


def _side_by_side(columns: Iterable[list[Row]]) -> Table:
    grid = Table.grid(expand=True, padding=(0, 2))
    cells = []
    for rows in columns:
        grid.add_column(ratio=1)
        cell = Table.grid(expand=True, padding=(0, 1))
        cell.add_column(style="dim", no_wrap=True)
        cell.add_column(justify="right", no_wrap=True, overflow="ellipsis")
        for name, value in rows:
            cell.add_row(name, value)
        cells.append(cell)
    grid.add_row(*cells)
    return grid


def _used(rows: Iterable[tuple[str, float]]) -> list[Row]:
    """Rows of those figures that are not zero."""
    return [(name, amount(count)) for name, count in rows if count]


def _progress(now: Snapshot) -> list[Row]:
    counts, pace = now.counts, now.pace
    rows = [] if now.run_time is None else [("run time", duration(now.run_time))]
    rows += [
        ("files waiting", amount(now.backlog)),
        ("files accepted", amount(now.counter("admission.accepted"))),
        ("queries to solve", amount(counts.pending + counts.waiting)),
        *_used([("being solved", counts.leased)]),
        ("answered", amount(counts.done)),
    ]
    if pace.answered.quarter:
        rates = map(per_second, pace.answered.per_second(now.taken))
        rows.append(("rate 1 · 15 min", " · ".join(rates)))
    if now.eta_seconds:
        rows.append(("done in about", duration(now.eta_seconds)))
    if now.counter("admission.latency_count"):
        mean = now.counter("admission.latency_seconds") / now.counter("admission.latency_count")
        rows.append(("admission takes", duration(mean)))
    return rows + _used([("results to publish", counts.publications_due)])


def _answers(now: Snapshot) -> list[Row]:
    counts = now.counts
    rows = [("sat, verified", amount(counts.sat)), ("unsat", amount(counts.unsat))]
    rows += _used(
        [
            ("unknown", counts.unknown),
            ("error", counts.error),
            ("reused by form", now.counter("reused.sat") + now.counter("reused.unsat")),
        ]
    )
    if now.counter("races"):
        rows.append(("mean time per race", duration(now.counter("races.seconds") / now.counter("races"))))
    if now.pace.answered.last is not None:
        rows.append(("last answer", ago(now.taken - now.pace.answered.last)))
    rows.append(("new inputs found", amount(now.counter("inputs.found"))))
    if now.counter("inputs.latest"):
        rows.append(("last new input", ago(now.taken - now.counter("inputs.latest"))))
    return rows


def _engines(now: Snapshot) -> list[Row]:
    """A row for each engine with its wins; none before the first attempt."""
    names = {name.split(".", 1)[1] for name in now.counters if name.startswith(("attempts.", WINS))}
    rows: list[Row] = [("engine", "wins of attempts · mean")] if names else []
    for name in sorted(names, key=lambda name: -now.counter(WINS + name)):
        attempts = now.counter(f"attempts.{name}")
        mean = now.counter(f"attempt_ms.{name}") / attempts / 1e3 if attempts else 0.0
        won = f"{amount(now.counter(WINS + name))} of {amount(attempts)} · {duration(mean)}"
        rows.append((plain(name), won))
    return rows


def _table_lines(rows: list[Row]) -> list[Text]:
    wide = max((len(name) for name, _ in rows), default=0) + 2
    return [
        Text.assemble((name.ljust(wide), "dim"), value, style="bold" if number == 0 else "")
        for number, (name, value) in enumerate(rows)
    ]


def _trouble(now: Snapshot, width: int) -> list[Text]:
    found = now.trouble()
    if not found:
        return [Text("trouble: none", style="green")]
    lines = [
        Text(line, style="bold red")
        for trouble in found
        if trouble.severe
        for line in _wrapped(f"! {trouble.what}", width)
    ]
    light = " · ".join(trouble.what for trouble in found if not trouble.severe)
    if light:
        lines += [Text(line, style="yellow") for line in _wrapped(f"trouble: {light}", width)]
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    """Two lines at most, without the middle of the message, which is often a path; its end says more."""
    return textwrap.wrap(plain(text), width, subsequent_indent="  ", max_lines=2, placeholder=" …")


def _services(now: Snapshot, *, detailed: bool) -> list[Text]:
    """A line for each, and below it what it solves: a line for each query, or one for all."""
    lines = []
    for one in now.living:
        if "pid" not in one:
            lines.append(Text("a service that has said nothing yet"))
            continue
        lines.append(Text(_service(now, one)))
        lasting = now.taken - one["written"]
        solving = [
            (f"{plain(solved['query'][:8])} {duration(solved['seconds'] + lasting)}", _requests(solved))
            for solved in one["solving"]
        ]
        if detailed:
            shown = [f"{what}{requests}" for what, requests in solving]
        else:
            shown = [", ".join(what for what, _ in solving)] if solving else []
        lines += [Text(f"  solving {line}", style="dim") for line in shown]
    return lines


def _requests(solved: Mapping[str, Any]) -> str:
    """The engines that are asked, each with what its request waits for, if that is known."""
    shown = []
    for one in solved.get("requests") or ():
        engine = one["engine"] + ("/check" if one["checks"] else "")
        shown.append(f"{engine}: {one['waits_for']}" if one["waits_for"] else engine)
    return plain(f" · {', '.join(shown)}") if shown else ""


def _service(now: Snapshot, one: Mapping[str, Any]) -> str:
    parts = [
        f"service pid {one['pid']} on {plain(one['host'])}",
        one["state"],
        f"{one['jobs']} jobs",
        f"up {duration(now.taken - one['started'])}",
    ]
    if one["metrics_port"]:
        parts.append(f"metrics :{one['metrics_port']}")
    parts.append(plain(" ".join(one["engines"])))
    return " · ".join(part for part in parts if part)


def _profile(now: Snapshot) -> list[Text]:
    told = now.profile
    if told is None or not told["window_records"]:
        return []
    served = "" if told["served"] else ", not served"
    lines = [
        Text(
            f"profiles: {amount(told['current_profiles'])} domains{served}, "
            f"{amount(told['current_suppressed'])} suppressed, {amount(told['window_records'])} runs in "
            f"the window"
        )
    ]
    probes = now.counter("probes")
    if probes:
        lines.append(
            Text(
                f"  probes that answered {amount(now.counter('probes.validated'))} of {amount(probes)}, "
                f"mean {duration(now.counter('probes.seconds') / probes)}"
            )
        )
    trouble = {
        "telemetry rejected": now.counter("telemetry.rejected"),
        "replays that did not match": told["recovery_replay_mismatches"],
        "publications that failed": told["publication_failures"],
        "checkpoints that failed": told["checkpoint_failures"],
    }
    bad = [f"{text} {amount(count)}" for text, count in trouble.items() if count]
    return [*lines, Text(f"  {', '.join(bad)}", style="yellow")] if bad else lines
