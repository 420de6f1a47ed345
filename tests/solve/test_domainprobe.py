"""A probe answers sat, or leaves the query as open as it was (F301)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.errors import AdmissionError, ClosedError
from smtspool.query import Query, Status, parse_envelope, parse_smt2, to_envelope
from smtspool.solve import (
    Cancellation,
    CancelReason,
    Confirm,
    ForkServer,
    Hedge,
    HedgePolicy,
    HelperLimits,
    Portfolio,
    ProbeEnd,
    parse_engine,
    restrict,
)
from tests.solve.queries import HARD
from tests.solve.scripted import ScriptedServer

Portfolios = Callable[..., Portfolio]


def query(text: str) -> Query:
    (parsed,) = parse_smt2(
        f"(set-logic QF_BV)(declare-const x (_ BitVec 8))(declare-const y (_ BitVec 8)){text}(check-sat)"
    )
    return parsed


BELOW_TEN = query("(assert (bvult x #x0a))(assert (bvult x y))")


def limited(operand: str, bits: int, *values: int) -> Query:
    restricted = restrict(BELOW_TEN, operand, bits, values)
    assert restricted is not None
    return restricted


@pytest.fixture
def scripted() -> Iterator[Portfolios]:
    with ExitStack() as stack:

        def start(**scripts: str) -> Portfolio:
            servers = [stack.enter_context(ScriptedServer(name, text)) for name, text in scripts.items()]
            policy = HedgePolicy(Hedge.FIXED)
            portfolio = Portfolio(servers, policy=policy, confirm=Confirm.ENGINE)  # type: ignore[arg-type]
            return stack.enter_context(portfolio)

        yield start


@pytest.fixture(scope="module")
def real() -> Iterator[Portfolio]:
    with ExitStack() as stack:
        servers = [stack.enter_context(ForkServer(parse_engine(name))) for name in ("bitwuzla", "z3")]
        yield stack.enter_context(Portfolio(servers, confirm=Confirm.ENGINE))


# -- what is asked ----------------------------------------------------------------------------------------


def test_a_restricted_query_stands_on_the_whole_query() -> None:
    restricted = restrict(BELOW_TEN, "(bvadd x y)", 8, (1, 2))
    assert restricted is not None
    assert restricted.levels[:-1] == BELOW_TEN.levels
    assert restricted.symbols == BELOW_TEN.symbols
    assert restricted.target == "(let ((probed (bvadd x y))) (or (= probed (_ bv1 8)) (= probed (_ bv2 8))))"
    assert limited("x", 8, 3).target == "(let ((probed x)) (= probed (_ bv3 8)))"
    envelope = {**to_envelope(BELOW_TEN), "prefix": [*BELOW_TEN.prefix, BELOW_TEN.target]}
    read = parse_envelope({**envelope, "target": restricted.target})
    assert (restricted.id, restricted.levels, restricted.size) == (read.id, read.levels, read.size)


def test_what_the_query_has_not_needed_before_is_declared() -> None:
    one = query("(assert (= x #x01))")
    restricted = restrict(one, "y", 8, (2,))
    assert restricted is not None
    assert restricted.levels[-1].declarations == ("(declare-fun y () (_ BitVec 8))",)


def test_values_that_the_target_excludes_are_left_out() -> None:
    one = query("(assert (bvult x #x0a))")
    restricted = restrict(one, "x", 8, (9, 10, 11))
    assert restricted is not None
    assert restricted.target == "(let ((probed x)) (= probed (_ bv9 8)))"
    assert restrict(one, "x", 8, (10, 11)) is None


@pytest.mark.parametrize(
    "operand", ["", "z", "x y", "(bvadd x", "x)", "(exit)", "(assert x)", "x)) (check-sat", "\0"]
)
def test_what_is_no_term_of_the_query_is_refused(operand: str) -> None:
    with pytest.raises(AdmissionError):
        restrict(BELOW_TEN, operand, 8, (1,))


@given(st.text(alphabet='()xy |"_#01;!let\n', max_size=24))
def test_no_operand_gets_past_one_assertion(operand: str) -> None:
    try:
        restricted = restrict(BELOW_TEN, operand, 8, (1, 2))
    except AdmissionError:
        return
    assert restricted is not None
    assert restricted.levels[:-1] == BELOW_TEN.levels
    assert restricted.levels[-1].declarations in ((), ("(declare-fun y () (_ BitVec 8))",))
    assert len(restricted.levels) == len(BELOW_TEN.levels) + 1


# -- what it comes to -------------------------------------------------------------------------------------


def test_a_model_in_the_domain_is_an_answer_that_another_engine_has_verified(real: Portfolio) -> None:
    probe = real.probe(BELOW_TEN, limited("x", 8, 7), timeout_s=10)
    assert probe.end is ProbeEnd.VALIDATED
    answer = probe.answer
    assert answer is not None
    assert answer.status is Status.SAT
    assert answer.model is not None
    assert answer.model["x"] in ("#x07", "#b00000111")
    assert {answer.engine, answer.verified_by} == {"bitwuzla", "z3"}
    assert [attempt.verified for attempt in answer.attempts] == [True]
    assert answer.attempts[0].attempt_id.startswith("probe-")
    assert real.verify(BELOW_TEN, answer.model).confirmed


def test_no_model_in_the_domain_says_nothing(real: Portfolio) -> None:
    probe = real.probe(BELOW_TEN, limited("x", 8, 200, 201), timeout_s=10)
    assert (probe.end, probe.answer) == (ProbeEnd.UNSAT, None)
    assert probe.attempt is not None
    assert (probe.attempt.status, probe.attempt.reason) == (Status.UNKNOWN, "probe: unsat")
    answer = real.solve(BELOW_TEN, timeout_s=10)
    assert answer.status is Status.SAT
    assert answer.attempts[0].prefix_hit == len(BELOW_TEN.levels)  # what the probe left on the stack


def test_a_term_of_another_sort_is_refused() -> None:
    with pytest.raises(AdmissionError, match="one sort"):
        restrict(BELOW_TEN, "x", 32, (7,))


def test_a_probe_of_a_hard_query_keeps_to_its_budget(real: Portfolio) -> None:
    restricted = restrict(HARD, "(bvand p #x00000001)", 32, (1,))
    assert restricted is not None
    probe = real.probe(HARD, restricted, timeout_s=0.05)
    assert (probe.end, probe.answer) == (ProbeEnd.UNKNOWN, None)
    assert probe.solver_us < 5_000_000


@pytest.mark.parametrize(
    ("engine", "end", "reason"),
    [
        ("unsat", ProbeEnd.UNSAT, "probe: unsat"),
        ("unknown", ProbeEnd.UNKNOWN, "probe: unknown"),
        ("error", ProbeEnd.UNKNOWN, "scripted error"),
        ("die", ProbeEnd.UNKNOWN, None),
        ("garbage", ProbeEnd.UNKNOWN, None),
        ("other", ProbeEnd.UNKNOWN, None),
        ("hang", ProbeEnd.UNKNOWN, None),
    ],
)
def test_whatever_the_engine_does_the_probe_decides_nothing(
    scripted: Portfolios, engine: str, end: ProbeEnd, reason: str | None
) -> None:
    portfolio = scripted(bitwuzla=engine, z3="sat")
    timeout_s = 0.2 if engine == "hang" else 30
    probe = portfolio.probe(BELOW_TEN, limited("x", 8, 1), timeout_s=timeout_s)
    assert (probe.end, probe.answer) == (end, None)
    assert probe.attempt is not None
    assert probe.attempt.status is not Status.UNSAT
    assert reason is None or probe.attempt.reason == reason


@pytest.mark.parametrize(
    ("checks", "verified"),
    [("unsat", False), ("unknown", None), ("die", None)],
    ids=["wrong", "open", "dead"],
)
def test_a_model_that_nobody_confirms_is_none(
    scripted: Portfolios, checks: str, verified: bool | None
) -> None:
    portfolio = scripted(bitwuzla="sat", z3=f"unsat / {checks}")
    probe = portfolio.probe(BELOW_TEN, limited("x", 8, 1), timeout_s=5)
    assert (probe.end, probe.answer) == (ProbeEnd.INVALID, None)
    assert probe.attempt is not None
    assert (probe.attempt.status, probe.attempt.verified) == (Status.UNKNOWN, verified)


@pytest.mark.parametrize(("says", "end"), [("bare", ProbeEnd.VALIDATED), ("sat", ProbeEnd.UNKNOWN)])
def test_values_of_declared_sorts(scripted: Portfolios, says: str, end: ProbeEnd) -> None:
    """A missing value is some element; a function that is a literal is no model."""
    (opaque,) = parse_smt2(
        "(set-logic QF_UFBV)(declare-sort S 0)(declare-fun s (S) S)(declare-const x (_ BitVec 8))"
        "(assert (= (bvadd x #x01) #x06))(check-sat)"
    )
    restricted = restrict(opaque, "x", 8, (5,))
    assert restricted is not None
    probe = scripted(bitwuzla=says, z3="sat").probe(opaque, restricted, timeout_s=30)
    assert probe.end is end
    assert (probe.answer is None) == (end is ProbeEnd.UNKNOWN)


@pytest.mark.parametrize(("solves", "end"), [(False, ProbeEnd.UNKNOWN), (True, ProbeEnd.INVALID)])
def test_a_probe_too_large_to_be_sent_decides_nothing(solves: bool, end: ProbeEnd) -> None:
    small, large = HelperLimits(frame=64), HelperLimits(frame=1 << 20)
    with (
        ScriptedServer("bitwuzla", "sat", limits=large if solves else small) as bitwuzla,
        ScriptedServer("z3", "sat", limits=small if solves else large) as z3,
        Portfolio([bitwuzla, z3], policy=HedgePolicy(Hedge.FIXED), confirm=Confirm.ENGINE) as portfolio,
    ):
        probe = portfolio.probe(BELOW_TEN, limited("x", 8, 1), timeout_s=30)
    assert (probe.end, probe.answer) == (end, None)


def test_with_a_single_engine_there_is_nobody_to_confirm(scripted: Portfolios) -> None:
    probe = scripted(bitwuzla="sat").probe(BELOW_TEN, limited("x", 8, 1), timeout_s=5)
    assert (probe.end, probe.answer) == (ProbeEnd.INVALID, None)


def test_a_cancelled_probe_is_over_at_once(scripted: Portfolios) -> None:
    token = Cancellation()
    token.cancel(CancelReason.LEASE_LOST)
    probe = scripted(bitwuzla="hang", z3="hang").probe(
        BELOW_TEN, limited("x", 8, 1), timeout_s=60, cancel=token
    )
    assert (probe.end, probe.answer) == (ProbeEnd.UNKNOWN, None)


def test_a_closed_portfolio_refuses_a_probe(scripted: Portfolios) -> None:
    portfolio = scripted(bitwuzla="sat", z3="sat")
    portfolio.close()
    with pytest.raises(ClosedError):
        portfolio.probe(BELOW_TEN, limited("x", 8, 1), timeout_s=5)
