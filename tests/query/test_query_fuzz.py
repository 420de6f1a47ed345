"""Whatever the bytes are, there is a query or an AdmissionError, and a query is consistent with itself."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from smtspool.errors import AdmissionError, Place
from smtspool.query import Limits, Query, decode, encode, parse_envelope, parse_file, script, to_envelope
from tests.query.generate import script_of

_PIECES = """
    ( ) (( )) () let ! _ as | ; : :named n x @x !@x |x| |let| |a b| true not and = bvadd bvult " é
    (_ (_bv1 (_ bv1 8) (_ bv300 8) #x0f #XF #b 0 1.5 Bool (_ BitVec 8) BitVec Array const select
    set-logic QF_BV QF_AUFBV assert check-sat check-sat-assuming push pop exit declare-const declare-fun
    define-fun define-sort declare-sort set-info set-option (check-sat) (assert (declare-const
    (exit) (reset) (reset-assertions) (get-value (echo :global-decls :trace :other check-sat-using ALL Int
"""
PIECES = st.sampled_from([*_PIECES.split(), "\n", "\xa0", "(_ bv1 8)", "(_ BitVec 8)", "|a b|"])
SCRIPTS = st.lists(PIECES, max_size=40).map(" ".join)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
LIMITS = Limits(width=64, depth=50, queries=20, declarations=20, assertions=20, replicated=200)


def check_place(place: Place, text: str) -> None:
    """It is in the text, and what stands around it is what it says."""
    line = text.split("\n")[place.line - 1]
    assert 1 <= place.column <= len(line) + 1
    if place.member is None:
        assert place.near in line


def read(name: str, data: bytes) -> tuple[Query, ...]:
    try:
        queries = parse_file(name, data, LIMITS)
    except AdmissionError as error:
        assert error.message
        if error.place is not None:
            check_place(error.place, data.decode(errors="replace"))
        return ()
    for query in queries:
        assert decode(encode(query)) == query
        assert parse_envelope(to_envelope(query)) == query
        assert parse_file("again.smt2", script(query).encode())[0].id == query.id
    return queries


@given(st.sampled_from(["q.smt2", "q.json"]), st.binary())
def test_bytes(name: str, data: bytes) -> None:
    read(name, data)


@settings(max_examples=400)
@given(SCRIPTS)
def test_pieces_of_scripts(text: str) -> None:
    read("q.smt2", text.encode())


@settings(max_examples=300)
@given(st.integers(0, 1000), st.integers(0), st.integers(0, 3), st.lists(PIECES, max_size=2).map(" ".join))
def test_scripts_with_a_splice(seed: int, place: int, cut: int, piece: str) -> None:
    text = script_of(seed)
    at = place % (len(text) + 1)
    read("q.smt2", f"{text[:at]}{piece}{text[at + cut :]}".encode())


@given(st.dictionaries(st.sampled_from(["schema", "logic", "target", "prefix", "witness", "metadata"]), JSON))
def test_members_of_envelopes(members: dict[str, object]) -> None:
    for schema in ("smtspool-query-v1", "symcc-query-ir-v1"):
        base = {"schema": schema, "logic": "QF_BV", "target": "true", "smt2": "x", "prefix_smt2": "x"}
        read("q.json", json.dumps({**base, **members}).encode())


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "op": st.sampled_from(["read", "constant", "bool", "add", "ite", "extract", "equal", "zext"])
                | JSON,
                "bits": st.integers(0, 70) | JSON,
                "children": st.lists(st.integers(-1, 5), max_size=4) | JSON,
                "attrs": st.fixed_dictionaries({}, optional={"index": JSON, "value": JSON, "value_hex": JSON})
                | JSON,
            },
        ),
        max_size=5,
    ),
    JSON,
)
def test_graphs(nodes: list[dict[str, object]], root: object) -> None:
    graph = {"nodes": [{"id": at, **node} for at, node in enumerate(nodes)], "target_root": root}
    texts = dict.fromkeys(("smt2", "prefix_smt2", "target_smt2"), "x")
    read("q.json", json.dumps({"schema": "symcc-query-ir-v1", **texts, **graph}).encode())
