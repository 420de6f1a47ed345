"""What the service tests share: tiny queries with known answers, odd engines, waiting with a deadline."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from smtspool.query import Query, parse_smt2
from smtspool.service import Campaign
from smtspool.spool import Spool
from smtspool.store import Store

PATIENCE_S = 60.0
Z3 = str(Path(sys.executable).with_name("z3"))
# A real solver but for three words: a query with a symbol `poison` kills the helper that asks, one with a
# symbol `slow` is never answered, and one with a symbol `strange` is called an error.
ODD_ENGINE = (
    'odd=sh -c \'if grep -q poison "$0"; then echo "it was the poison" >&2; kill -9 $PPID; fi; '
    'if grep -q strange "$0"; then echo "(error strange)"; exit 1; fi; '
    f'if grep -q slow "$0"; then exec sleep 1000; fi; exec {Z3} "$0"\' {{query}}'
)


def until(condition: Callable[[], object], what: str = "it", patience_s: float = PATIENCE_S) -> None:
    """Wait until ``condition`` holds; fail after the deadline."""
    deadline = time.monotonic() + patience_s
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {patience_s} s"
        pause.wait(0.01)


def equation(value: int, *, name: str = "x", against: int | None = None) -> str:
    """A script: a byte called ``name`` equals ``value``; ``against`` another value makes it unsat."""
    more = "" if against is None else f"(assert (= {name} (_ bv{against} 8)))"
    return (
        f"(set-logic QF_BV)(declare-const {name} (_ BitVec 8))(assert (= {name} (_ bv{value} 8)))"
        f"{more}(check-sat)"
    )


def query(value: int, *, name: str = "x", against: int | None = None) -> Query:
    (parsed,) = parse_smt2(equation(value, name=name, against=against))
    return parsed


def witnessed(value: int) -> dict[str, object]:
    """An envelope that asks for byte 1 of ``b"AB"`` to be ``value``."""
    return {
        "schema": "smtspool-query-v1",
        "logic": "QF_BV",
        "declarations": ["(declare-const b (_ BitVec 8))"],
        "prefix": [],
        "target": f"(= b (_ bv{value} 8))",
        "witness": {"input_hex": b"AB".hex(), "symbols": {"b": 1}},
        "metadata": {"site": value},
        "timeout_ms": 10_000,
        "priority": 0,
    }


def submit(campaign: Campaign, **scripts: str) -> None:
    """Publish each text as ``name.smt2``."""
    with Spool.open(campaign.spool) as spool:
        spool.submit_many((f"{name}.smt2", text.encode()) for name, text in scripts.items())


@contextmanager
def locked(campaign: Campaign) -> Iterator[None]:
    """Somebody else writes to the store, until the block ends."""
    with closing(sqlite3.connect(campaign.store / "index.sqlite3", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def answers(campaign: Campaign) -> dict[str, str]:
    """Query id to status."""
    with Store.open(campaign.store) as store:
        return {result.query_id: result.answer.status.value for result in store.results()}
