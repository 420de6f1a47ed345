"""From records to domains: aggregation, the limited-domain rule, and the gates (F300, F303, F304)."""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.errors import ConfigError
from smtspool.profile import Candidate, Policy, Record, build_candidate, parse_artifact, parse_runtime
from tests.profile.support import CONTEXT, OTHER, UINT64, Document, document, documents, domains, probed, saw


def build(*given_: Document, **thresholds: int) -> Candidate:
    records = [record for record in map(Record.of, given_) if record is not None]
    assert len(records) == len(given_)
    return build_candidate(records, Policy(**thresholds))


def admitted(*given_: Document, **thresholds: int) -> dict[int, tuple[int, ...]]:
    return domains(build(*given_, **thresholds).generation)


def told(candidate: Candidate) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(candidate.artifact)
    return document


# -- statistics -------------------------------------------------------------------------------------------


def test_observations_of_several_runs_reach_the_threshold_together() -> None:
    one = document(saw(1, times=4))
    assert admitted(one) == {}
    assert admitted(one, one) == {7: (1,)}


@pytest.mark.parametrize("count", range(1, 13))
def test_a_domain_has_one_to_eight_values(count: int) -> None:
    run = document(saw(*range(count)))
    assert admitted(run, max_distinct_values=64) == ({7: tuple(range(count))} if count <= 8 else {})
    assert told(build(run, max_distinct_values=64))["limited_domain_count"] == 1


def test_the_limit_on_distinct_values_is_inclusive() -> None:
    assert admitted(document(saw(1, 2, 3, 4))) == {7: (1, 2, 3, 4)}
    assert admitted(document(saw(1, 2, 3, 4, 5))) == {}


def test_a_key_that_lost_a_count_is_no_domain_ever_again_in_this_window() -> None:
    assert admitted(document(saw(1)), document(saw(1, saturated=1))) == {}


def test_a_sixty_fifth_value_over_several_runs_saturates_the_key() -> None:
    [row] = told(build(document(saw(*range(64))), document(saw(64))))["profiles"]
    assert row["distinct_values"] == 64
    assert row["saturated"] is True
    assert row["entropy_bits"] is None


def test_programs_and_widths_are_not_mixed() -> None:
    candidate = build(document(saw(1), saw(2, bits=8)), document(saw(3), context=OTHER))
    found = {
        (one.key.context, one.key.bits): one.values
        for one in parse_runtime(candidate.generation.content).domains
    }
    assert found == {(CONTEXT, 32): (1,), (CONTEXT, 8): (2,), (OTHER, 32): (3,)}


def test_of_too_many_keys_the_same_are_kept_in_whatever_order_they_come() -> None:
    runs = [document(saw(1, site=site)) for site in range(1, 4100)]
    there, back = build(*runs), build(*reversed(runs))
    assert there.generation == back.generation
    assert there.generation.profile_count == 4096


def test_a_key_whose_sum_leaves_64_bits_is_left_out() -> None:
    full = document(saw(1, times=UINT64), saw(2, site=8))
    assert admitted(full) == {7: (1,), 8: (2,)}
    assert admitted(full, full) == {8: (2,)}


def test_entropy_is_in_bits() -> None:
    [row] = told(build(document(saw(1, 2))))["profiles"]
    assert row["entropy_bits"] == 1.0
    [row] = told(build(document(saw(1))))["profiles"]
    assert str(row["entropy_bits"]) == "0.0"


# -- yield and cost ---------------------------------------------------------------------------------------


def test_a_domain_that_costs_and_never_yields_is_suppressed_with_its_numbers() -> None:
    candidate = build(document(saw(1), feedback=[probed(1, queries=8, cost_us=1000)]))
    assert domains(candidate.generation) == {}
    assert candidate.generation.suppressed_count == 1
    [proof] = told(candidate)["online_admission"]["suppressed"]
    assert (proof["domain_values"], proof["solver_queries"], proof["solver_time_us"]) == ([1], 8, 1000)
    assert proof["reason"] == "costly-low-validated-query-ratio-v2"


@pytest.mark.parametrize(
    ("queries", "validated", "cost_us"),
    [(7, 0, 1000), (8, 0, 999), (8, 1, 1000), (16, 2, 5000)],
    ids=["too few queries", "too cheap", "exactly the ratio", "exactly the ratio again"],
)
def test_a_gate_that_does_not_close_keeps_the_domain(queries: int, validated: int, cost_us: int) -> None:
    row = probed(1, queries=queries, validated=validated, cost_us=cost_us)
    assert admitted(document(saw(1), feedback=[row])) == {7: (1,)}


def test_just_below_the_ratio_is_below() -> None:
    assert admitted(document(saw(1), feedback=[probed(1, queries=17, validated=2, cost_us=1000)])) == {}


def test_a_ratio_of_zero_suppresses_nothing() -> None:
    costly = document(saw(1), feedback=[probed(1, queries=100, cost_us=10**9)])
    assert admitted(costly, min_validated_ratio_ppm=0) == {7: (1,)}


def test_rows_from_before_costs_were_counted_suppress_nothing_unless_costs_do_not_count() -> None:
    legacy = document(saw(1), feedback=[probed(1, queries=100)[:-1]])
    assert admitted(legacy) == {7: (1,)}
    assert admitted(legacy, min_solver_time_us=0) == {}


def test_failures_of_one_value_set_say_nothing_about_another() -> None:
    failed = probed(1, queries=100, cost_us=10**6)
    assert admitted(document(saw(1, 2), feedback=[failed])) == {7: (1, 2)}
    assert admitted(document(saw(1), feedback=[failed], context=OTHER), document(saw(1))) == {7: (1,)}


def test_rejects_without_a_solver_are_free() -> None:
    rejected = [7, 32, [1], 100, 100, 0, 0, 0, 0, 0, 0, 10**6]
    assert admitted(document(saw(1), feedback=[rejected])) == {7: (1,)}


def test_a_sum_of_failures_past_64_bits_suppresses_nothing() -> None:
    costly = document(saw(1), feedback=[probed(1, queries=8, cost_us=UINT64)])
    assert admitted(costly) == {}
    assert admitted(costly, costly) == {7: (1,)}


# -- the whole path ---------------------------------------------------------------------------------------


@given(st.lists(documents(), max_size=8), st.integers(1, 12), st.integers(1, 6), st.integers(0, 10**6))
def test_what_is_built_proves_itself(given_: list[Document], least: int, most: int, ratio: int) -> None:
    policy = Policy(least, most, min_solver_queries=2, min_validated_ratio_ppm=ratio)
    records = [record for record in map(Record.of, given_) if record is not None]

    candidate = build_candidate(records, policy)

    digest, artifact = parse_artifact(candidate.artifact)
    runtime = parse_runtime(candidate.generation.content)
    assert artifact.seal() == (digest, candidate.artifact)
    assert runtime.artifact_sha256 == digest
    assert runtime.domains == artifact.domains
    assert build_candidate(records, policy) == candidate
    profiles = {profile.key: profile for profile in artifact.aggregate.profiles}
    observed = sum(row.observations for record in records for row in record.profiles)
    assert sum(profile.observations for profile in profiles.values()) == observed
    for domain in artifact.domains:
        profile = profiles[domain.key]
        assert profile.observations >= least
        assert domain.values == tuple(dict(profile.values))
        assert len(domain.values) <= most
    for one in artifact.suppressed:
        rows = chain.from_iterable(
            record.feedback for record in records if record.context == one.domain.key.context
        )
        matching = [
            row
            for row in rows
            if (row.site, row.bits, row.values) == (*one.domain.key[1:], one.domain.values)
        ]
        assert one.found.solver_time_us == sum(row.found.solver_time_us for row in matching)
        assert one.found.lawful


@pytest.mark.parametrize(
    ("name", "value"),
    [("min_observations", 0), ("max_distinct_values", 65), ("min_solver_queries", True),
     ("min_validated_ratio_ppm", 1_000_001), ("min_solver_time_us", -1)],
)  # fmt: skip
def test_a_threshold_out_of_range_is_refused_by_name(name: str, value: int) -> None:
    with pytest.raises(ConfigError, match=name):
        Policy(**{name: value})
