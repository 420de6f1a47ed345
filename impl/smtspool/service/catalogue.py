"""The names in Prometheus of the store's counters, which ``docs/metrics.md`` describes."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CATALOGUE", "EVENTS", "Entry", "entry_of"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One metric made of one or several counters.

    ``counters`` matches their names whole; its group, if there is one, is the value of ``label``.
    """

    counters: str
    metric: str
    help: str
    label: str | None = None
    gauge: bool = False
    scale: float = 1.0


CATALOGUE = (
    Entry(r"queries\.(\w+)", "queries", "Queries by state", "state", gauge=True),
    Entry(r"results\.(\w+)", "results", "Answered queries by status", "status", gauge=True),
    Entry(r"publications\.(\w+)", "publications", "Results by state of their files", "state", gauge=True),
    Entry(r"admission\.(accepted|rejected|deferred)", "files", "Spool files by what was done", "outcome"),
    Entry(r"admission\.bytes", "accepted_bytes", "Bytes of accepted files"),
    Entry(r"admission\.latency_seconds", "waited_seconds", "Seconds that accepted files waited, summed"),
    Entry(r"admission\.latency_count", "waited_files", "Accepted files whose waiting was summed"),
    Entry(r"admission\.scans\.(\w+)", "scans", "Admission passes", "outcome"),
    Entry(r"admission\.lock_wait_seconds", "lock_wait_seconds", "Seconds waited for the admission lock"),
    Entry(r"telemetry\.(\w+)", "telemetry_files", "Telemetry files by what was done", "outcome"),
    Entry(r"attempts\.(.+)", "engine_attempts", "Attempts of answered queries", "engine"),
    Entry(r"wins\.(.+)", "engine_wins", "Answers that an engine gave first", "engine"),
    Entry(r"cancelled\.(.+)", "engine_cancelled", "Attempts that were called off", "engine"),
    Entry(r"attempt_ms\.(.+)", "engine_seconds", "Seconds of attempts", "engine", scale=1e-3),
    Entry(r"answer_ms", "answer_seconds", "Seconds from the first attempt to the answer", scale=1e-3),
    Entry(r"races", "races", "Races that ended"),
    Entry(r"races\.hedged", "hedged_races", "Races that more than one engine entered"),
    Entry(r"races\.seconds", "race_seconds", "Seconds of races"),
    Entry(r"reused\.(\w+)", "reused_answers", "Answers taken from a query of the same form", "status"),
    Entry(r"inputs\.found", "inputs_found", "New inputs written under out/inputs"),
    Entry(r"inputs\.latest", "last_input_timestamp_seconds", "When the last new input was found", gauge=True),
    Entry(r"probes", "probes", "Queries first tried in the values that a program was seen to compare"),
    Entry(r"probes\.seconds", "probe_seconds", "Seconds of such probes"),
    Entry(r"probes\.(\w+)", "ended_probes", "Such probes by how they ended", "end"),
)
# All other counters.
EVENTS = Entry(r"(.+)", "events", "What has happened, by name", "event")


def entry_of(counter: str) -> tuple[Entry, str | None]:
    """The entry of a counter of the store, and the value of the entry's label."""
    for entry in (*CATALOGUE, EVENTS):
        found = re.fullmatch(entry.counters, counter)
        if found:
            return entry, found.group(1) if entry.label else None
    raise AssertionError("EVENTS takes every name")
