"""``smtspool.check``: SMT-LIB in, verified answers out, nothing kept."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import smtspool
from smtspool.errors import AdmissionError, ConfigError, InfrastructureError, Reason
from smtspool.query import Answer, Status
from smtspool.service import Settings, solve_scripts
from smtspool.solve import Portfolio
from tests.service.support import ODD_ENGINE, equation
from tests.solve.refusals import no_more_threads

ENGINES = ("bitwuzla", "z3")
SETTINGS = Settings(jobs=2, engines=ENGINES)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever happens, no temporary folder stays."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    assert list(tmp_path.iterdir()) == []


def test_sat_has_a_model_that_another_engine_verified() -> None:
    [answer] = smtspool.check(equation(42), engines=ENGINES)
    assert answer.status is Status.SAT
    assert answer.model in ({"x": "#x2a"}, {"x": "#b00101010"})
    assert answer.verified_by not in (None, answer.engine)


def test_unsat() -> None:
    assert [one.status for one in smtspool.check(equation(1, against=2), engines=ENGINES)] == [Status.UNSAT]


def test_an_incremental_script_has_one_answer_per_check() -> None:
    script = """(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (bvult x #x10))(check-sat)
        (push 1)(assert (bvult #x20 x))(check-sat)(pop 1)(check-sat)"""
    found = [answer.status for answer in smtspool.check(script, engines=ENGINES)]
    assert found == [Status.SAT, Status.UNSAT, Status.SAT]


def test_a_time_limit_is_unknown_with_its_reason() -> None:
    [answer] = smtspool.check(equation(1, name="slow"), timeout_ms=200, engines=(ODD_ENGINE,))
    assert answer.status is Status.UNKNOWN
    assert "timeout" in (answer.reason or "")  # ours, or the engine's own


def test_a_machine_that_refuses_whatever_is_asked_of_it_ends_the_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve = Portfolio.solve

    def refused(*args: object, **options: object) -> Answer:
        with no_more_threads():
            return solve(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Portfolio, "solve", refused)
    with pytest.raises(InfrastructureError, match="refuses one more thread"):
        list(solve_scripts([("a.smt2", equation(1).encode())], replace(SETTINGS, max_attempts=3)))


def test_one_engine_and_the_evaluator_are_enough_for_sat() -> None:
    [answer] = smtspool.check(equation(42), engines=("z3",))
    assert (answer.status, answer.engine, answer.verified_by) == (Status.SAT, "z3", "evaluator")


def test_sat_without_a_second_engine_is_no_answer_where_one_has_to_confirm_it() -> None:
    settings = Settings(engines=("z3",), confirm_sat="engine")
    [solved] = solve_scripts([("a.smt2", equation(42).encode())], settings)
    assert solved.answer is not None
    assert solved.answer.status is Status.UNKNOWN
    assert "unverified" in (solved.answer.reason or "")


def test_a_refused_script_raises_with_its_reason() -> None:
    with pytest.raises(AdmissionError) as caught:
        smtspool.check('(set-option :regular-output-channel "x")(check-sat)', engines=ENGINES)
    assert caught.value.reason is Reason.COMMAND


def test_a_refused_script_keeps_its_place_among_others() -> None:
    scripts = [("a.smt2", equation(1).encode()), ("b.smt2", b"("), ("c.smt2", equation(2).encode())]
    solved = list(solve_scripts(scripts, SETTINGS))
    assert [one.script for one in solved] == ["a.smt2", "b.smt2", "c.smt2"]
    assert [one.refusal is not None for one in solved] == [False, True, False]


def test_nothing_but_refusals_starts_no_engine() -> None:
    [solved] = solve_scripts([("a.txt", b"")], Settings(engines=("absent=/no/such/solver",)))
    assert solved.refusal is not None
    assert solved.refusal.reason is Reason.SUFFIX


def test_leaving_early_ends_everything() -> None:
    solved = solve_scripts(
        [("a.smt2", equation(1, against=2).encode()), ("b.smt2", equation(1, name="slow").encode())],
        Settings(jobs=1, engines=(ODD_ENGINE,), timeout_ms=1_000_000),
    )
    assert next(solved).answer is not None
    solved.close()


def test_engines_that_do_not_exist_or_do_not_work_are_said_so() -> None:
    with pytest.raises(ConfigError, match="no engine 'z4'"):
        smtspool.check(equation(1), engines=("z4",))
    with pytest.raises(InfrastructureError, match="no engine works"):
        smtspool.check(equation(1), engines=("absent=/no/such/solver",))


def values(script: str, engines: tuple[str, ...] = ENGINES) -> list[Mapping[str, str]]:
    solving = solve_scripts([("q.smt2", script.encode())], replace(SETTINGS, engines=engines))
    with closing(solving) as found:
        return [dict((one.answer and one.answer.values) or {}) for one in found]


def test_the_terms_of_get_value_have_values_under_the_model() -> None:
    script = """(set-logic QF_AUFBV)(declare-const m (Array (_ BitVec 4) (_ BitVec 8)))
        (declare-fun f ((_ BitVec 8)) Bool)(declare-const value!0 (_ BitVec 8))
        (define-fun twice ((x (_ BitVec 8))) (_ BitVec 8) (bvadd x x))
        (assert (= (select m #x1) #x21 value!0))(assert (f #x42))(assert (not (f #x21)))(check-sat)
        (get-value (value!0 (twice (select m #x1)) (f (twice value!0)) (f value!0)))
        (get-value ((bvnot #x00)))"""
    [found] = values(script)
    assert {term: value.replace("#b00100001", "#x21") for term, value in found.items()} == {
        "value!0": "#x21",
        "(twice (select m #x1))": "#x42",
        "(f (twice value!0))": "true",
        "(f value!0)": "false",
        "(bvnot #x00)": "#xff",
    }


def test_where_there_is_no_model_there_are_no_values() -> None:
    asked = "(get-value (x))"
    assert values(equation(1, against=2) + asked + "(reset)" + equation(7) + asked) in (
        [{}, {"x": "#x07"}],
        [{}, {"x": "#b00000111"}],
    )


def test_of_declared_sorts_the_symbols_alone_have_values() -> None:
    """What is of no declared sort has its value, whatever it is about."""
    script = """(set-logic QF_UFBV)(declare-sort U 0)(declare-const u U)(declare-const v U)
        (declare-fun f (U) (_ BitVec 8))(declare-fun g (U) U)(assert (distinct u v))(assert (= (f u) #x07))
        (check-sat)(get-value (u v (= u v) (f u) (g u)))"""
    [found] = values(script)
    assert found.keys() == {"u", "v", "(= u v)", "(f u)"}
    assert found["u"] != found["v"]
    assert (found["(= u v)"], found["(f u)"]) == ("false", "#x07")


def test_equal_queries_may_ask_for_other_values() -> None:
    one, two = (equation(7) + f"(get-value ({term}))" for term in ("x", "(= x #x07)"))
    first, second, third = values(one + "(reset)" + two + "(reset)" + equation(7))
    assert first.keys() == {"x"}
    assert second == {"(= x #x07)": "true"}
    assert third == {}
