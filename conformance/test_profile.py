"""The committed graphs of profile recovery, driven whole through today's code, and what must not pass."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from conformance import protocols
from conformance.engine.graph import Graph, load
from conformance.engine.module import definitions, identifiers, variables
from conformance.engine.mutants import Mutant
from conformance.profile_recovery import run as profile_run
from conformance.profile_recovery.invariants import invariants
from conformance.profile_recovery.mutants import MUTANTS, SHOWS_IN
from conformance.profile_recovery.oracle import (
    ANSWERS,
    DOMAINS,
    check_answers,
    check_domains,
    expected_domains,
)
from conformance.profile_recovery.run import GRAPHS
from conformance.profile_recovery.system import MODULE
from smtspool.profile import Policy

WORKERS = os.cpu_count() or 1
# What the issue names, each under its own name.
NAMED = {
    "replay-skipped", "compare-by-digest", "checkpoint-ignored", "dirty-cleared-early",
    "runtime-before-artifact", "nine-values", "ratio-at-most", "legacy-suppresses", "probe-unsat-final",
    "stale-served",
}  # fmt: skip


@pytest.fixture(scope="module")
def graphs() -> Sequence[Graph]:
    return [load(MODULE.with_name(f"{name}.graph.xz")) for name in GRAPHS]


@pytest.mark.slow
def test_every_edge_and_every_refusal(graphs: Sequence[Graph]) -> None:
    driven = profile_run.drive_all(workers=WORKERS)
    assert driven.states == sum(len(graph.states) for graph in graphs) == 4127
    assert driven.edges == driven.edges_required == sum(len(graph.edges) for graph in graphs) == 13284
    assert driven.refusals == driven.refusals_required == 8469
    assert driven.excluded == 11780
    assert driven.complete


@pytest.mark.parametrize("graph", ["GraphFailures", "GraphDamage"])
def test_a_few_tours_leave_no_thread_and_no_descriptor(graph: str) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    with profile_run.replay(graph) as replay:
        drive = replay.run(most_tours=3, longest=60)
    assert drive.tours == 3 and drive.steps > 60 and not drive.complete
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, descriptors)


@pytest.mark.slow
def test_named_mutants_are_caught_and_the_control_survives() -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        kills = {kill.mutant.name: kill for kill in pool.map(profile_run.hunt, MUTANTS)}
    assert [name for name, kill in kills.items() if not kill.as_wanted] == []
    assert {name for name, kill in kills.items() if kill.detector is None} == {"control"}
    assert set(kills) > NAMED
    assert {kills[name].detector for name in ("nine-values", "ratio-at-most", "legacy-suppresses")} == {
        DOMAINS
    }
    assert kills["probe-unsat-final"].detector == ANSWERS
    # Each of these breaks an invariant of the model on the real state before anything else.
    assert kills["serve-in-doubt"].detector == "invariant NothingServedInDoubt"
    assert kills["checkpoint-ignored"].detector == "invariant DifferenceIsDirty"
    assert kills["stale-served"].detector == "invariant ServedIsJustified"
    assert "python -m conformance profile/GraphDamage --variant" in kills["replay-skipped"].message


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutants_apply_to_the_code_as_it_is(mutant: Mutant) -> None:
    mutant.check()


def test_hints_are_about_mutants_and_what_finds_them() -> None:
    assert set(SHOWS_IN) == {mutant.name for mutant in MUTANTS if not mutant.control}
    assert set(SHOWS_IN.values()) <= {*GRAPHS, DOMAINS, ANSWERS}


def test_the_projection_has_the_variables_of_the_module(graphs: Sequence[Graph]) -> None:
    for graph in graphs:
        assert graph.variables == set(variables(MODULE))


def test_every_state_predicate_of_the_module_is_evaluated_on_the_real_state() -> None:
    stated = {name for name, _ in identifiers(MODULE).values()}
    # The last speaks of answers, which real engines are asked for instead.
    others = {"TypeOK", "ArtifactFirst", "CountersRise", "Settles", "ProbeDecidesNothing"}
    assert stated - others == set(invariants(GRAPHS["GraphWindow"].thresholds()))


def test_every_action_of_the_module_labels_an_edge(graphs: Sequence[Graph]) -> None:
    labelled = {str(label["name"]) for graph in graphs for label in graph.labels.values()}
    assert labelled == {
        "Observe", "Build", "WriteArtifact", "WriteRuntime", "WriteState", "Switch", "Serve",
        "Restart", "LoadState", "VerifyRuntime", "Replay",
        "FailWrite", "Crash", "Drift", "Truncate", "ChangePolicy", "Corrupt", "Remove",
    }  # fmt: skip
    # Remove is Corrupt of a runtime file that leaves nothing.
    assert labelled - {"Remove"} <= set(definitions(MODULE))


def test_each_variable_takes_two_values(graphs: Sequence[Graph]) -> None:
    for name in variables(MODULE):
        assert any(len({str(state[name]) for state in graph.values}) > 1 for graph in graphs), name


def test_one_path_is_repeated_by_its_numbers(graphs: Sequence[Graph]) -> None:
    number = next(n for n, edge in enumerate(graphs[0].edges) if edge.source in graphs[0].initial)
    with protocols.replay("profile/GraphFailures") as replay:
        assert replay.path([number]).steps == 1


# -- what the model leaves to a function ------------------------------------------------------------------


def test_domains_of_random_windows_are_what_all_gates_say() -> None:
    assert check_domains(cases=200, seed=305) > 10


def _window(*feedback: list[object], values: Sequence[int] = (1,)) -> dict[str, object]:
    rows = [[7, 8, 8 * len(values), 0, [[value, 8] for value in values]]]
    context = "c" * 64
    return {
        "empirical_value_profile_context": context,
        "empirical_value_profiles": rows,
        "empirical_domain_feedback": list(feedback),
    }


def test_the_oracle_knows_the_thresholds() -> None:
    row = [["c" * 64, 7, 8, [1]]]
    eighth = [7, 8, [1], 8, 0, 8, 1, 1, 0, 7, 0, 5000]
    assert expected_domains([_window(eighth)], Policy()) == row
    none = [7, 8, [1], 8, 0, 8, 0, 0, 0, 8, 0, 1000]
    assert expected_domains([_window(none)], Policy()) == []
    assert expected_domains([_window([*none[:-1], 999])], Policy()) == row
    assert expected_domains([_window(none[:-1])], Policy()) == row
    wide = Policy(max_distinct_values=64)
    assert expected_domains([_window(values=range(9))], wide) == []
    assert expected_domains([_window(values=range(8))], wide) == [["c" * 64, 7, 8, list(range(8))]]


@pytest.mark.slow
def test_no_domain_changes_an_answer() -> None:
    assert check_answers() == 64
