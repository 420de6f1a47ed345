"""Id, prefix chain and form: what changes them, and what does not."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smtspool.query import Query, parse_smt2, script
from tests.query.generate import NAMES, scripts


def one(text: str) -> Query:
    (query,) = parse_smt2(text)
    return query


ABC = "(declare-const a (_ BitVec 8))(declare-const b (_ BitVec 8))(declare-const c (_ BitVec 8))"


class TestId:
    def test_the_digests_are_those_of_every_earlier_store(self) -> None:
        query = one("(set-logic QF_BV)(declare-const p Bool)(assert p)(assert (not p))(check-sat)")
        assert query.id == "4067bafec565f48abda98e816cb26bcd1b1d63acf292bf1c4139b4c237c0db93"
        assert query.levels[1].key == "e81460ac6e3c110e073cc6f2f0462bdd773b45a7cad51434bc1cab1f18dbccb6"
        assert query.form.digest == "ccf8455b3dd7b01ed361bc2f968cd34a1bea7c8c4a3c937a3db1b11b25216c39"

    def test_settings_are_outside_it(self) -> None:
        plain, other = (
            one("(check-sat)"),
            parse_smt2("(check-sat)", metadata={"a": 1}, timeout_ms=1, priority=9)[0],
        )
        assert plain.id == other.id
        assert plain != other
        assert hash(plain) == hash(other)

    @pytest.mark.parametrize(
        "other",
        [
            "(set-logic QF_ABV)(declare-const p Bool)(assert p)(assert p)(check-sat)",
            "(set-logic QF_BV)(declare-const p Bool)(declare-const q Bool)(assert p)(assert p)(check-sat)",
            "(set-logic QF_BV)(declare-const p Bool)(assert p)(check-sat)",
            "(set-logic QF_BV)(declare-const p Bool)(assert p)(assert p)(assert p)(check-sat)",
            "(set-logic QF_BV)(declare-const q Bool)(assert q)(assert q)(check-sat)",
            "(set-logic QF_BV)(declare-const p Bool)(assert (and p p))(check-sat)",
        ],
    )
    def test_everything_asked_is_inside_it(self, other: str) -> None:
        base = one("(set-logic QF_BV)(declare-const p Bool)(assert p)(assert p)(check-sat)")
        assert one(other).id != base.id

    def test_the_order_of_the_prefix_counts(self) -> None:
        there, back = (
            "(declare-const p Bool)(declare-const q Bool)" + body
            for body in (
                "(assert p)(assert q)(assert true)(check-sat)",
                "(assert q)(assert p)(assert true)(check-sat)",
            )
        )
        assert one(there).id != one(back).id

    @given(scripts())
    def test_re_reading_the_script_gives_the_same_query(self, text: str) -> None:
        query = one(text)
        again = one(script(query))
        assert again == query


class TestLevels:
    def test_there_is_one_per_assertion_and_the_last_is_the_target(self) -> None:
        query = one(ABC + "(assert (= a b))(assert (= b c))(check-sat)")
        assert [level.assertion for level in query.levels] == [*query.prefix, query.target]

    def test_declarations_come_where_they_are_first_needed(self) -> None:
        query = one(ABC + "(define-fun f () Bool (= b c))(assert (= a b))(assert f)(check-sat)")
        assert query.levels[0].declarations == query.declarations[:2]
        assert query.levels[1].declarations == query.declarations[2:]

    def test_what_a_definition_refers_to_comes_before_it(self) -> None:
        query = one(
            "(declare-const p Bool)(declare-const unused Bool)(define-fun f () Bool p)"
            "(define-fun g ((x Bool)) Bool (and x f))(assert (g true))(check-sat)"
        )
        names = [text.split()[1] for text in query.levels[0].declarations]
        assert names == ["p", "f", "g"]

    def test_sorts_come_with_their_symbols(self) -> None:
        query = one("(set-logic QF_UFBV)(declare-sort U 0)(declare-const u U)(assert (= u u))(check-sat)")
        assert query.levels[0].declarations == query.declarations

    def test_a_longer_path_shares_the_keys_of_the_shorter(self) -> None:
        short = one(ABC + "(assert (= a b))(assert (= b a))(check-sat)")
        longer = one("(declare-const z Bool)" + ABC + "(assert (= a b))(assert (= b a))(assert z)(check-sat)")
        assert [level.key for level in longer.levels[:2]] == [level.key for level in short.levels]

    def test_a_key_stands_for_all_that_is_below_it(self) -> None:
        narrow = one("(declare-const a (_ BitVec 4))(assert (= a a))(assert true)(check-sat)")
        wide = one("(declare-const a (_ BitVec 8))(assert (= a a))(assert true)(check-sat)")
        assert narrow.levels[1].assertion == wide.levels[1].assertion
        assert narrow.levels[1].key != wide.levels[1].key

    def test_logics_do_not_share_keys(self) -> None:
        keys = {one(f"(set-logic {logic})(check-sat)").levels[0].key for logic in ("QF_BV", "QF_ABV")}
        assert len(keys) == 2


class TestForm:
    def renamed(self, text: str, seed: int) -> str:
        """``text`` with its names permuted; quoted ones are replaced before plain ones can match inside."""
        mapping = dict(zip(NAMES, random.Random(seed).sample(NAMES, len(NAMES)), strict=True))
        pattern = re.compile(r"\|[^|]*\||[^\s()|]+")
        return pattern.sub(lambda match: mapping.get(match[0], match[0]), text)

    @given(scripts(), st.integers(0, 1000))
    def test_renaming_keeps_it(self, text: str, seed: int) -> None:
        query, other = one(text), one(self.renamed(text, seed))
        assert query.form.digest == other.form.digest
        assert len(query.form.order) == len(other.form.order)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("bvult", "bvule"),
            ("#x07", "#x09"),
            ("BitVec 8", "BitVec 16"),
            ("(= x y)", "(= y x)"),
            ("QF_BV", "QF_ABV"),
        ],
    )
    def test_every_other_change_changes_it(self, old: str, new: str) -> None:
        text = (
            "(set-logic QF_BV)(declare-const x (_ BitVec 8))(declare-const y (_ BitVec 8))"
            "(assert (bvult x (bvnot y)))(assert (= x y))(assert (= #x07 #x08))(check-sat)"
        )
        assert one(text).form.digest != one(text.replace(old, new)).form.digest

    @given(scripts(), st.randoms(use_true_random=False))
    def test_another_operator_changes_it(self, text: str, rnd: random.Random) -> None:
        operators = re.compile(r"(?<=[( ])(bvadd|bvmul|bvult|bvsle|=|#x7f)(?=[ )])")
        places = [match.span() for match in operators.finditer(text, text.index("(assert"))]
        if places:
            start, end = rnd.choice(places)
            swap = {
                "bvadd": "bvsub",
                "bvmul": "bvor",
                "bvult": "bvugt",
                "bvsle": "bvsge",
                "=": "bvuge",
                "#x7f": "#x80",
            }
            changed = text[:start] + swap[text[start:end]] + text[end:]
            assert one(changed).form.digest != one(text).form.digest

    def test_constants_are_not_names(self) -> None:
        texts = [
            f"(declare-const bv{n} (_ BitVec 8))(assert (= bv{n} (_ bv{n} 8)))(check-sat)" for n in (5, 6)
        ]
        assert one(texts[0]).form.digest != one(texts[1]).form.digest

    def test_two_names_are_not_one(self) -> None:
        apart, together = (ABC + f"(assert (= a {x}))(check-sat)" for x in "ba")
        assert one(apart).form.digest != one(together).form.digest

    def test_unused_declarations_and_their_order_are_outside_it(self) -> None:
        text = "(declare-const {} Bool)" * 3 + "(assert (and p (not q)))(check-sat)"
        forms = [one(text.format(*names)).form for names in ("pqr", "rqp", "qpz")]
        assert forms[0] == forms[1] == forms[2]
        assert forms[0].order == ("p", "q")

    def test_a_bound_name_that_is_also_declared_hides_no_sort(self) -> None:
        text = "(assert (and (= a a) (let ((b a)) true) (= c c) (let ((d a)) true)))(check-sat)"
        sorts = ({"a": 4, "b": 4, "c": 8}, {"a": 4, "c": 4, "d": 8})
        forms = [
            one("".join(f"(declare-const {x} (_ BitVec {n}))" for x, n in choice.items()) + text).form.digest
            for choice in sorts
        ]
        assert forms[0] != forms[1]

    def test_definitions_are_inside_it(self) -> None:
        text = "(declare-const p Bool)(define-fun f ((x Bool)) Bool {})(assert (f p))(check-sat)"
        forms = {one(text.format(body)).form.digest for body in ("x", "(not x)", "p", "(and p x)")}
        assert len(forms) == 4
        assert one(text.format("(let ((y x)) y)")).form.order == ("p",)

    def test_declared_sorts_are_inside_it(self) -> None:
        text = (
            "(set-logic QF_UFBV)(declare-sort U 0)(declare-sort V 0)(declare-const a {})(declare-const b {})"
        )
        text += "(declare-fun f ({}) Bool)(declare-fun g ({}) Bool)(assert (and (f a) (g b)))(check-sat)"
        same = one(text.format("U", "U", "U", "U")).form.digest
        assert same == one(text.format("V", "V", "V", "V")).form.digest
        assert same != one(text.format("U", "V", "U", "V")).form.digest

    def test_the_prefix_is_not_the_target(self) -> None:
        one_by_one = one("(declare-const p Bool)(assert p)(assert p)(check-sat)")
        at_once = one("(declare-const p Bool)(assert (and p p))(check-sat)")
        assert one_by_one.form.digest != at_once.form.digest
