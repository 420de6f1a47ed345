"""The problems are what the rows say they are."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.engines import pinned
from benchmarks.inputs import Problem, chains, renamed, small, with_repeats
from benchmarks.measure import Bench, Sample, Size, at_least, at_most
from smtspool.query import Query, parse_file

SCRIPT = (
    "(set-logic QF_BV)(declare-fun T1_7 () (_ BitVec 8))(declare-fun T2_7 () (_ BitVec 16))\n"
    "(assert (let ((?v_0 (bvult T1_7 (_ bv9 8)))) (and true ?v_0 (= ((_ zero_extend 8) T1_7) T2_7))))\n"
    "(check-sat)(exit)"
)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(Size.TINY, seed=1, work=tmp_path, corpus=None)


@pytest.fixture
def corpus_bench(tmp_path: Path) -> Bench:
    corpus = os.environ.get("SMTSPOOL_CORPUS")
    if corpus is None:
        pytest.skip("SMTSPOOL_CORPUS is not set")
    return Bench(Size.TINY, seed=1, work=tmp_path, corpus=Path(corpus))


def parsed(problem: Problem) -> Query:
    (query,) = parse_file(problem.name, problem.data)
    return query


def test_a_renamed_script_differs_in_names_only() -> None:
    original = Problem.of_script("q", SCRIPT)
    copy = renamed(original, 3)
    assert copy.family == original.family
    assert "T1_7" not in copy.script
    assert parsed(copy).id != parsed(original).id
    assert parsed(copy).form.digest == parsed(original).form.digest


def test_a_renamed_envelope_differs_in_names_only(bench: Bench) -> None:
    original = small(bench, 1)[0]
    copy = renamed(original, 3)
    assert parsed(copy).id != parsed(original).id
    assert parsed(copy).form.digest == parsed(original).form.digest


def test_file_and_script_of_a_problem_say_the_same(bench: Bench) -> None:
    for problem in small(bench, 20):
        (of_script,) = parse_file("q.smt2", problem.script.encode())
        assert parsed(problem).id == of_script.id


def test_no_two_small_problems_are_the_same_query(bench: Bench) -> None:
    queries = [parsed(problem).id for problem in small(bench, 600)]
    assert len(set(queries)) == len(queries) == 600


def test_63_in_100_repeat_another_problem_up_to_names(bench: Bench) -> None:
    problems = with_repeats(bench, 200)
    assert len(problems) == 200
    assert len({problem.family for problem in problems}) == 74


def test_the_same_seed_gives_the_same_problems(bench: Bench) -> None:
    assert with_repeats(bench, 50) == with_repeats(bench, 50)


@pytest.mark.corpus
def test_shortened_paths_differ_also_up_to_names(corpus_bench: Bench) -> None:
    problems = small(corpus_bench, 300)
    assert any("-cut" in problem.name for problem in problems)
    forms = {parsed(problem).form.digest for problem in problems}
    assert len(forms) > 0.95 * len(problems)


def test_a_chain_grows_by_one_assertion_that_keeps_to_the_path(bench: Bench) -> None:
    queries = [parsed(problem) for problem in chains(bench, 1)]
    assert 30 <= len(queries) <= 60
    for earlier, later in pairwise(queries):
        assert later.prefix[:-1] == earlier.prefix
        taken = later.prefix[-1]
        assert earlier.target == f"(not {taken})" or taken == f"(not {earlier.target})"


def test_a_pinned_script_declares_nothing() -> None:
    script = pinned(SCRIPT, {"T1_7": "#x05"})
    assert "declare" not in script
    assert "(define-fun T1_7 () (_ BitVec 8) #x05)" in script
    assert "(define-fun T2_7 () (_ BitVec 16) (_ bv0 16))" in script


def test_a_ratio_is_taken_round_by_round() -> None:
    slow_minute = Sample((10.0, 2.0, 10.0))
    assert slow_minute.over(Sample((5.0, 1.0, 5.0))).values == (2.0, 2.0, 2.0)


def test_a_bar_is_met_at_its_limit() -> None:
    assert at_least(3).met_by(3.0)
    assert at_most(1.5).met_by(1.5)
    assert not at_least(3).met_by(2.9)
