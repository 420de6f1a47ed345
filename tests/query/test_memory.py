"""What was read before never changes what is read now, and takes bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.errors import AdmissionError, Reason
from smtspool.query import Limits, Query, encode, parse_envelope, parse_file, parse_smt2
from smtspool.query.memory import Memo, memory_of
from smtspool.sample import campaign
from tests.query.generate import script_of

BYTE = "(declare-const x (_ BitVec 8))"


def ask(*assertions: str, declared: Iterable[str] = (BYTE,), logic: str = "QF_BV", **limits: int) -> Query:
    document: Mapping[str, Any] = {
        "schema": "smtspool-query-v1",
        "logic": logic,
        "declarations": list(declared),
        "prefix": list(assertions[:-1]),
        "target": assertions[-1],
    }
    return parse_envelope(document, Limits(**limits))


def as_script(query: Query) -> Query:
    """The same question, read without a memory of its texts."""
    lines = [f"(set-logic {query.logic})", *query.declarations]
    lines += [f"(assert {term})" for term in (*query.prefix, query.target)]
    return parse_smt2("".join((*lines, "(check-sat)")))[0]


def digest(queries: Iterable[Query]) -> str:
    """Of everything a store or another query may compare."""
    parts = (repr((query.id, [level.key for level in query.levels], query.form)) for query in queries)
    return sha256("\n".join(parts).encode()).hexdigest()


# Its bvite was known to one engine only, and is written as an ite since.
WRITTEN_OUT = "cvc5__regress0__proofs__bvrewrite-ite.smt2"


class TestGolden:
    """Digests that every earlier release gave. A change here makes existing stores forget what they know."""

    def test_generated_scripts(self) -> None:
        queries = [query for seed in range(300) for query in parse_smt2(script_of(seed))]
        assert digest(queries) == "789dc05b13d8b52dcbfc837e731697fd6dfacfe2e8c71605b3f39d0235824b29"
        bodies = sha256(b"".join(map(encode, queries))).hexdigest()
        assert bodies == "93ba964af93f2ddf46a874fc5c61ecdb5b51ad4df78e501f94fbfb4f63730500"

    def test_the_sample_campaign(self) -> None:
        queries = (parse_envelope(envelope) for _, envelope in campaign())
        assert digest(queries) == "e4651915f7e03cedd203fe7083fd330ea47c84ea46eaf8e0f5f431053138f407"

    @pytest.mark.corpus
    def test_the_corpus(self) -> None:
        if "SMTSPOOL_CORPUS" not in os.environ:
            pytest.skip("SMTSPOOL_CORPUS is unset")
        corpus = Path(os.environ["SMTSPOOL_CORPUS"])
        files = sorted(corpus.rglob("*.smt2"), key=lambda path: str(path.relative_to(corpus)))
        files = [path for path in files if path.name != WRITTEN_OUT]
        queries = (query for path in files for query in parse_file(path.name, path.read_bytes()))
        assert digest(queries) == "a5f4ccfea882bc823fd440c7ba897595f6078162edc8007e22fe91b972e2d049"


class TestSameText:
    def test_it_is_the_same_query(self) -> None:
        first, again = (ask("(= x #x00)", "(= x #x01)") for _ in range(2))
        assert again == first == as_script(first)

    def test_its_names_must_be_declared_each_time(self) -> None:
        ask("(bvult x #x10)")
        with pytest.raises(AdmissionError, match="not declared") as caught:
            ask("(bvult x #x10)", declared=())
        assert caught.value.reason is Reason.SYMBOL

    def test_a_name_bound_by_let_need_not_be_declared_each_time(self) -> None:
        text = "(let ((b x)) (= b b))"
        both = ask(text, declared=(BYTE, "(declare-const b Bool)"))
        alone = ask(text)
        assert both == as_script(both)
        assert alone == as_script(alone)
        assert both.levels[0].declarations != alone.levels[0].declarations

    def test_a_name_that_was_written_out_may_be_declared_by_the_next_document(self) -> None:
        booleans = ("(declare-const a Bool)", "(declare-const b Bool)")
        for name, first in (("implies", "(=> a b)"), ("iff", "(= a b)"), ("|if|", "(ite a b b)")):
            arguments = first.split(maxsplit=1)[1]
            text = f"({name} {arguments}"
            declared = (*booleans, f"(declare-fun {name} ({'Bool ' * arguments.count(' ')}Bool) Bool)")
            assert ask(text, declared=booleans, logic="QF_UFBV").target == first
            assert ask(text, declared=declared, logic="QF_UFBV").target == text.replace("|", "")
            assert ask(text, declared=booleans, logic="QF_UFBV").target == first

    def test_an_abbreviated_sort_means_what_this_document_says(self) -> None:
        for width in (8, 16, 8):
            declared = (f"(define-sort W () (_ BitVec {width}))", "(declare-const x W)")
            query = ask("(= x x)", declared=declared)
            assert query.symbols[0].sort == f"(_ BitVec {width})"
        with pytest.raises(AdmissionError):
            ask("(= x x)", declared=("(declare-const x W)",))

    def test_an_abbreviation_inside_a_term_means_what_this_document_says(self) -> None:
        text = "(= ((as const (Array (_ BitVec 8) W)) x) ((as const (Array (_ BitVec 8) W)) x))"
        for width in (8, 16):
            declared = (f"(define-sort W () (_ BitVec {width}))", f"(declare-const x (_ BitVec {width}))")
            query = ask(text, declared=declared, logic="QF_ABV")
            assert f"(_ BitVec {width})))" in query.target

    def test_the_sort_of_a_name_is_in_the_key_of_its_level(self) -> None:
        narrow, wide = (ask("(= x x)", declared=(f"(declare-const x (_ BitVec {n}))",)) for n in (8, 16))
        assert narrow.levels[0].key != wide.levels[0].key
        assert narrow.form != wide.form
        assert (narrow, wide) == (as_script(narrow), as_script(wide))

    def test_a_definition_is_read_in_the_light_of_its_document(self) -> None:
        for value in ("#x00", "#x01"):
            declared = (BYTE, f"(define-fun c () (_ BitVec 8) {value})", "(define-fun f () Bool (= x c))")
            query = ask("f", declared=declared)
            assert query == as_script(query)

    def test_a_name_is_declared_once_each_time(self) -> None:
        ask("(= x x)")
        with pytest.raises(AdmissionError, match="twice"):
            ask("(= x x)", declared=(BYTE, BYTE))

    def test_each_logic_has_its_own_theory(self) -> None:
        declared = ("(declare-const select (_ BitVec 8))",)
        ask("(= select select)", declared=declared)
        with pytest.raises(AdmissionError):
            ask("(= select select)", declared=declared, logic="QF_ABV")

    def test_each_set_of_limits_holds(self) -> None:
        ask("(= (bvadd x x) x)")
        for limits in ({"depth": 1}, {"script": 16}, {"width": 7}, {"assertions": 0}, {"declarations": 0}):
            with pytest.raises(AdmissionError) as caught:
                ask("(= (bvadd x x) x)", **limits)
            assert caught.value.reason is Reason.TOO_LARGE

    @given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 3))
    def test_whatever_came_before(self, seeds: list[int], order: int) -> None:
        for seed in seeds[order:] + seeds[:order]:
            (query,) = parse_smt2(script_of(seed))
            assert ask(*query.prefix, query.target, declared=query.declarations) == query


class TestMemo:
    def test_it_keeps_what_was_put(self) -> None:
        memo = Memo[str, int]()
        memo.put("a", 1, 1)
        assert memo.get("a") == 1
        assert memo.get("b") is None

    def test_it_is_bounded_and_forgets_the_oldest(self) -> None:
        memo = Memo[int, str](characters=100)
        for number in range(1000):
            memo.put(number, "text", 10)
        held = [number for number in range(1000) if memo.get(number)]
        assert len(held) <= 20
        assert held[-1] == 999

    def test_what_is_too_long_is_not_kept(self) -> None:
        memo = Memo[str, int]()
        memo.put("huge", 1, 1 << 16)
        assert memo.get("huge") is None

    def test_threads_may_share_it(self) -> None:
        memory_of.cache_clear()
        envelopes = [envelope for _, envelope in campaign()][:120]
        expected = [parse_envelope(envelope) for envelope in envelopes]
        memory_of.cache_clear()
        together = Barrier(4)
        read: list[list[Query]] = []

        def reader(turn: int) -> None:
            together.wait(10)
            mine = envelopes[turn:] + envelopes[:turn]
            queries = [parse_envelope(envelope) for envelope in mine]
            read.append(queries[len(mine) - turn :] + queries[: len(mine) - turn])

        threads = [Thread(target=reader, args=(turn,)) for turn in (0, 30, 60, 90)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert read == [expected] * 4
