"""Scripts become queries; what a producer may not say is refused by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smtspool.errors import AdmissionError, Reason
from smtspool.query import Limits, Query, decode, encode, parse_smt2

BYTE = "(declare-const a (_ BitVec 8))"


def ask(body: str, logic: str = "QF_BV") -> Query:
    (query,) = parse_smt2(f"(set-logic {logic})\n{body}\n(check-sat)")
    return query


def refusal(text: str) -> AdmissionError:
    with pytest.raises(AdmissionError) as caught:
        parse_smt2(text)
    return caught.value


class TestOneQuestion:
    def test_the_last_assertion_is_the_target_and_the_others_the_prefix(self) -> None:
        query = ask("(declare-fun p () Bool)(assert p)(assert (not p))")
        assert query.prefix == ("p",)
        assert query.target == "(not p)"
        assert query.declarations == ("(declare-fun p () Bool)",)

    def test_declare_const_and_declare_fun_are_one_thing(self) -> None:
        assert ask("(declare-const p Bool)(assert p)") == ask("(declare-fun p ( ) Bool)(assert p)")

    def test_comments_and_white_space_do_not_count(self) -> None:
        loose = ask("; a\n(declare-fun\tp ( ) Bool ) ;(\r\n(assert(  and\n p;)\n  p ) )")
        assert loose == ask("(declare-fun p () Bool)(assert (and p p))")

    def test_nothing_asserted_asks_for_true(self) -> None:
        query = ask("")
        assert (query.prefix, query.target) == ((), "true")

    def test_a_script_that_asks_nothing_is_empty(self) -> None:
        assert refusal("(set-logic QF_BV)(declare-const p Bool)(assert p)").reason is Reason.EMPTY
        assert refusal("").reason is Reason.EMPTY
        assert refusal("; only a comment").reason is Reason.EMPTY

    def test_what_follows_exit_is_not_read(self) -> None:
        assert (
            ask("(assert true)").id == parse_smt2("(set-logic QF_BV)(assert true)(check-sat)(exit)(no)")[0].id
        )

    def test_settings_pass_through(self) -> None:
        (query,) = parse_smt2("(check-sat)", metadata={"site": 7}, timeout_ms=5, priority=2.5)
        assert (query.metadata, query.timeout_ms, query.priority) == ({"site": 7}, 5, 2.5)

    def test_size_counts_the_characters_of_the_text(self) -> None:
        query = ask("(declare-const p Bool)(assert p)")
        assert query.size == len("(declare-fun p () Bool)") + len("p")


class TestManyQuestions:
    SCRIPT = """
        (set-logic QF_BV) (declare-const p Bool) (assert p)
        (push 1) (declare-const q Bool) (assert q) (check-sat) (pop 1)
        (push) (declare-const q (_ BitVec 4)) (assert (= q #x1)) (check-sat) (pop)
        (check-sat)
    """

    def test_each_check_sat_is_a_query_over_the_active_stack(self) -> None:
        first, second, third = parse_smt2(self.SCRIPT)
        assert (first.prefix, first.target) == (("p",), "q")
        assert (second.prefix, second.target) == (("p",), "(= q #x1)")
        assert (third.prefix, third.target) == ((), "p")

    def test_declarations_end_with_their_scope(self) -> None:
        first, second, third = parse_smt2(self.SCRIPT)
        assert [s.sort for s in first.symbols] == ["Bool", "Bool"]
        assert [s.sort for s in second.symbols] == ["Bool", "(_ BitVec 4)"]
        assert [s.name for s in third.symbols] == ["p"]
        out_of_scope = "(push)(declare-const q Bool)(pop)(assert q)(check-sat)"
        assert refusal(out_of_scope).reason is Reason.SYMBOL

    def test_scopes_opened_at_once_close_one_by_one(self) -> None:
        declared = ["(declare-const p Bool)", "(declare-const q Bool)", "(declare-const r Bool)"]
        p, q, r = (f"{text}(assert {name})" for text, name in zip(declared, "pqr", strict=True))
        at_once = (
            f"{p}(push 3){q}(push 2){r}(pop)(check-sat)(pop 3)(push 0)(check-sat)(pop)(pop 0)(check-sat)"
        )
        alone = f"{p}(push)(push)(push){q}(check-sat)(pop)(pop)(check-sat)(pop)(check-sat)"
        assert parse_smt2(at_once) == parse_smt2(alone)
        assert [len(query.levels) for query in parse_smt2(at_once)] == [2, 1, 1]
        assert refusal(at_once + "(pop 1)(check-sat)").reason is Reason.SYNTAX

    def test_abbreviations_and_sorts_end_with_their_scope(self) -> None:
        gone = "(set-logic QF_UFBV)(push)(define-sort B () Bool)(declare-sort U 0)(pop)"
        assert refusal(gone + "(declare-const x B)(check-sat)").reason is Reason.SYMBOL
        assert refusal(gone + "(declare-const x U)(check-sat)").reason is Reason.SYMBOL
        parse_smt2(gone + "(declare-const U Bool)(declare-const B Bool)(assert (and U B))(check-sat)")

    def test_common_assertions_share_their_levels(self) -> None:
        first, second, third = parse_smt2(self.SCRIPT)
        assert first.levels[0] == second.levels[0] == third.levels[0]
        assert first.levels[1].key != second.levels[1].key

    def test_assumptions_count_for_one_question(self) -> None:
        with_it, without = parse_smt2(
            "(declare-const p Bool)(assert p)(check-sat-assuming (p (not p)))(check-sat)"
        )
        assert (with_it.prefix, with_it.target) == (("p", "p"), "(not p)")
        assert (without.prefix, without.target) == ((), "p")

    def test_one_bad_question_refuses_all(self) -> None:
        assert refusal("(assert true)(check-sat)(assert nowhere)(check-sat)").reason is Reason.SYMBOL

    @pytest.mark.parametrize(
        "text", ["(pop)", "(push)(pop 2)", "(push 1 1)", "(push -1)", "(push x)", "(pop 99999999999)"]
    )
    def test_stacks_do_not_underflow(self, text: str) -> None:
        assert refusal(text + "(check-sat)").reason is Reason.SYNTAX


class TestCommands:
    @pytest.mark.parametrize(
        "command",
        [
            '(include "/etc/passwd")',
            "(define-fun-rec f () Bool true)",
            "(define-funs-rec ((f () Bool)) (true))",
            "(declare-datatypes () ())",
            "(maximize x)",
            "(eval x)",
            "(simplify x)",
            "(shell)",
        ],
    )
    def test_others_are_refused_by_name(self, command: str) -> None:
        error = refusal(f"(set-logic QF_BV){command}(check-sat)")
        assert error.reason is Reason.COMMAND
        assert command[1:].split()[0].rstrip(")") in error.message

    @pytest.mark.parametrize(
        "option",
        [
            ":diagnostic-output-channel",
            ":regular-output-channel",
            ":dump-models",
            ":trace",
            ":global-declarations",
        ],
    )
    def test_options_that_act_are_refused_by_name(self, option: str) -> None:
        error = refusal(f'(set-option {option} "/tmp/x")(check-sat)')
        assert error.reason is Reason.COMMAND
        assert option in error.message

    @pytest.mark.parametrize(
        "option",
        [
            ":smt.dump_goal",
            ":smtlib2_log",
            ":solver.smtlib2-log",
            ":trace_file_name",
            ":sat.drat.file",
            ":out",
        ],
    )
    def test_options_of_solvers_that_write_are_refused(self, option: str) -> None:
        error = refusal(f"(set-option {option} x)(check-sat)")
        assert error.reason is Reason.COMMAND
        assert error.place is not None and error.place.column == 13

    @pytest.mark.parametrize("text", ["(set-option)", "(set-option a true)", "(set-option (:a true))"])
    def test_an_option_has_a_name(self, text: str) -> None:
        assert refusal(text + "(check-sat)").reason is Reason.SYNTAX

    @pytest.mark.parametrize(
        "option",
        [
            ":tactic.solve_eqs.context_solve false",
            ":opt.timeout 100",
            ":smt.random_seed 1",
            ":auto_config false",
            ":made-up",
        ],
    )
    def test_other_options_are_dropped_with_a_note(self, option: str) -> None:
        (query,) = parse_smt2(f"(set-logic QF_BV)(set-option {option})(assert true)(check-sat)")
        assert query == ask("(assert true)")
        assert query.notes == (f"the option {option.split()[0]} is unknown and dropped",)
        assert decode(encode(query)).notes == query.notes

    def test_notes_are_few_and_of_their_script(self) -> None:
        many = "".join(f"(set-option :o{number} 1)(set-option :o{number} 1)" for number in range(100))
        first, second, third = parse_smt2(f"(check-sat){many}(check-sat)(reset)(check-sat)")
        assert len(first.notes) == len(second.notes) < 20
        assert third.notes == ()

    @pytest.mark.parametrize("name", [":global-declarations", ":global-decls"])
    def test_declarations_survive_pop_where_the_script_says_so(self, name: str) -> None:
        body = (
            "(push)(declare-const p Bool)(define-sort B () Bool)(assert p)(pop)(declare-const q B)(assert p)"
        )
        more = "(check-sat)(reset-assertions)(assert q)(check-sat)"
        first, last = parse_smt2(f"(set-option {name} true)(set-logic QF_BV){body}{more}")
        assert (first.prefix, first.target) == ((), "p")
        assert first.declarations == last.declarations
        assert refusal(f"(set-option {name} false){body}(check-sat)").reason is Reason.SYMBOL
        assert refusal(f"(set-option {name} 1){body}(check-sat)").reason is Reason.COMMAND

    @pytest.mark.parametrize(
        "command",
        [
            '(echo "(exit)")',
            "(get-info :name)",
            "(get-option :random-seed)",
            "(get-unsat-core)",
            "(get-assertions)",
            "(get-assignment)",
            "(get-proof)",
            "(get-unsat-assumptions)",
        ],
    )
    def test_what_only_prints_is_dropped(self, command: str) -> None:
        asked = parse_smt2(f"{command}(set-logic QF_BV){command}(assert true)(check-sat){command}")
        assert asked == (ask("(assert true)"),)
        assert asked[0].notes == ()

    def test_assertions_and_declarations_are_gone_after_reset_assertions(self) -> None:
        first, second = parse_smt2(
            "(set-logic QF_BV)(declare-const p Bool)(push 2)(assert p)(check-sat)"
            "(reset-assertions)(declare-const p (_ BitVec 4))(assert (= p #x1))(check-sat)"
        )
        assert first == ask("(declare-const p Bool)(assert p)")
        assert second == ask("(declare-const p (_ BitVec 4))(assert (= p #x1))")
        assert refusal("(push)(reset-assertions)(pop)(check-sat)").reason is Reason.SYNTAX

    def test_reset_begins_anew_with_another_logic(self) -> None:
        first, second = parse_smt2(
            "(reset)(set-logic QF_BV)(declare-const p Bool)(assert p)(check-sat)(reset)"
            "(set-logic QF_ABV)(declare-const p Bool)(assert p)(check-sat)(reset)"
        )
        assert (first, second) == (
            ask("(declare-const p Bool)(assert p)"),
            ask("(declare-const p Bool)(assert p)", "QF_ABV"),
        )

    def test_a_tactic_is_dropped_with_a_note(self) -> None:
        (query,) = parse_smt2("(declare-const p Bool)(assert p)(check-sat-using (then simplify smt))")
        assert query == ask("(declare-const p Bool)(assert p)")
        assert "tactic" in query.notes[0]

    def test_harmless_commands_and_options_leave_no_trace(self) -> None:
        noise = '(set-option :produce-models true)(set-info :source |a (b" é|)(set-info :c "i said ""no"" (")'
        asked = parse_smt2(noise + "(set-logic QF_BV)(assert true)(check-sat)(get-model)(get-value (true))")
        assert asked == (ask("(assert true)"),)

    @pytest.mark.parametrize(
        "logic", ["ALL_OF_IT", "QF_LIA", "BV", "QF_ABVFP", "qf_bv", "QF_BV|", "x" * 10_000]
    )
    def test_other_logics_are_refused_by_name(self, logic: str) -> None:
        error = refusal(f"(set-logic {logic.strip('|')})(check-sat)") if "|" not in logic else None
        if error is not None:
            assert error.reason is Reason.LOGIC
            assert logic[:64] in error.message

    @pytest.mark.parametrize("logic", ["ALL", "ALL_SUPPORTED"])
    @pytest.mark.parametrize(
        ("body", "smallest"),
        [
            (f"{BYTE}(assert (= a a))", "QF_BV"),
            ("(declare-const m (Array Bool Bool))(assert (select m true))", "QF_ABV"),
            ("(declare-fun f (Bool) Bool)(assert (f true))", "QF_UFBV"),
        ],
    )
    def test_of_all_logics_the_smallest_is_taken(self, body: str, smallest: str, logic: str) -> None:
        assert ask(body, logic) == ask(body, smallest) == parse_smt2(body + "(check-sat)")[0]

    @pytest.mark.parametrize(
        "sort", ["Int", "Real", "String", "RoundingMode", "Float32", "(_ FloatingPoint 8 24)"]
    )
    @pytest.mark.parametrize("logic", ["", "(set-logic ALL)", "(set-logic QF_AUFBV)"])
    def test_sorts_of_other_theories_are_refused_as_such(self, logic: str, sort: str) -> None:
        error = refusal(f"{logic}(declare-const x {sort})(check-sat)")
        assert error.reason is Reason.LOGIC
        assert refusal(f"{logic}(declare-const x (Array {sort} Bool))(check-sat)").reason is Reason.LOGIC

    @pytest.mark.parametrize("logic", ["QF_BV", "QF_ABV", "QF_UFBV", "QF_AUFBV"])
    def test_four_logics_are_read(self, logic: str) -> None:
        assert ask("(assert true)", logic).logic == logic

    @pytest.mark.parametrize(
        ("declaration", "logic"),
        [
            (BYTE, "QF_BV"),
            ("(declare-const m (Array (_ BitVec 8) Bool))", "QF_ABV"),
            ("(declare-fun f (Bool) Bool)", "QF_UFBV"),
            ("(declare-fun f (Bool) (Array Bool Bool))", "QF_AUFBV"),
            ("(declare-sort U 0)", "QF_UFBV"),
        ],
    )
    def test_without_set_logic_the_smallest_that_fits_is_taken(self, declaration: str, logic: str) -> None:
        assert parse_smt2(declaration + "(check-sat)")[0].logic == logic

    def test_functions_need_a_logic_that_has_them(self) -> None:
        for declaration in ("(declare-fun f (Bool) Bool)", "(declare-sort U 0)"):
            assert refusal(f"(set-logic QF_BV){declaration}(check-sat)").reason is Reason.LOGIC

    @pytest.mark.parametrize(
        "text",
        [
            "(set-logic QF_BV)(set-logic QF_BV)",
            "(declare-const p Bool)(set-logic QF_BV)",
            "(set-logic)",
            "(set-logic QF_BV QF_BV)",
            "(check-sat true)",
            "(check-sat-assuming)",
            "(check-sat-assuming true)",
            "(check-sat-assuming (true) (true))",
            "(assert)",
            "(assert true true)",
            "(assert true",
            "(assert true))",
            ")(",
            "assert",
            "()",
            "(())",
            "(assert ())",
            "(_ bv1 8)",
        ],
    )
    def test_malformed_commands_are_refused(self, text: str) -> None:
        assert refusal(f"{text}(check-sat)").reason in (Reason.SYNTAX, Reason.COMMAND, Reason.SYMBOL)


class TestScriptsInOneText:
    FIRST = "(set-logic QF_BV)(declare-const p Bool)(assert p)(check-sat)"
    SECOND = "(set-logic QF_ABV)(declare-const p (_ BitVec 2))(assert (= p #b01))(check-sat)(get-value (p))"

    def alone(self) -> tuple[Query, ...]:
        return (*parse_smt2(self.FIRST), *parse_smt2(self.SECOND))

    @pytest.mark.parametrize(
        "between",
        ["", "; OK -- Elapsed: 5.1e-02s\n", "Elapsed: 5.1 :-( _ |x| '\n", "(exit)", "))", "(exit)(exit)x"],
    )
    @pytest.mark.parametrize(
        "after", ["(exit)", "(exit) sat :-) _ ( ( |", "(exit)\n(assert", "(exit)(pop 7)"]
    )
    def test_each_ends_with_its_exit(self, between: str, after: str) -> None:
        queries = parse_smt2(f"{self.FIRST}(exit){between}{self.SECOND}{after}")
        assert queries == self.alone()
        assert queries[1].values == ("p",)

    def test_a_question_that_is_ignored_is_noted(self) -> None:
        (query,) = parse_smt2(f"{self.FIRST}(exit){self.SECOND}")
        assert query.notes == ("a check-sat after the last exit is ignored",)
        assert parse_smt2(f"{self.FIRST}(exit) OK")[0].notes == ()

    def test_names_that_clash_may_stand_in_two(self) -> None:
        marked = "(declare-const @p Bool)(check-sat)(exit)", "(declare-const !@p Bool)(check-sat)(exit)"
        assert parse_smt2("".join(marked)) == (*parse_smt2(marked[0]), *parse_smt2(marked[1]))

    def test_a_refusal_has_its_place_in_the_whole_text(self) -> None:
        error = refusal(f"{self.FIRST}\n(exit) so (long\n (push) (assert p)(check-sat)(exit)")
        assert error.place is not None
        assert error.place[:2] == (3, 17)

    def test_all_are_held_to_the_limits_of_one(self) -> None:
        script = "(declare-const p Bool)(assert p)(check-sat)(exit)"
        limits = Limits(queries=3, written=3 * len("(declare-fun p () Bool)p"))
        assert len(parse_smt2(script * 3, limits)) == 3
        for limit in (
            {"queries": 2},
            {"written": limits.written - 1},
            {"replicated": 5},
            {"replicated_text": 70},
        ):
            with pytest.raises(AdmissionError) as caught:
                parse_smt2(script * 3, replace(limits, **limit))  # type: ignore[arg-type]
            assert caught.value.reason is Reason.TOO_LARGE

    def test_abbreviations_too(self) -> None:
        script = "(define-sort B () (_ BitVec 8))(declare-const p B)(assert (= p p))(check-sat)(reset)"
        limits = Limits(expansion=3 * len("(_ BitVec 8)"))
        assert len(parse_smt2(script * 3, limits)) == 3
        with pytest.raises(AdmissionError):
            parse_smt2(script * 4, limits)


class TestValues:
    def test_terms_of_get_value_belong_to_the_question_before(self) -> None:
        first, second = parse_smt2(
            f"{BYTE}(assert (= a a))(check-sat)(get-value (a (bvnot  a)))(get-model)(get-value (#xAB))"
            "(push)(declare-const p Bool)(assert p)(check-sat)(get-value (p))(pop)"
        )
        assert first.values == ("a", "(bvnot a)", "#xab")
        assert second.values == ("p",)
        assert first.id == ask(f"{BYTE}(assert (= a a))").id
        assert decode(encode(second)).values == ("p",)

    @pytest.mark.parametrize("term", ["q", "(+ 1 2)", "1", "(f p)"])
    def test_terms_that_have_no_value_are_left_out_with_a_note(self, term: str) -> None:
        (query,) = parse_smt2(f"(declare-const p Bool)(assert p)(check-sat)(get-value (p {term}))")
        assert query.values == ("p",)
        assert query.notes[0].startswith("get-value: ")

    def test_without_an_answer_there_are_no_values(self) -> None:
        (query,) = parse_smt2("(declare-const p Bool)(get-value (p))(check-sat)(assert p)(get-value (p))")
        assert query.values == ()
        assert query.notes == ("a get-value that follows no check-sat is dropped",)

    @pytest.mark.parametrize("command", ["(get-value)", "(get-value p)", "(get-value (p) (p))"])
    def test_it_takes_one_list(self, command: str) -> None:
        assert refusal(f"(declare-const p Bool)(check-sat){command}").reason is Reason.SYNTAX


class TestDeclarations:
    @pytest.mark.parametrize(
        "text",
        [
            "(declare-const p Bool)(declare-const p Bool)",
            "(declare-const p Bool)(define-fun p () Bool true)",
            "(declare-const |p| Bool)(declare-const p Bool)",
            "(define-sort p () Bool)(declare-const p Bool)",
            "(define-fun f ((x Bool) (x Bool)) Bool x)",
            "(declare-const bvadd Bool)",
            "(declare-const |true| Bool)",
            "(define-fun f ((and Bool)) Bool and)",
            "(declare-const assert Bool)",
            "(declare-const p Bit)",
            "(declare-const p (Array Bool Bool))",
            "(define-fun f () Bool (f))",
        ],
    )
    def test_names_are_declared_once_and_never_reserved(self, text: str) -> None:
        assert refusal(f"(set-logic QF_BV){text}(check-sat)").reason is Reason.SYMBOL

    @pytest.mark.parametrize(
        "text",
        [
            "(declare-fun p Bool)",
            "(declare-fun p () Bool Bool)",
            "(declare-fun p ())",
            "(declare-fun)",
            "(declare-const p)",
            "(declare-const (p) Bool)",
            "(declare-const #x1 Bool)",
            "(declare-const (_ bv1 8) Bool)",
            "(declare-const p (_ BitVec 0))",
            "(declare-const p (Array Bool))",
            "(declare-const p (Array Bool Bool Bool))",
            "(declare-const p ())",
            "(declare-const p (Bool))",
            "(declare-sort U)",
            "(declare-sort U x)",
            "(define-sort P (X) X)",
            "(define-sort P Bool)",
            "(define-fun f (x) Bool true)",
            "(define-fun f ((x)) Bool true)",
            "(define-fun f ((x Bool y)) Bool true)",
            "(define-fun f () Bool)",
            "(define-fun f () Bool true true)",
            '(declare-const "p" Bool)',
            "(declare-const :p Bool)",
            "(declare-const 1p Bool)",
            "(declare-const p| Bool)",
            "(declare-const |a\\b| Bool)",
            "(declare-const |a\x00b| Bool)",
            "(declare-const |a\x7fb| Bool)",
            "(declare-const a\x0bb Bool)",
            "(declare-const é Bool)",
        ],
    )
    def test_malformed_declarations_are_refused(self, text: str) -> None:
        error = refusal(f"(set-logic QF_AUFBV){text}(check-sat)")
        assert error.reason in (Reason.SYNTAX, Reason.SYMBOL)

    def test_abbreviations_are_written_out(self) -> None:
        body = "(define-sort B () (_ BitVec 8))(define-sort M () (Array B B))(declare-const m M)"
        query = ask(body + "(assert (= m ((as const M) #x00)))", "QF_ABV")
        array = "(Array (_ BitVec 8) (_ BitVec 8))"
        assert query.symbols[0].sort == array
        assert query.target == f"(= m ((as const {array}) #x00))"

    def test_functions_keep_their_signature(self) -> None:
        query = ask("(declare-fun f (Bool (_ BitVec 8)) Bool)(assert (f true #x00))", "QF_UFBV")
        assert query.symbols[0].params == ("Bool", "(_ BitVec 8)")
        assert query.symbols[0].declaration == query.declarations[0]

    def test_definitions_are_not_symbols(self) -> None:
        query = ask("(define-fun f ((x Bool)) Bool (not x))(define-const c Bool (f true))(assert c)")
        assert query.symbols == ()
        assert query.declarations[1] == "(define-fun c () Bool (f true))"

    def test_a_parameter_may_shadow_a_constant(self) -> None:
        ask(
            "(declare-const x Bool)(define-fun f ((x (_ BitVec 2))) Bool (= x #b01))(assert (and x (f #b01)))"
        )


class TestTerms:
    @pytest.mark.parametrize(
        "term",
        [
            "nowhere",
            "(nowhere #x00)",
            "(let ((x a)) (let ((y x)) (= z y)))",
            "(let ((x x)) true)",
            "(let ((x a) (y x)) true)",
            "(and (let ((x a)) true) (= x a))",
            "(let ((x a) (x a)) true)",
            "(let ((bvadd a)) true)",
            "(forall ((x Bool)) x)",
            "(exists ((x Bool)) x)",
            "((_ made_up 3) a)",
            "(_ char 3)",
            "(select a a)",
        ],
    )
    def test_every_name_must_be_declared_or_bound(self, term: str) -> None:
        assert refusal(f"(set-logic QF_BV){BYTE}(assert {term})(check-sat)").reason is Reason.SYMBOL

    @pytest.mark.parametrize(
        "term",
        [
            "(let)",
            "(let () true)",
            "(let a)",
            "(let a a)",
            "(and let a)",
            "let",
            "(let (()) a)",
            "(let (a (x a)) (= x a))",
            "(let (let ((x a)) x) a)",
            "(let ((#x00 a)) a)",
            "(let (((_ bv1 1) a)) a)",
            "(_)",
            "(and _ a)",
            "(= a (_ bv1))",
            "(= a (_ bv256 8))",
            "(= a (_ bv1 08))",
            "(= a (_ bv1 x))",
            "(= a #xg)",
            "(= a #b2)",
            "(= a #x)",
            "(= a 5)",
            "(= a 5.0)",
            "(= a :key)",
            '(= a "text")',
            "((_ extract 3 4) a)",
            "((_ extract 3) a)",
            "((_ repeat 0) a)",
            "((_ zero_extend 1 1) a)",
            "((_ |extract| 3 0) a)",
            "(! a)",
            "(!)",
        ],
    )
    def test_malformed_terms_are_refused(self, term: str) -> None:
        error = refusal(f"(set-logic QF_BV){BYTE}(assert {term})(check-sat)")
        assert error.reason in (Reason.SYNTAX, Reason.SYMBOL)

    def test_let_binds_in_its_body_only_and_may_shadow(self) -> None:
        ask(f"{BYTE}(assert (let ((a (bvnot a))) (let ((a (bvadd a a)) (b a)) (= a b))))")
        ask(f"{BYTE}(assert (= (let ((x a)) (let ((x (bvnot x))) x)) (let ((x a)) x)))")
        ask(f"{BYTE}(assert (let ((x (let ((y a)) y)) (z (let ((y a)) y))) (= x z)))")

    def test_indexed_identifiers_may_be_spaced_and_commented(self) -> None:
        spaced = ask(f"{BYTE}(assert (= ( _\n bv1 ;)\n 8 ) (( _ rotate_left  1) a)))")
        assert spaced.target == "(= (_ bv1 8) ((_ rotate_left 1) a))"

    def test_a_name_like_a_literal_is_not_one(self) -> None:
        query = ask("(declare-const bv1 (_ BitVec 8))(assert (= bv1 (_ bv1 8)))")
        assert query.form.order == ("bv1",)

    def test_arrays_belong_to_their_logics(self) -> None:
        ask("(declare-const select Bool)(assert select)", "QF_BV")
        ask("(declare-const m (Array Bool Bool))(assert (select (store m true false) true))", "QF_ABV")

    def test_synonyms_and_capital_digits_become_one(self) -> None:
        query = ask(f"{BYTE}(assert (= (ext_rotate_left a #xAB) a))")
        assert query == ask(f"{BYTE}(assert (= (bvrol a #xab) a))")
        assert "#xab" in query.target


class TestAnnotations:
    def test_unused_names_and_notes_are_dropped(self) -> None:
        query = ask("(declare-const p Bool)(assert (! (and (! p :named in) p) :note (a (b)) :named out))")
        assert query.target == "(and p p)"
        assert query.declarations == ("(declare-fun p () Bool)",)

    def test_an_attribute_may_do_without_a_value(self) -> None:
        assert ask("(assert (! (! true :note) :note :other 5 :named n :last))").target == "true"

    @pytest.mark.parametrize(
        "term",
        [
            "(and (! true false :named n) true)",
            "(and (! true (not false) :note) true)",
            "(and (! (! true :note) false :note) true)",
            "(and (! true (! false :note) :note) true)",
            "(and (! true :named n false) true)",
            "(or true (! :named n))",
            "(or true (! (! :note) :note))",
            "(! true :named)",
            "(! true :named :n)",
            "(! true :named 5)",
            "(! true :named #b1)",
            "(! true :named (n))",
            '(! true :named "n")',
        ],
    )
    def test_an_annotation_is_of_one_term_and_a_name_is_a_symbol(self, term: str) -> None:
        assert refusal(f"(declare-const p Bool)(assert {term})(check-sat)").reason is Reason.SYNTAX

    def test_a_name_is_no_reserved_word(self) -> None:
        assert refusal("(assert (! true :named let))(check-sat)").reason is Reason.SYMBOL

    def test_the_name_of_an_assertion_can_be_used(self) -> None:
        query = ask("(declare-const p Bool)(assert (! (not p) :named n))(assert (or n p))")
        assert query.declarations[1] == "(define-fun n () Bool (not p))"
        assert (query.prefix, query.target) == (("n",), "(or n p)")

    def test_quoting_does_not_hide_a_use(self) -> None:
        assert ask("(assert (! true :named |n|))(assert n)").prefix == ("n",)

    def test_the_used_name_of_an_inner_term_is_refused(self) -> None:
        error = refusal("(declare-const p Bool)(assert (not (! p :named n)))(assert n)(check-sat)")
        assert error.reason is Reason.SYMBOL
        assert "'n'" in error.message


class TestSpelling:
    def test_needless_quotes_go(self) -> None:
        assert ask("(declare-const |p| Bool)(assert p)").symbols[0].name == "p"
        assert ask("(declare-const |p q| Bool)(assert |p q|)").symbols[0].name == "|p q|"

    def test_spaces_inside_quotes_stay(self) -> None:
        assert ask("(declare-const |( p )| Bool)(assert (not |( p )|))").target == "(not |( p )|)"

    @pytest.mark.parametrize(
        ("name", "canonical"), [("@d", "!@d"), (".d", "!.d"), ("|let|", "!let"), ("|_|", "!_")]
    )
    def test_names_some_engine_refuses_get_a_mark(self, name: str, canonical: str) -> None:
        query = ask(f"(declare-const {name} Bool)(assert {name})")
        assert query.symbols[0].name == query.target == canonical

    def test_a_mark_never_makes_two_names_one(self) -> None:
        for other in ("!@d", "|!@d|"):
            error = refusal(f"(declare-const @d Bool)(declare-const {other} Bool)(check-sat)")
            assert error.reason is Reason.SYMBOL
