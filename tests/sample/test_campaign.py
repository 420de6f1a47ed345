"""The campaign is the same everywhere, of a size to watch, and has in it what it promises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from smtspool.query import Limits, parse_envelope
from smtspool.sample import CONTEXT, PROGRAMS, campaign, execute, runs, telemetry

from .engine import solve

QUERIES = dict(campaign())


def test_some_hundreds_of_queries_with_names_of_their_own():
    assert 300 < len(QUERIES) < 800
    assert len(QUERIES) == len(list(campaign()))
    assert {e["metadata"]["program"] for e in QUERIES.values()} == set(PROGRAMS)


def test_every_process_makes_the_same_campaign():
    code = "import json; from smtspool.sample import campaign; print(json.dumps(list(campaign())))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert [json.loads(output) for output in outputs] == [[[name, e] for name, e in QUERIES.items()]]


def test_prefixes_are_long_and_shared():
    prefixes = Counter(assertion for e in QUERIES.values() for assertion in e["prefix"])
    assert max(len(e["prefix"]) for e in QUERIES.values()) >= 30
    assert prefixes.most_common(1)[0][1] > 30


def test_symbols_are_octets_of_the_witness():
    for envelope in QUERIES.values():
        witness = envelope["witness"]
        assert envelope["declarations"] == [f"(declare-const {n} (_ BitVec 8))" for n in witness["symbols"]]
        assert all(offset < len(witness["input_hex"]) // 2 for offset in witness["symbols"].values())


def test_an_overlong_encoding_of_one_octet_does_not_exist():
    infeasible = [name for name, e in QUERIES.items() if name.startswith("utf8-0-") and solve(e) is None]
    assert len(infeasible) > 5


def test_a_product_that_cannot_overflow_is_never_seen_to():
    envelope = QUERIES["bitmap-0-0-004.json"]
    assert "bvudiv" in envelope["target"]
    assert solve(envelope) is None


def test_a_record_of_telemetry_counts_what_was_compared():
    program = PROGRAMS["bitmap"]
    record = telemetry(program, b"BM\x10\x10\x08")
    assert record["empirical_value_profile_context"] == CONTEXT
    rows = record["empirical_value_profiles"]
    assert [row[4] for row in rows] == [[[66, 1]], [[77, 1]], [[16, 1]], [[16, 1]], [[8, 1]], [[8, 1]]]
    assert all(row[1:4] == [16, 1, 0] for row in rows)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_record_of_telemetry_adds_up(program):
    for seed in program.seeds:
        rows = telemetry(program, seed)["empirical_value_profiles"]
        compared = [branch for branch in execute(program, seed).branches if branch.operand is not None]
        assert sum(row[2] for row in rows) == len(compared)
        for _, bits, observations, saturated, values in rows:
            total = sum(count for _, count in values)
            assert total < observations if saturated else total == observations
            assert len(values) <= 8
            assert all(0 <= value < 2**bits for value, _ in values)


def test_admission_takes_every_query_and_finds_the_repeats():
    queries = [parse_envelope(envelope, Limits()) for envelope in QUERIES.values()]
    assert len({query.id for query in queries}) == len(queries) - 2  # UTF-8 and LEB128 begin alike
    assert len({query.form.digest for query in queries}) <= 0.6 * len(queries)
    levels = [level.key for query in queries for level in query.levels]
    assert len(set(levels)) < 0.2 * len(levels)
    assert [query.witness.input.hex() for query in queries] == [
        envelope["witness"]["input_hex"] for envelope in QUERIES.values()
    ]


def test_runs_are_of_places_that_the_queries_come_from():
    recorded = dict(runs())
    assert len(recorded) == len(list(runs()))
    sites = {row[0] for record in recorded.values() for row in record["empirical_value_profiles"]}
    asked = {e["metadata"]["site"] for e in QUERIES.values() if "operand" in e["metadata"]}
    assert len(sites & asked) > 30
    assert {record["empirical_value_profile_context"] for record in recorded.values()} == {CONTEXT}
