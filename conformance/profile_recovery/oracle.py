"""Functions that the model leaves open, recomputed and compared.

They are the domains of records under all thresholds of a policy (F300-F304), and the answer to a query whose
operand is tried in a domain first (F301).

:func:`judge` runs in a process of its own, with today's code or a mutant of it.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from itertools import chain, combinations
from typing import Any

from conformance.engine.gates import Gate, Idle, Nursery
from conformance.engine.replay import Divergence
from smtspool.profile import Policy, ProfileGeneration, Record, build_candidate, parse_runtime
from smtspool.query import Query, parse_envelope
from smtspool.service import Increments, Prober, Settings, Worker
from smtspool.solve import Cancellation, ForkServer, Portfolio, parse_engine

__all__ = ["ANSWERS", "DOMAINS", "check_answers", "check_domains", "expected_domains", "judge"]

ENTRY = "conformance.profile_recovery.oracle:judge"
DOMAINS, ANSWERS = "domains", "answers"
CONTEXT = "c" * 64
SITE, BITS = 7, 8
_PPM = 1_000_000
Rows = list[list[Any]]


# --- domains -----------------------------------------------------------------------------------------


def expected_domains(documents: Sequence[Mapping[str, Any]], policy: Policy) -> Rows:
    """From sound documents, the rows that may be probed: ``[context, site, bits, values]``, in order."""
    counts: dict[tuple[str, int, int], Counter[int]] = defaultdict(Counter)
    lost: set[tuple[str, int, int]] = set()
    probed: dict[tuple[str, int, int, tuple[int, ...]], Counter[str]] = defaultdict(Counter)
    for document in documents:
        context = document["empirical_value_profile_context"]
        for site, bits, _, saturated, pairs in document["empirical_value_profiles"]:
            counts[context, site, bits].update(dict(pairs))
            if saturated:
                lost.add((context, site, bits))
        for site, bits, values, *numbers in document["empirical_domain_feedback"]:
            # A row from before F304 has no time: it cost nothing.
            cost = numbers[8] if len(numbers) == 9 else 0
            probed[context, site, bits, tuple(sorted(values))].update(
                {"queries": numbers[2], "validated": numbers[4], "us": cost}
            )
    rows = []
    for key in sorted(counts):
        values = tuple(sorted(counts[key]))
        limited = counts[key].total() >= policy.min_observations and len(values) <= policy.max_distinct_values
        if not limited or key in lost or len(values) > 8:
            continue
        found = probed[*key, values]
        poor = found["validated"] * _PPM < found["queries"] * policy.min_validated_ratio_ppm
        costly = found["us"] >= policy.min_solver_time_us
        if not (found["queries"] >= policy.min_solver_queries and poor and costly):
            rows.append([*key, list(values)])
    return rows


def _feedback(rng: random.Random, values: Sequence[int]) -> list[Any]:
    """One row, at and about the thresholds."""
    queries, rejects = rng.choice([1, 4, 7, 8, 16]), rng.choice([0, 3])
    validated = rng.choice([0, 1, 2]) if queries >= 2 else 0
    failures = rng.choice([0, 1]) if queries > validated else 0
    sat, attempts = validated + failures, queries + rejects
    row = [SITE, BITS, list(values), attempts, rejects, queries, sat, validated, failures, queries - sat, 0]
    return [*row, *([] if rng.random() < 0.3 else [rng.choice([0, 999, 1000, 5000])])]


def _documents(rng: random.Random) -> list[Mapping[str, Any]]:
    """Few runs of few operands, so that thresholds are met exactly."""
    values = rng.sample(range(20), rng.choice([1, 2, 4, 5, 8, 9, 10]))
    documents: list[Mapping[str, Any]] = []
    for number in range(rng.choice([1, 2, 3])):
        pairs = [[value, rng.choice([1, 2, 7, 8])] for value in values]
        saturated = int(rng.random() < 0.1)
        total = sum(count for _, count in pairs) + saturated
        rows = [[SITE, BITS, total, saturated, pairs], [SITE + 1 + number, BITS, 8, 0, [[3, 8]]]]
        feedback = [_feedback(rng, values)] if len(values) <= 8 and rng.random() < 0.8 else []
        documents.append(
            {
                "schema": 3,
                "empirical_value_profile_context": CONTEXT,
                "empirical_value_profiles": rows,
                "empirical_domain_feedback": feedback,
            }
        )
    return documents


def _policy(rng: random.Random) -> Policy:
    return Policy(
        min_observations=rng.choice([1, 8, 16]),
        max_distinct_values=rng.choice([1, 4, 8, 9, 64]),
        min_solver_queries=rng.choice([1, 8]),
        min_validated_ratio_ppm=rng.choice([0, 125_000, 250_000, 1_000_000]),
        min_solver_time_us=rng.choice([0, 1000]),
    )


def check_domains(mutant: str = "[]", *, cases: int, seed: int) -> int:
    """Compare ``cases`` random windows; how many had something suppressed. Raises :class:`Divergence`."""
    rng = random.Random(seed)
    suppressed = 0
    with _Judge(mutant) as judge_:
        for case in range(cases):
            documents, policy = _documents(rng), _policy(rng)
            wanted = expected_domains(documents, policy)
            found = judge_.call("build", documents=documents, policy=asdict(policy))
            if found != wanted:
                raise Divergence(
                    f"case {case} of seed {seed}: {documents} under {policy} come to {found}, not {wanted}",
                    DOMAINS,
                )
            off = replace(policy, min_validated_ratio_ppm=0)
            suppressed += expected_domains(documents, off) != wanted
    return suppressed


# --- answers -----------------------------------------------------------------------------------------


def check_answers(mutant: str = "[]") -> int:
    """Ask every query about three values under every domain of them, with real engines; how many. Raises
    :class:`Divergence` where an answer is not that of the query alone."""
    asked = 0
    with _Judge(mutant) as judge_:
        for solutions in _subsets((1, 2, 3)):
            for domain in _subsets((1, 2, 3)):
                found = judge_.call("answer", solutions=solutions, domain=domain)
                wanted = "sat" if solutions else "unsat"
                if found != wanted:
                    raise Divergence(
                        f"a query with the solutions {solutions}, tried in {domain} first, is {found}",
                        ANSWERS,
                    )
                asked += 1
    return asked


def _subsets(values: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(values, size) for size in range(len(values) + 1))


def _query(solutions: Sequence[int]) -> Query:
    """Is ``x`` one of these?"""
    either = [f"(= x (_ bv{value} {BITS}))" for value in solutions]
    return parse_envelope(
        {
            "schema": "smtspool-query-v1",
            "logic": "QF_BV",
            "declarations": [f"(declare-const x (_ BitVec {BITS}))"],
            "target": f"(or {' '.join(either)} false)",
            "metadata": {"context": CONTEXT, "site": SITE, "bits": BITS, "operand": "x"},
        }
    )


def _generation(domain: Sequence[int]) -> ProfileGeneration | None:
    rows = [[SITE, BITS, 8 * len(domain), 0, [[value, 8] for value in domain]]]
    record = Record.of({"empirical_value_profile_context": CONTEXT, "empirical_value_profiles": rows})
    return None if record is None else build_candidate([record], Policy()).generation


# --- the process -------------------------------------------------------------------------------------


class _Judge:
    """The process that is asked. A context manager."""

    def __init__(self, mutant: str) -> None:
        self._closing = ExitStack()
        with self._closing:
            nursery = self._closing.enter_context(Nursery(ENTRY, mutant))
            self._participant = nursery.spawn("judge", {}, patience_s=60.0)
            self._closing.callback(self._participant.close)
            self._closing = self._closing.pop_all()

    def call(self, what: str, **params: Any) -> Any:
        """What the call gives; a call that raises gives what it raised."""
        position = self._participant.call(what, **params)
        assert isinstance(position, Idle)
        return position.result

    def __enter__(self) -> _Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()


def judge(gate: Gate) -> None:
    """Builds candidates and answers queries, as it is called to."""
    served: ProfileGeneration | None = None
    with ExitStack() as stack:
        engines: list[Portfolio] = []  # started when the first query comes

        def portfolio() -> Portfolio:
            if not engines:
                servers = [stack.enter_context(ForkServer(parse_engine(name))) for name in ("bitwuzla", "z3")]
                engines.append(stack.enter_context(Portfolio(servers)))
            return engines[0]

        def refused() -> Any:
            raise AssertionError("nothing is stored here")

        prober = Prober(lambda: served, Increments(), budget_s=5.0)
        worker = Worker(
            "oracle",
            Settings(),
            None,  # type: ignore[arg-type]  # no lease is held, so nobody can lose one
            open_store=refused,
            open_portfolio=portfolio,
            committed=lambda: None,
            prober=prober,
        )

        def build(documents: list[Mapping[str, Any]], policy: Mapping[str, int]) -> Rows:
            records = [record for record in map(Record.of, documents) if record is not None]
            generation = build_candidate(records, Policy(**policy)).generation
            domains = parse_runtime(generation.content).domains
            return [[*domain.key, list(domain.values)] for domain in domains]

        def answer(solutions: list[int], domain: list[int]) -> str:
            nonlocal served
            served = _generation(domain)
            return str(worker._solve(portfolio(), _query(solutions), 60.0, Cancellation()).status)

        gate.serve({"build": build, "answer": answer})
