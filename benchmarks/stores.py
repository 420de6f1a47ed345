"""Stores with many rows: made once a run, copied for each use."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from smtspool.query import Answer, Query, Status, parse_smt2
from smtspool.store import Order, Store

from .measure import Bench

__all__ = ["LEASE_SECONDS", "OWNER", "UNSAT", "filled_store", "numbered"]

OWNER = "benchmark"
LEASE_SECONDS = 3600.0
UNSAT = Answer(Status.UNSAT, engine="bitwuzla")
DONE = 0.2  # of the rows have a result

_CHUNK = 1_000
_PATHS = 1_000  # prefixes that the rows share


def numbered(number: int) -> Query:
    """Query ``number``: all differ, also up to names; every thousandth has the same prefix."""
    script = (
        "(set-logic QF_BV)(declare-const x (_ BitVec 32))(declare-const y (_ BitVec 32))"
        f"(assert (bvult x (bvadd y #x{number % _PATHS:08x})))"
        f"(assert (= (bvmul x y) #x{number:08x}))(check-sat)"
    )
    (query,) = parse_smt2(script)
    return query


@contextmanager
def filled_store(bench: Bench, rows: int) -> Iterator[Path]:
    """A store for one measurement with so many queries, a fifth of them done."""
    original = bench.work / f"filled-{rows}"
    if not original.exists():
        _fill(bench, original, rows)
    with bench.directory() as directory:
        yield shutil.copytree(original, directory / "store")


def _fill(bench: Bench, directory: Path, rows: int) -> None:
    with Store.open(directory, create=True) as store:
        for first in range(0, rows, _CHUNK):
            bench.say(f"filling a store: {first:,}/{rows:,}")
            store.ingest([numbered(number) for number in range(first, min(rows, first + _CHUNK))])
        for _ in range(0, int(rows * DONE), _CHUNK):
            limit = min(_CHUNK, int(rows * DONE))
            leases = store.claim(OWNER, LEASE_SECONDS, limit, Order.FIFO)
            store.complete([(lease, UNSAT) for lease in leases])
