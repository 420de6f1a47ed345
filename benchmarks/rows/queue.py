"""Claim, complete and status on a full store against a small one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

from smtspool.store import Order, Store

from ..measure import Bench, Row, Sample, at_most
from ..stores import LEASE_SECONDS, OWNER, UNSAT, filled_store

BATCH = 4  # leases a claim: few, so that the small store lasts for many turns


def run(bench: Bench) -> Iterator[Row]:
    few, many = bench.choose(200, 1_000, 1_000), bench.choose(400, 100_000, 1_000_000)
    turns = bench.choose(2, 40, 40)  # per order; more would empty the small store
    with ExitStack() as stack:
        paths = [stack.enter_context(filled_store(bench, rows)) for rows in (few, many)]
        stores = [stack.enter_context(Store.open(path)) for path in paths]
        for order in Order:
            small, large = _operate(stores, turns, order)
            for name, times in large.items():
                what = f"{name} at {many:,} queries" + (f", {order}" if name == "claim" else "")
                if name == "claim" or order is Order.DFS:
                    yield _compared(what, times, f"at {few:,}", small[name])


def _compared(what: str, ours: list[float], against: str, theirs: list[float]) -> Row:
    """Medians: one checkpoint of the log would decide a mean."""
    mine, other = Sample(tuple(ours)), Sample(tuple(theirs))
    ratio = mine.median / other.median
    spread = (mine.quantile(0.25) / other.quantile(0.25), mine.quantile(0.75) / other.quantile(0.75))
    note = "medians; the spread is that of the quartiles"
    return Row(what, "ms", mine.median, against, other.median, ratio, spread, at_most(1.5), note)


def _operate(stores: list[Store], turns: int, order: Order) -> list[dict[str, list[float]]]:
    """Milliseconds of every operation on every store, turn by turn."""
    times: list[dict[str, list[float]]] = [{"claim": [], "complete": [], "status": []} for _ in stores]
    for _ in range(turns):
        for store, taken in zip(stores, times, strict=True):
            started = time.perf_counter()
            leases = store.claim(OWNER, LEASE_SECONDS, BATCH, order)
            claimed = time.perf_counter()
            store.complete([(lease, UNSAT) for lease in leases])
            completed = time.perf_counter()
            store.counts()
            counted = time.perf_counter()
            taken["claim"].append((claimed - started) * 1e3)
            taken["complete"].append((completed - claimed) * 1e3)
            taken["status"].append((counted - completed) * 1e3)
    return times
