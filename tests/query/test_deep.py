"""Depth and size cost time and memory in proportion, and never the stack."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from time import process_time

import pytest

from smtspool.errors import AdmissionError, Reason
from smtspool.query import Limits, Query, decode, encode, parse_smt2, script


def lets(depth: int) -> str:
    opening = "".join(f"(let ((v{n} (bvadd v{n - 1} #x01))) " for n in range(1, depth))
    body = f"(= v{depth - 1} a)"
    return f"(declare-const a (_ BitVec 8))(assert (let ((v0 a)) {opening}{body}{')' * depth})(check-sat)"


def bindings(depth: int) -> str:
    """Lets nested in the bindings, not in the bodies."""
    return (
        "(declare-const a (_ BitVec 8))(assert (= a "
        + "".join(f"(let ((v{n} " for n in range(depth))
        + "a"
        + "".join(f")) v{n})" for n in reversed(range(depth)))
        + "))(check-sat)"
    )


def terms(depth: int) -> str:
    return f"(declare-const p Bool)(assert {'(not ' * depth}p{')' * depth})(check-sat)"


def definitions(depth: int) -> str:
    chain = "".join(f"(define-fun d{n} () Bool (not d{n - 1}))" for n in range(1, depth))
    return f"(declare-const d0 Bool){chain}(assert d{depth - 1})(check-sat)"


def wide(nodes: int) -> str:
    return f"(declare-const p Bool)(assert (and {'(not p) ' * (nodes // 2)}))(check-sat)"


def annotations(depth: int) -> str:
    names = "".join(f" :named n{n})" for n in range(depth))
    return f"(declare-const p Bool)(assert {'(! ' * depth}p{names})(check-sat)"


def path(length: int) -> str:
    """As many assertions as names, all of which the first one has."""
    names = [f"p{n}" for n in range(length)]
    declared = "".join(f"(declare-const {name} Bool)" for name in names)
    return f"{declared}(assert (or {' '.join(names)})){'(assert p0)' * length}(check-sat)"


def elements(count: int) -> str:
    names = [f"e{n}" for n in range(count)]
    declared = "".join(f"(declare-const {name} S)" for name in names)
    return f"(declare-sort S 0){declared}(assert (distinct {' '.join(names)}))(check-sat)"


Shape = Callable[[int], str]
SHAPES: list[Shape] = [lets, bindings, terms, definitions, wide, annotations]


def parsed(text: str) -> Query:
    (query,) = parse_smt2(text)
    return query


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hundred_thousand_levels_are_read_and_come_back(shape: Shape) -> None:
    query = parsed(shape(100_000))
    assert decode(encode(query)) == query
    assert len(script(query)) >= query.size


def test_a_quarter_of_a_million_nodes_are_read() -> None:
    assert parsed(wide(250_000)).target.count("p") == 125_000


@pytest.mark.parametrize("shape", SHAPES)
def test_memory_is_a_small_multiple_of_the_text(shape: Shape) -> None:
    text = shape(12_000)
    parsed(shape(10))
    tracemalloc.start()
    try:
        parsed(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(text)


def test_scopes_opened_at_once_cost_as_one() -> None:
    def cost(scopes: int) -> float:
        text = f"(push {scopes})(pop {scopes})" * 200 + "(check-sat)"
        started = process_time()
        parsed(text)
        return process_time() - started

    one, many = (min(cost(scopes) for _ in range(3)) for scopes in (1, 1_000_000))
    assert many < 10 * one


def test_definitions_asserted_again_count_each_time() -> None:
    """Some 20 bytes of script make the whole chain again: the limit on what is read from one text holds."""
    length = 10
    chain = definitions(length).partition("(assert")[0]

    def asked(times: int, **limits: int) -> Query:
        again = f"(push)(assert d{length - 1})(pop)" * times
        (query,) = parse_smt2(f"{chain}{again}(check-sat)", Limits(**limits))
        return query

    text = asked(0).size
    asked(20, replicated=20 * length)
    asked(20, replicated_text=text * 20)
    for limits in ({"replicated": 20 * length - 1}, {"replicated_text": text * 19}):
        with pytest.raises(AdmissionError, match="replicated") as caught:
            asked(20, **limits)
        assert caught.value.reason is Reason.TOO_LARGE


@pytest.mark.slow
@pytest.mark.parametrize("shape", [*SHAPES, path, elements])
def test_time_grows_with_the_text(shape: Shape) -> None:
    """Sixteen times the text takes far less than the 256 times of anything quadratic."""

    def cost(size: int) -> float:
        text = shape(size)
        started = process_time()
        parsed(text)
        return process_time() - started

    small = min(cost(5_000) for _ in range(3))
    assert cost(80_000) < 80 * small
