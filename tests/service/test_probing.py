"""Probers: which queries are probed, with what, and what is said about it afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from smtspool.profile import Policy, ProfileGeneration, Record, build_candidate
from smtspool.query import Query, Status, parse_envelope
from smtspool.service import Settings
from smtspool.service.engines import Engines
from smtspool.service.increments import Increments
from smtspool.service.probing import Prober
from smtspool.solve import Cancellation, CancelReason, Portfolio, ProbeEnd

CONTEXT = "a" * 64
ORIGIN: Mapping[str, object] = {"context": CONTEXT, "site": 7, "bits": 8, "operand": "x"}


@pytest.fixture(scope="module")
def portfolio() -> Iterator[Portfolio]:
    settings = Settings(jobs=1, engines=("bitwuzla", "z3"))
    with Engines(settings) as engines, engines.portfolio() as running:
        yield running


def below(limit: int, but: int | None = None, **origin: object) -> Query:
    """Is there a byte below ``limit``, which is not ``but``?"""
    return parse_envelope(
        {
            "schema": "smtspool-query-v1",
            "logic": "QF_BV",
            "declarations": ["(declare-const x (_ BitVec 8))"],
            "prefix": [] if but is None else [f"(distinct x (_ bv{but} 8))"],
            "target": f"(bvult x (_ bv{limit} 8))",
            "metadata": {**ORIGIN, **origin},
        }
    )


def generation(*values: int, site: int = 7, bits: int = 8) -> ProfileGeneration:
    rows = [[site, bits, 8 * len(values), 0, [[value, 8] for value in values]]]
    record = Record.of({"empirical_value_profile_context": CONTEXT, "empirical_value_profiles": rows})
    assert record is not None
    return build_candidate([record], Policy()).generation


class Bench:
    """A prober of what may change, and what it counted."""

    def __init__(
        self, portfolio: Portfolio, served: ProfileGeneration | None, *, budget_s: float = 1.0
    ) -> None:
        self.served = served
        self.portfolio = portfolio
        self.increments = Increments()
        self.prober = Prober(lambda: self.served, self.increments, budget_s=budget_s)

    def end(
        self, query: Query, *, limit_s: float = 10.0, cancel: Cancellation | None = None
    ) -> ProbeEnd | None:
        probe = self.prober.probe(self.portfolio, query, limit_s, cancel or Cancellation())
        return None if probe is None else probe.end

    def rows(self) -> list[list[Any]]:
        """Feedback since the last time, without what it cost."""
        return [row[:-1] for document in self.prober.take() for row in document["empirical_domain_feedback"]]


@pytest.fixture
def bench(portfolio: Portfolio) -> Bench:
    return Bench(portfolio, generation(3, 5))


def test_a_query_from_a_place_with_a_domain_is_probed(bench: Bench) -> None:
    probe = bench.prober.probe(bench.portfolio, below(4), 10.0, Cancellation())
    assert probe is not None
    assert probe.answer is not None
    assert probe.answer.status is Status.SAT
    assert probe.answer.model == {"x": "#b00000011"} or probe.answer.model == {"x": "#x03"}
    assert bench.rows() == [[7, 8, [3, 5], 1, 0, 1, 1, 1, 0, 0, 0]]


def test_a_domain_of_which_nothing_fits_costs_no_engine(bench: Bench) -> None:
    assert bench.end(below(2)) is ProbeEnd.REJECTED
    [document] = bench.prober.take()
    assert document["empirical_domain_feedback"] == [[7, 8, [3, 5], 1, 1, 0, 0, 0, 0, 0, 0, 0]]
    assert document["empirical_domain_unsat_fallbacks"] == 1


def test_a_domain_without_a_model_leaves_the_query_open(bench: Bench) -> None:
    assert bench.end(below(5, but=3)) is ProbeEnd.UNSAT
    assert bench.rows() == [[7, 8, [3, 5], 1, 0, 1, 0, 0, 0, 1, 0]]


@pytest.mark.parametrize(
    "origin",
    [
        {"context": "b" * 64},
        {"context": 7},
        {"site": 8},
        {"site": True},
        {"site": 7.0},
        {"site": "7"},
        {"bits": 32},
        {"bits": None},
        {"operand": None},
        {"operand": ["x"]},
    ],
    ids=str,
)
def test_a_query_from_elsewhere_is_not(bench: Bench, origin: dict[str, object]) -> None:
    assert bench.end(below(4, **origin)) is None
    assert bench.prober.take() == []


def test_an_operand_that_is_no_term_is_not_probed(bench: Bench) -> None:
    for operand in ("y", "(exit)", "x x", "", "(concat x x)", "(= x x)"):
        assert bench.end(below(4, operand=operand)) is None
    assert bench.prober.take() == []


def test_nothing_served_is_nothing_probed(bench: Bench) -> None:
    bench.served = None
    assert bench.end(below(4)) is None
    bench.served = generation(3)
    assert bench.end(below(4)) is ProbeEnd.VALIDATED
    bench.served = None
    assert bench.end(below(4)) is None


def test_a_new_generation_replaces_the_old_one(bench: Bench) -> None:
    assert bench.end(below(4)) is ProbeEnd.VALIDATED
    bench.served = generation(9)
    assert bench.end(below(4)) is ProbeEnd.REJECTED
    bench.served = generation(9, site=8)
    assert bench.end(below(4)) is None
    assert [row[2] for row in bench.rows()] == [[3, 5], [9]]


def test_a_bad_text_disables_probing_and_is_counted_once(bench: Bench) -> None:
    bench.served = replace(generation(3), content=generation(3).content + b"more\n")
    assert bench.end(below(4)) is None
    assert bench.end(below(4)) is None
    bench.served = generation(3, 5)
    assert bench.end(below(4)) is ProbeEnd.VALIDATED
    [document] = bench.prober.take()
    assert document["empirical_domain_parse_failures"] == 1
    assert document["empirical_domain_profiles_loaded"] == 1


def test_a_budget_of_nothing_probes_nothing(portfolio: Portfolio) -> None:
    assert Bench(portfolio, generation(3), budget_s=0.0).end(below(4)) is None


def test_a_probe_that_was_called_off_says_nothing_about_the_domain(bench: Bench) -> None:
    token = Cancellation()
    token.cancel(CancelReason.LEASE_LOST)
    assert bench.end(below(4), cancel=token) is ProbeEnd.UNKNOWN
    assert bench.prober.take() == []


def test_what_is_reported_keeps_the_laws_whoever_probed_at_the_same_time(bench: Bench) -> None:
    def work() -> None:
        for limit, but in ((2, None), (4, None), (6, None), (5, 3)):
            bench.end(below(limit, but))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [document] = bench.prober.take()
    record = Record.of(document)
    assert record is not None
    [row] = record.feedback
    assert row.found.lawful
    assert row.found[:3] == (16, 4, 12)
    assert (row.found.validated, row.found.solver_unsat) == (8, 4)
    assert row.found.solver_time_us > 0
    assert document["empirical_domain_attempts"] == 16
    assert document["empirical_domain_unsat_fallbacks"] == 8
    assert bench.prober.take() == []
