"""What was asked and what came of it, chosen by file, metadata, kind and time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smtspool.query import QueryFile, Status, file_mark
from smtspool.store import State, Store, Wanted, listing
from tests.clock import Clock
from tests.store.support import LEASE_S, UNSAT, query


def admit(store: Store, name: str, *numbers: int, **metadata: object) -> None:
    asked = tuple(replace(query(number), metadata=metadata) for number in numbers)
    store.admit([QueryFile(name, file_mark(name, 1, 0), 1, 0.0, asked)])


def answer(store: Store, count: int) -> None:
    store.complete([(lease, UNSAT) for lease in store.claim("w", LEASE_S, count)])


def names(store: Store, wanted: Wanted) -> list[tuple[str | None, int | None]]:
    found = [one.submission for one in store.listed(wanted)]
    return [(one.file, one.number) for one in found if one is not None]


def test_open_queries_are_listed_if_they_are_wanted(store: Store) -> None:
    admit(store, "a.smt2", 1, 2, 3)
    answer(store, 1)
    assert [one.state for one in store.listed(Wanted())] == [State.DONE]
    assert [one.result is None for one in store.listed(Wanted(open=True))].count(True) == 2
    only_open = Wanted(statuses=frozenset(), open=True)
    assert [one.state for one in store.listed(only_open)] == [State.PENDING, State.PENDING]
    assert list(store.listed(Wanted(statuses=frozenset({Status.SAT})))) == []


@pytest.mark.parametrize("chunk", [1, 2, 256])
def test_every_submission_of_a_file_is_listed_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(listing, "CHUNK", chunk)
    admit(store, "a.smt2", 1, 2, 1)
    admit(store, "b.smt2", 1)
    answer(store, 1)
    assert sorted(names(store, Wanted(file="a.smt2", open=True)), key=str) == [
        ("a.smt2", 1),
        ("a.smt2", 2),
        ("a.smt2", 3),
    ]
    assert len(names(store, Wanted(file="*", open=True))) == 4
    assert len(list(store.listed(Wanted(open=True)))) == 2


def test_a_name_is_itself_a_pattern_or_what_the_spool_made_of_it(store: Store) -> None:
    for name in ("q.smt2", "q~0123abcd.smt2", "q~backup.smt2", "[q].smt2", "p.smt2", "q~0123abcd.json"):
        admit(store, name, 1)

    def found(file: str) -> set[str | None]:
        return {name for name, _ in names(store, Wanted(file=file, open=True))}

    assert found("q.smt2") == {"q.smt2", "q~0123abcd.smt2"}
    assert found("[q].smt2") >= {"[q].smt2"}
    assert found("[pq].smt2") == {"p.smt2", "q.smt2", "q~0123abcd.smt2"}
    assert found("Q.smt2") == set()


@pytest.mark.parametrize(
    ("member", "value", "found"),
    [
        *(("site", "12", True), ("site", "1", False), ("sit", "12", False), ("text", "12", True)),
        *(("yes", "true", True), ("yes", "1", False), ("none", "null", True), ("half", "0.5", True)),
        *(("odd \"key'", "%_*", True), ("inner", "12", False)),
    ],
)
def test_metadata_is_compared_as_text(store: Store, member: str, value: str, found: bool) -> None:
    told = {"site": 12, "text": "12", "yes": True, "none": None, "half": 0.5, "odd \"key'": "%_*"}
    admit(store, "a.smt2", 1, **told, deep={"inner": 12})
    admit(store, "b.smt2", 1)
    wanted = Wanted(metadata={member: value}, open=True)
    assert names(store, wanted) == ([("a.smt2", 1)] if found else [])


def test_all_conditions_hold_together(store: Store) -> None:
    admit(store, "a.smt2", 1, site=1, who="x")
    admit(store, "b.smt2", 2, site=1)
    assert names(store, Wanted(metadata={"site": "1", "who": "x"}, open=True)) == [("a.smt2", 1)]
    assert names(store, Wanted(metadata={"site": "1"}, file="b*", open=True)) == [("b.smt2", 1)]
    assert names(store, Wanted(file="a*", prefix=query(2).id[:9], open=True)) == []
    assert names(store, Wanted(file="a*", prefix="'", open=True)) == []


def test_time_is_of_the_answer_or_else_of_the_submission(store: Store, clock: Clock) -> None:
    admit(store, "a.smt2", 1)
    clock.advance(10)
    answer(store, 1)
    admit(store, "b.smt2", 2)
    assert len(list(store.results(wanted=Wanted(since=1010.0)))) == 1
    assert len(list(store.results(wanted=Wanted(since=1010.5)))) == 0
    assert names(store, Wanted(file="*", since=1010.0, open=True)) == [("a.smt2", 1), ("b.smt2", 1)]
    assert len(list(store.listed(Wanted(since=1010.0, open=True)))) == 2
    assert len(list(store.listed(Wanted(since=1011.0, open=True)))) == 0
