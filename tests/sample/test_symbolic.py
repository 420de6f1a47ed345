"""A symbolic value is a number with a memory: it computes like one, and its term says the same."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.sample import BV, Path, Term

from .engine import holds

WORDS = st.integers(0, 0xFFFFFFFF)
OPERATIONS = (
    operator.add,
    operator.sub,
    operator.mul,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.floordiv,
    operator.mod,
)
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def octets(data: bytes, width: int = 32) -> tuple[Path, list[BV]]:
    path = Path(width)
    return path, path.octets(data, 0)


@pytest.mark.parametrize("operation", OPERATIONS)
@given(data=st.binary(min_size=2, max_size=2), constant=st.integers(1, 40))
def test_arithmetic_agrees_with_the_engine(operation, data, constant):
    path, (a, b) = octets(data)
    for result in (operation(a * a, constant), operation(a, b | 1)):
        bool(result == 0)
        assert holds({0: data[0], 1: data[1]}, str(path.branches[-1].assertion))
        operator.index(result)
        assert holds({0: data[0], 1: data[1]}, str(path.branches[-1].assertion))


@pytest.mark.parametrize("comparison", COMPARISONS)
@given(data=st.binary(min_size=2, max_size=2), constant=st.integers(0, 255))
def test_comparing_is_comparing_numbers_and_records_what_was_true(comparison, data, constant):
    path, (a, b) = octets(data)
    assert bool(comparison(a, b)) is comparison(data[0], data[1])
    assert bool(comparison(a, constant)) is comparison(data[0], constant)
    assert [branch.outcome for branch in path.branches] == [
        comparison(data[0], data[1]),
        comparison(data[0], constant),
    ]
    for branch in path.branches:
        assert holds({0: data[0], 1: data[1]}, str(branch.assertion))
        assert not holds({0: data[0], 1: data[1]}, str(branch.assertion.negated()))


@given(WORDS, WORDS)
def test_constants_stand_on_either_side(x, y):
    path, (zero,) = octets(b"\0")
    a = zero + x
    assert (y + a).value == (y + x) % 2**32
    assert (y - a).value == (y - x) % 2**32
    assert (y * a).value == y * x % 2**32
    assert ((y & a).value, (y | a).value, (y ^ a).value) == (y & x, y | x, y ^ x)
    assert path.branches == []


def test_a_comparison_alone_is_no_branch():
    path, (a,) = octets(b"x")
    _ = a == 7
    assert path.branches == []


def test_where_python_needs_a_number_the_path_commits_to_one():
    path, (a,) = octets(b"\x03")
    assert list(range(a)) == [0, 1, 2]
    assert "abcdef"[a] == "d"
    assert [branch.outcome for branch in path.branches] == [3, 3]
    assert str(path.branches[0].assertion) == "(= ((_ zero_extend 24) in_0) #x00000003)"


def test_two_branches_of_one_line_are_two_sites():
    path, (a,) = octets(b"\x03")
    if a > 1 and a < 9:
        first, second = path.branches
    assert first.site // 1000 == second.site // 1000
    assert first.site != second.site


def test_the_operand_is_kept_when_the_other_side_is_a_constant():
    path, (a, b) = octets(b"\x03\x04")
    assert a != b
    assert a + 1 == 4
    assert (path.branches[0].operand, path.branches[1].value) == (None, 4)
    assert str(path.branches[1].operand) == "(bvadd ((_ zero_extend 24) in_0) #x00000001)"


def test_a_symbolic_number_is_no_dictionary_key():
    _, (a,) = octets(b"x")
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


def test_shared_terms_are_bound_once_so_text_stays_linear():
    path, (a,) = octets(b"\x01")
    for _ in range(200):
        a = a + a
    text = str(a.term)
    assert len(text) < 200 * 60
    assert text.count("let") == 199
    assert a.value == 0
    assert path.branches == []


def test_terms_as_deep_as_a_loop_is_long_print_without_recursion():
    term = Term("in_0", inputs=frozenset({0}))
    for _ in range(20_000):
        term = Term.apply("bvnot", term)
    assert str(term) == "(bvnot " * 20_000 + "in_0" + ")" * 20_000


def test_negating_twice_is_the_condition_itself():
    term = Term("p")
    assert term.negated().negated() is term
