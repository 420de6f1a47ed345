"""No profile, however wrong, changes an answer (F305 §7).

Every query of the corpus and of the sample campaign is probed with true, stale, random and hostile profiles,
on helpers that also solve it, and then solved: what it is without them, it is with them.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from smtspool.errors import AdmissionError
from smtspool.query import Answer, Query, Status, parse_envelope, parse_file
from smtspool.sample import PROGRAMS, campaign, telemetry
from smtspool.service import Campaign, Service, Settings
from smtspool.solve import ForkServer, Portfolio, Probe, ProbeEnd, parse_engine, restrict
from smtspool.spool import Spool
from smtspool.store import Store

PROBE_S = 0.03
SOLVE_S = 1.0
BITS = re.compile(r"\(_ BitVec (\d+)\)")
# Each of them takes a second to read, or minutes to solve, and is like its neighbours otherwise.
LARGE = 1 << 18
LONG = "incremental/QF_BV__20210110-Coffin__domain.smt2"
PATIENCE_S = 300.0

HOSTILE = (
    "",
    "x x",
    "(exit)",
    "(assert false)) (check-sat",
    "true",
    "(_ bv0 7)",
    "((_ extract 200 100) {symbol})",
    "(bvadd {symbol} (_ bv1 3))",
    "(concat {symbol} {symbol})",
    "(ite (= {symbol} {symbol}) {symbol} {symbol})",
    "(let ((probed {symbol})) probed)",
    "(bvudiv {symbol} (bvsub {symbol} {symbol}))",
    "(forall ((q Bool)) q)",
)


@pytest.fixture(scope="module")
def portfolio() -> Iterator[Portfolio]:
    with ExitStack() as stack:
        names = ("bitwuzla", "z3", "cvc5")
        servers = [stack.enter_context(ForkServer(parse_engine(name))) for name in names]
        yield stack.enter_context(Portfolio(servers))


def vectors(query: Query) -> list[tuple[str, int]]:
    """Constants that could be operands: name and bits."""
    sized = [(symbol.name, BITS.fullmatch(symbol.sort)) for symbol in query.symbols if not symbol.params]
    return [(name, int(sort[1])) for name, sort in sized if sort and int(sort[1]) <= 64]


def number(value: str) -> int:
    return int(value[2:], 16 if value.startswith("#x") else 2)


def profiles(query: Query, known: Answer, chance: random.Random) -> Iterator[tuple[str, int, list[int]]]:
    """Operand, bits, values: true ones if there is a model, stale ones beside them, random, hostile."""
    for name, bits in chance.sample(found := vectors(query), min(1, len(found))):
        top = (1 << bits) - 1
        if known.model is not None and known.model.get(name, "").startswith(("#x", "#b")):
            value = number(known.model[name])
            yield name, bits, [value]
            yield name, bits, [(value + 1) & top]
        yield name, bits, sorted({chance.randint(0, top) for _ in range(8)})
        yield chance.choice(HOSTILE).format(symbol=name), bits, [0]
        yield name, bits % 64 + 1, [0]  # another width
    yield chance.choice(HOSTILE).format(symbol="x"), 8, [1, 2]


def assert_unchanged(portfolio: Portfolio, query: Query, known: Answer, ends: Counter[str]) -> None:
    for operand, bits, values in profiles(query, known, random.Random(query.id)):
        try:
            restricted = restrict(query, operand, bits, values)
        except AdmissionError:
            ends["refused"] += 1
            continue
        if restricted is None:
            ends[ProbeEnd.REJECTED] += 1
            continue
        probe = portfolio.probe(query, restricted, timeout_s=PROBE_S)
        ends[probe.end] += 1
        assert_harmless(portfolio, query, known, probe)
    again = portfolio.solve(query, timeout_s=SOLVE_S)
    if again.status.definite and known.status.definite:
        assert again.status is known.status


def assert_harmless(portfolio: Portfolio, query: Query, known: Answer, probe: Probe) -> None:
    """It decides nothing, or ``sat`` with a model that engines other than its own confirm."""
    assert (probe.end is ProbeEnd.VALIDATED) == (probe.answer is not None)
    assert probe.attempt is None or probe.attempt.status is not Status.UNSAT
    if probe.answer is None:
        return
    assert probe.answer.status is Status.SAT
    assert known.status is not Status.UNSAT
    assert probe.answer.verified_by not in (None, probe.answer.engine)
    verdict = portfolio.verify(query, probe.answer.model or {}, exclude_engine=probe.answer.engine)
    assert verdict.confirmed is not False


def corpus() -> Iterator[tuple[Query, str]]:
    """Every query of the corpus, and what is known of it."""
    root = Path(os.environ["SMTSPOOL_CORPUS"])
    with (root / "MANIFEST.tsv").open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            data = (root / row["path"]).read_bytes()
            if len(data) > LARGE or row["path"] == LONG:
                continue
            try:
                queries = parse_file(row["path"], data)
            except AdmissionError:
                continue
            expected = row["status"].removeprefix("incremental:").split(",")
            yield from zip(
                queries, expected if len(expected) == len(queries) else [""] * len(queries), strict=True
            )


@pytest.mark.slow
@pytest.mark.corpus
@pytest.mark.skipif("SMTSPOOL_CORPUS" not in os.environ, reason="SMTSPOOL_CORPUS names no corpus")
def test_over_the_corpus(portfolio: Portfolio) -> None:
    ends: Counter[str] = Counter()
    queries = 0
    for query, expected in corpus():
        known = portfolio.solve(query, timeout_s=SOLVE_S)
        assert known.status.value in (expected, "unknown", "error") or not expected
        assert_unchanged(portfolio, query, known, ends)
        queries += 1
    print(f"{queries} queries: {dict(ends)}")
    assert queries > 200
    assert all(ends[end] for end in (*(ProbeEnd.VALIDATED, ProbeEnd.UNSAT, ProbeEnd.UNKNOWN), "refused"))


# -- the sample campaign, through the service ---------------------------------------------------------------

Telemetry = dict[str, Any]


def true_ones() -> list[Telemetry]:
    return [
        telemetry(program, header + seed, len(header))
        for program in PROGRAMS.values()
        for header in (b"", b"EXIF")
        for seed in program.seeds
        for _ in range(8)
    ]


def changed(change: Callable[[int], int]) -> list[Telemetry]:
    """The same places, other values."""
    runs = true_ones()
    for run in runs:
        for row in run["empirical_value_profiles"]:
            counts: Counter[int] = Counter()
            for value, count in row[4]:
                counts[change(value) & 0xFFFFFFFF] += count
            row[4] = sorted(map(list, counts.items()))
    return runs


CHANCE = random.Random(305)
RUNS: dict[str, Callable[[], list[Telemetry]]] = {
    "none": list,
    "true": true_ones,
    "stale": lambda: changed(lambda value: value + 1),
    "random": lambda: changed(lambda _: CHANCE.randrange(3)),
    "hostile": true_ones,
}


def envelopes(kind: str) -> list[dict[str, Any]]:
    """The questions of the campaign, but for the hardest; hostile ones lie about their operands."""
    asked = [envelope for _, envelope in campaign() if envelope["metadata"]["program"] != "keyword"]
    if kind == "hostile":
        for at, envelope in enumerate(asked):
            symbol = f"in_{envelope['metadata']['start']}"
            envelope["metadata"]["operand"] = HOSTILE[at % len(HOSTILE)].format(symbol=symbol)
    return asked


def served(folder: Path, kind: str) -> tuple[dict[str, Answer], dict[str, int | float]]:
    place = Campaign.create(folder / kind)
    for number_, run in enumerate(RUNS[kind]()):
        (place.spool / "telemetry" / f"{number_:04}.json").write_text(json.dumps(run))
    with Spool.open(place.spool) as spool:
        spool.submit_many((f"{n}.json", json.dumps(one).encode()) for n, one in enumerate(envelopes(kind)))
    settings = Settings(profile_window=1000, profile_max_distinct=8)
    with Service(place, settings, once=True) as service:
        assert service.join(PATIENCE_S)
    with Store.open(place.store) as store:
        assert Store.fsck(place.store) == []
        return {result.query_id: result.answer for result in store.results()}, dict(store.counters())


@pytest.mark.slow
def test_over_the_sample_campaign(tmp_path: Path, portfolio: Portfolio) -> None:
    queries = {query.id: query for query in map(parse_envelope, envelopes("none"))}
    plain, counters = served(tmp_path, "none")
    assert plain.keys() == queries.keys()
    assert "probes" not in counters
    for kind in ("true", "stale", "random", "hostile"):
        answers, counters = served(tmp_path, kind)
        assert {id_: answer.status for id_, answer in answers.items()} == {
            id_: answer.status for id_, answer in plain.items()
        }, kind
        probed = [
            (id_, answer)
            for id_, answer in answers.items()
            if answer.status is Status.SAT
            and answer.attempts
            and answer.attempts[-1].attempt_id.startswith("probe")
        ]
        print(f"{kind}: {counters.get('probes', 0):.0f} probes, {len(probed)} answers")
        assert counters.get("probes", 0) + counters.get("probes.refused", 0) > 0, kind
        assert (len(probed) > 0) == (counters.get("probes.validated", 0) > 0)
        for id_, answer in probed:
            assert answer.verified_by not in (None, answer.engine)
            verdict = portfolio.verify(queries[id_], answer.model or {}, exclude_engine=answer.engine)
            assert verdict.confirmed
