"""The input that a model stands for, as the names of its symbols say it; or why they do not."""

from __future__ import annotations

import pytest

from smtspool.query import ImpliedInput, Query, implied_input, parse_smt2
from smtspool.query.inputs import LONGEST_INPUT

SORT = "(Array (_ BitVec 32) (_ BitVec 8))"
ZEROS = f"((as const {SORT}) #x00)"


def asked(declarations: dict[str, str], *assertions: str) -> Query:
    """A query about symbols of these sorts."""
    declared = "".join(f"(declare-const {name} {sort})" for name, sort in declarations.items())
    (query,) = parse_smt2(f"{declared}{''.join(f'(assert {one})' for one in assertions)}(check-sat)")
    return query


def bytes_named(*names: str) -> Query:
    return asked(dict.fromkeys(names, "(_ BitVec 8)"))


def why(implied: ImpliedInput) -> str:
    assert implied.data is None and implied.naming is None and implied.why is not None
    return implied.why


@pytest.mark.parametrize(
    ("name", "naming"),
    [
        *(("k!{}", "k!N"), ("stdin{}", "stdinN"), ("stdin_{}", "stdin_N"), ("SymVar_{}", "SymVar_N")),
        *(("in_{}", "in_N"), ("input_{}", "input_N"), ("byte!{}", "byte!N")),
    ],
)
def test_a_constant_for_each_byte_is_numbered_by_its_offset(name: str, naming: str) -> None:
    first, third = name.format(0), name.format(2)
    model = {first: "#x41", third: "#b01000011", "other": "#x00000001"}
    query = asked({third: "(_ BitVec 8)", first: "(_ BitVec 8)", "other": "(_ BitVec 32)"})
    assert implied_input(query, model) == ImpliedInput(b"A\x00C", naming)
    assert implied_input(query, model, b"wxyz").data == b"AxCz"


@pytest.mark.parametrize("name", ["x", "k!", "stdin_01", "in_", "in_x", "in_-1", "xin_0", "in_0x", "my_k!0"])
def test_other_names_say_nothing(name: str) -> None:
    assert "no symbol has a name" in why(implied_input(bytes_named(name), {name: "#x00"}))


def test_two_namings_are_two_readings() -> None:
    model = {"k!0": "#x00", "stdin_0": "#x01"}
    assert why(implied_input(bytes_named("k!0", "stdin_0"), model)) == "two readings, k!N and stdin_N"


def test_numbers_of_something_else_are_no_bytes() -> None:
    query = asked({"SymVar_0": "(_ BitVec 64)", "SymVar_1": "(_ BitVec 8)"})
    model = {"SymVar_0": "#x0000000000000000", "SymVar_1": "#x01"}
    assert why(implied_input(query, model)) == "SymVar_N: not all of them are bytes"


@pytest.mark.parametrize(
    ("offset", "taken"), [(LONGEST_INPUT - 1, True), (LONGEST_INPUT, False), (10**30, False)]
)
def test_an_offset_makes_no_file_of_any_size(offset: int, taken: bool) -> None:
    name = f"k!{offset}"
    implied = implied_input(bytes_named(name), {name: "#x41"})
    assert (implied.data is not None and len(implied.data) == LONGEST_INPUT) == taken
    assert taken or "beyond" in why(implied)


@pytest.mark.parametrize("name", ["file_0_stdin_0_3_24", "packet_0_stdin_27_24"])
def test_the_whole_of_stdin_has_its_first_byte_in_front(name: str) -> None:
    query = asked({name: "(_ BitVec 24)"})
    assert implied_input(query, {name: "#x414243"}) == ImpliedInput(b"ABC", name)
    assert "whole number of bytes" in why(
        implied_input(asked({name: "(_ BitVec 25)"}), {name: "#b" + "0" * 25})
    )


def test_of_two_packets_none_is_the_input() -> None:
    names = ("packet_0_stdin_1_16", "packet_1_stdin_2_16")
    query = asked(dict.fromkeys(names, "(_ BitVec 16)"))
    assert "two readings" in why(implied_input(query, dict.fromkeys(names, "#x0000")))


def test_a_wide_constant_that_a_user_named_may_begin_at_either_end() -> None:
    query = asked({"input": "(_ BitVec 16)"})
    assert "no symbol has a name" in why(implied_input(query, {"input": "#x4142"}))


class TestArray:
    def test_what_is_read_and_what_is_stored_is_the_input(self) -> None:
        query = asked(
            {"input": SORT},
            "(= (select input (_ bv1 32)) #x42)",
            "(bvult (select input #x00000004) #x50)",
        )
        value = f"(store (store {ZEROS} #x00000001 #x41) #x00000001 #x42)"
        assert implied_input(query, {"input": value}) == ImpliedInput(b"\0B\0\0\0", "the array input")
        assert implied_input(query, {"input": value}, b"wxyz").data == b"wByz\0"

    def test_a_byte_that_is_only_in_the_default_is_read_there(self) -> None:
        query = asked({"input": SORT}, "(= (select input #x00000002) #x42)")
        assert implied_input(query, {"input": f"((as const {SORT}) #x42)"}).data == b"\0\0B"

    def test_where_it_is_read_may_depend_on_the_input(self) -> None:
        query = asked({"input": SORT}, "(= (select input (concat #x000000 (select input #x00000000))) #x42)")
        assert implied_input(query, {"input": f"(store {ZEROS} #x00000003 #x42)"}).data == b"\0\0\0B"
        implied = implied_input(query, {"input": f"(store ((as const {SORT}) #x42) #x00000003 #x41)"})
        assert "the length of the input is unknown" in why(implied)

    def test_a_definition_may_read_it(self) -> None:
        (query,) = parse_smt2(
            f"(declare-const input {SORT})(define-fun b () (_ BitVec 8) (select input #x00000001))"
            "(assert (= b #x41))(check-sat)"
        )
        assert implied_input(query, {"input": f"((as const {SORT}) #x41)"}).data == b"\0A"

    def test_two_arrays_are_two_readings_but_for_those_that_are_no_input(self) -> None:
        query = asked({"a": SORT, "b": SORT})
        assert why(implied_input(query, {"a": ZEROS, "b": ZEROS})).startswith("two readings, the array a and")
        query = asked({"stdin": SORT, "const_arr1": SORT, "stdin_stat": SORT, "model_version": SORT})
        names = ("stdin", "const_arr1", "stdin_stat", "model_version")
        value = f"(store {ZEROS} #x00000000 #x41)"
        assert implied_input(query, dict.fromkeys(names, value)).data == b"A"

    def test_an_index_may_make_no_file_of_any_size(self) -> None:
        query = asked({"input": SORT}, "(= (select input #xffffffff) #x42)")
        assert "beyond" in why(implied_input(query, {"input": f"(store {ZEROS} #xffffffff #x42)"}))

    def test_z3_names_parts_of_a_value(self) -> None:
        query = asked({"input": SORT})
        value = (
            f"(let ((a!1 (store (store {ZEROS} #x00000000 #x41) #x00000001 #x41)))"
            " (let ((a!2 (store a!1 #x00000001 #x42))) (store a!2 #x00000002 #x43)))"
        )
        assert implied_input(query, {"input": value}).data == b"ABC"

    def test_a_long_value_is_read(self) -> None:
        count = 20_000
        stores = "".join(f" #x{at:08x} #x41)" for at in range(count))
        implied = implied_input(asked({"input": SORT}), {"input": "(store " * count + ZEROS + stores})
        assert implied.data == b"A" * count

    def test_an_odd_value_is_left_alone(self) -> None:
        query = asked({"input": SORT})
        value = f"(ite true {ZEROS} {ZEROS})"
        assert "neither constant nor a list" in why(implied_input(query, {"input": value}))

    def test_other_arrays_are_no_input(self) -> None:
        sort = "(Array (_ BitVec 256) (_ BitVec 256))"
        assert "no symbol has a name" in why(implied_input(asked({"balance_0": sort}), {"balance_0": ""}))
