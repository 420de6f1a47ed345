"""Every engine, behind its helper, gives the same answers with models that every other engine accepts."""

import itertools
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtspool.query import Status, complete, parse_smt2, script
from smtspool.solve import (
    EngineSpec,
    FailureKind,
    ForkServer,
    GenerationFailed,
    HelperLimits,
    Op,
    Request,
    parse_engine,
    trial,
)
from tests.solve.tracks import eventually, no_trace, soon

Z3 = Path(sys.executable).with_name("z3")
ENGINES = ("bitwuzla", "z3", "cvc5", f"interactive={Z3} -in", f"file={Z3} {{query}}")
LOGICS = {"QF_BV", "QF_ABV", "QF_UFBV", "QF_AUFBV"}

_attempts = (f"attempt-{number}" for number in itertools.count(1))


@pytest.fixture(scope="module")
def servers():
    with no_trace():
        limits = HelperLimits(spare=False)  # nothing of theirs comes while a test counts
        servers = {spec.name: ForkServer(spec, limits) for spec in map(parse_engine, ENGINES)}
        yield servers
        for server in servers.values():
            server.close()


@pytest.fixture(scope="module")
def alone(servers):
    """A second helper of each bundled engine."""
    generations = {name: servers[name].spawn(soon()) for name in ("bitwuzla", "z3", "cvc5")}
    yield generations
    for generation in generations.values():
        generation.retire("end of tests")


@pytest.fixture(params=[parse_engine(text).name for text in ENGINES])
def engine(request):
    return request.param


@pytest.fixture
def generation(servers, engine):
    generation = servers[engine].spawn(soon())
    yield generation
    generation.retire("end of test")


def ask(generation, query, **more):
    request = Request(next(_attempts), Op.SOLVE, query.logic, query.levels, query.symbols, **more)
    return generation.exchange(request, soon())


def check(generation, query, model):
    closed = script(query, model=complete(query, model))
    return generation.exchange(Request(next(_attempts), Op.CHECK, query.logic, script=closed), soon()).status


def assert_of_a_helper(server, told, expected):
    """A fresh helper keeps levels as expected, or the next one does.

    What takes longer than a tenth of a second leaves the stack, and on a busy machine anything may take that.
    """

    def of_the_next():
        generation = server.spawn(soon())
        try:
            return told(generation) == expected
        finally:
            generation.retire("end of test")

    assert eventually(of_the_next)


SATISFIABLE = {
    "bit-vectors": """(set-logic QF_BV)(declare-const x (_ BitVec 8))(declare-const y (_ BitVec 5))
        (declare-const |a b| Bool)(declare-const unused (_ BitVec 64))
        (assert (= (bvmul x x) #x51))(assert (xor |a b| (bvult y #b00011)))(check-sat)""",
    "arrays": """(set-logic QF_ABV)(declare-const a (Array (_ BitVec 4) (_ BitVec 8)))
        (declare-const b (Array (_ BitVec 4) (_ BitVec 8)))(declare-const i (_ BitVec 4))
        (assert (= b (store (store a i #x07) #x3 #x09)))(assert (distinct a b))
        (assert (bvugt (select a #x5) (select b i)))(check-sat)""",
    "functions": """(set-logic QF_UFBV)
        (declare-fun f ((_ BitVec 8)) (_ BitVec 8))(declare-const x (_ BitVec 8))
        (declare-fun |g h| ((_ BitVec 2) Bool) Bool)(declare-fun idle (Bool) Bool)
        (assert (= (f x) (bvadd (f (f x)) #x01)))(assert (distinct (|g h| #b01 true) (|g h| #b01 false)))
        (check-sat)""",
    "all": """(set-logic QF_AUFBV)
        (declare-const a (Array (_ BitVec 4) Bool))(declare-fun f ((_ BitVec 4)) Bool)
        (declare-const k (_ BitVec 4))(define-fun odd ((v (_ BitVec 4))) Bool (= ((_ extract 0 0) v) #b1))
        (assert (and (odd k) (= (select a k) (f k))))(assert (not (f (bvneg k))))(assert (f k))(check-sat)""",
}
UNSATISFIABLE = {
    "bit-vectors": SATISFIABLE["bit-vectors"].replace("#x51", "#x02"),
    "arrays": SATISFIABLE["arrays"].replace("(distinct a b)", "(= (select b #x3) #x08)"),
    "functions": SATISFIABLE["functions"].replace("(|g h| #b01 false)", "(|g h| (bvnot #b10) true)"),
    "all": SATISFIABLE["all"].replace("(assert (f k))", "(assert (not (select a k)))(assert (f k))"),
}


@pytest.mark.parametrize("text", SATISFIABLE.values(), ids=SATISFIABLE)
def test_a_model_convinces_every_other_engine(servers, engine, generation, text):
    (query,) = parse_smt2(text)
    reply = ask(generation, query)
    assert reply.status is Status.SAT
    for name in {"bitwuzla", "z3", "cvc5"} - {engine}:
        other = servers[name].spawn(soon())
        assert check(other, query, reply.model) is Status.SAT, reply.model
        other.retire("end of test")


def test_values_are_spelt_alike(generation):
    (query,) = parse_smt2(
        "(set-logic QF_UFBV)(declare-const x (_ BitVec 8))(declare-const y (_ BitVec 5))"
        "(declare-fun f (Bool) (_ BitVec 4))(assert (= x #x2a))(assert (= y #b01010))"
        "(assert (= (f true) #x9))"
        "(assert (= (f false) #x9))(check-sat)"
    )
    model = ask(generation, query).model
    assert (model["x"], model["y"]) == ("#x2a", "#b01010")
    assert "#x9" in model["f"]


def test_a_wrong_model_convinces_no_engine(generation):
    (query,) = parse_smt2("(declare-const x (_ BitVec 8))(assert (= (bvmul x x) #x51))(check-sat)")
    assert check(generation, query, {"x": "#x09"}) is Status.SAT
    assert check(generation, query, {"x": "#x0a"}) is Status.UNSAT


def test_a_check_that_rewriting_does_not_settle_is_solved(generation):
    open_ended = "(set-logic QF_BV)(declare-fun x () (_ BitVec 8))(assert (= (bvmul x x) #x51))"
    request = Request(next(_attempts), Op.CHECK, script=open_ended)
    assert generation.exchange(request, soon()).status is Status.SAT


@pytest.mark.parametrize("text", UNSATISFIABLE.values(), ids=UNSATISFIABLE)
def test_unsat(generation, text):
    (query,) = parse_smt2(text)
    reply = ask(generation, query)
    assert (reply.status, reply.model) == (Status.UNSAT, None)


def test_text_that_the_engine_refuses_is_an_error_and_costs_no_helper(generation):
    broken = "(set-logic QF_BV)\n(assert (= nobody #x00))\n(check-sat)\n"
    reply = generation.exchange(Request(next(_attempts), Op.CHECK, script=broken), soon())
    assert reply.status is Status.ERROR and reply.reason
    assert not reply.reason.startswith("b'"), "a sentence, not the repr of one"
    (query,) = parse_smt2("(declare-const x Bool)(assert x)(check-sat)")
    assert ask(generation, query).model == {"x": "true"}


def test_an_engine_at_its_limit_says_unknown_or_is_killed(generation):
    from tests.solve.test_generation import HARD

    (query,) = parse_smt2(HARD)
    try:
        assert ask(generation, query, timeout_ms=300).status is Status.UNKNOWN
    except GenerationFailed as failure:
        assert failure.kind is FailureKind.TIMEOUT


def test_a_growing_path_keeps_its_prefix(servers, engine):
    text = "(set-logic QF_BV)(declare-const x (_ BitVec 8))(declare-const y (_ BitVec 8))"
    text += "".join(
        f"(push 1)(assert (not (= x #x{n:02x})))(push 1)(assert (= y x))(check-sat)(pop 1)" for n in range(9)
    )

    def kept(generation):
        replies = [(query, ask(generation, query)) for query in parse_smt2(text)]
        assert {reply.status for _, reply in replies} == {Status.SAT}
        assert all(check_here(query, reply.model) for query, reply in replies)
        return [reply.kept_levels for _, reply in replies]

    # Two share too little; the third begins a stack; from then on all but the target is kept.
    assert_of_a_helper(servers[engine], kept, [0, 0, 0, 3, 4, 5, 6, 7, 8])


def test_a_shrinking_path_keeps_its_prefix(servers, engine):
    text = "(set-logic QF_BV)(declare-const x (_ BitVec 8))"
    text += "".join(f"(assert (bvugt x #x{n:02x}))(check-sat)" for n in range(9))

    def kept(generation):
        replies = [ask(generation, query) for query in reversed(parse_smt2(text))]
        assert {reply.status for reply in replies} == {Status.SAT}
        return [reply.kept_levels for reply in replies]

    assert_of_a_helper(servers[engine], kept, [0, 0, 7, 6, 5, 4, 3, 2, 0])  # one level is no path


def test_after_a_path_the_next_begins_on_the_stack_and_what_is_no_path_does_not(servers, engine):
    text = "(set-logic QF_BV)(declare-const x (_ BitVec 8))"
    *_, third, fourth, fifth = parse_smt2(
        text + "".join(f"(assert (bvugt x #x{n:02x}))(check-sat)" for n in range(5))
    )
    elsewhere = parse_smt2(text + "".join(f"(assert (bvult x #x{n:02x}))" for n in (9, 8, 7)) + "(check-sat)")
    (alone,) = parse_smt2(text + "(assert (= x #x05))(check-sat)")

    def held(generation):
        queries = (third, fourth, fifth, *elsewhere, alone, *elsewhere)
        return [ask(generation, query).held_levels for query in queries]

    assert_of_a_helper(servers[engine], held, [0, 4, 5, 3, 0, 0])


def test_a_hard_query_leaves_the_stack(alone):
    from tests.solve.test_generation import HARD

    generation = alone["bitwuzla"]  # which can be told to stop
    text = HARD.replace("(assert (= (bvmul", "(check-sat)(assert (= (bvmul", 1).removesuffix("(check-sat)")
    text = text.replace("(check-sat)", "".join(f"(assert (bvugt a #x{n:016x}))(check-sat)" for n in range(4)))
    *easy, hard = parse_smt2(text + "(check-sat)")
    assert [ask(generation, query).held_levels for query in easy] == [0, 0, 3, 4]
    reply = ask(generation, hard, timeout_ms=400)
    assert (reply.status, reply.reason) == (Status.UNKNOWN, "timeout")
    assert (reply.kept_levels, reply.held_levels) == (0, 0)
    assert reply.elapsed_ms > 300, "the rest of its time was not lost"


def check_here(query, model):
    """The chain's own truth, in Python."""
    x, y = (int(model[name].replace("#", "0"), 0) for name in "xy")
    return x == y and x >= len(query.prefix)


def test_fresh_forbids_the_stack(generation):
    (query,) = parse_smt2(SATISFIABLE["bit-vectors"])
    for _ in range(3):
        reply = ask(generation, query, fresh=True)
        assert (reply.kept_levels, reply.held_levels) == (0, 0)


@settings(max_examples=25)
@given(paths=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=2, max_size=6))
@pytest.mark.parametrize("engine", ["bitwuzla", "z3", "cvc5"])
def test_reuse_changes_no_answer(servers, alone, engine, paths):
    """Paths share prefixes; ``v`` is of another sort on some of them, and declared at different depths."""
    generation = servers[engine].spawn(soon())
    for path in paths:
        text = "(set-logic QF_BV)(declare-const u (_ BitVec 4))"
        text += f"(declare-const v (_ BitVec {4 + path[-1] % 2}))"
        for depth, choice in enumerate(path):
            text += (
                f"(assert (bvugt u (_ bv{3 * depth} 4)))",
                f"(assert (bvult u (_ bv{9 - depth} 4)))",
                f"(assert (distinct v (bvnot (_ bv{depth} {4 + path[-1] % 2}))))",
                f"(assert (= ((_ extract 0 0) v) ((_ extract {depth % 4} {depth % 4}) u)))",
            )[choice]
        (query,) = parse_smt2(text + "(check-sat)")
        reused, fresh = ask(generation, query), ask(alone[engine], query, fresh=True)
        assert reused.status is fresh.status
        if reused.status is Status.SAT:
            assert check(alone["bitwuzla"], query, reused.model) is Status.SAT
    generation.retire("end of test")


def test_a_deep_term_costs_at_most_the_helper(generation):
    deep = "(bvnot " * 50_000 + "x" + ")" * 50_000
    nested = f"(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= {deep} x))(check-sat)"
    try:
        reply = generation.exchange(Request(next(_attempts), Op.CHECK, script=nested), soon())
        assert reply.status in (Status.SAT, Status.ERROR)
    except GenerationFailed as failure:
        assert failure.kind is FailureKind.CRASHED


def test_every_engine_takes_every_logic(servers, engine):
    capabilities = trial(servers[engine], soon())
    assert capabilities.logics == LOGICS, capabilities.trouble
    assert capabilities.incremental
    assert capabilities.takes("QF_BV") and not capabilities.takes("LIA")


def test_an_engine_is_tried_in_no_other_logics_than_those_asked_about(servers):
    capabilities = trial(servers["bitwuzla"], soon(), logics={"QF_ABV", "LIA"})
    assert capabilities.logics == {"QF_BV", "QF_ABV"}


def test_an_engine_that_is_none_has_no_logics():
    with (
        no_trace(),
        ForkServer(parse_engine("none=/nonexistent/solver"), HelperLimits(spare=False)) as server,
    ):
        capabilities = trial(server, soon())
    assert not capabilities.logics
    assert len(capabilities.trouble) == len(LOGICS)


def test_a_helper_killed_during_the_trial_takes_no_logic_from_its_engine(tmp_path):
    once = f"if mkdir {tmp_path}/killed; then kill -9 $PPID; fi 2>/dev/null; exec {Z3} -in"
    with no_trace(), ForkServer(EngineSpec("killed", ("sh", "-c", once))) as server:
        capabilities = trial(server, soon())
    assert (tmp_path / "killed").is_dir()
    assert capabilities.logics == LOGICS, capabilities.trouble
