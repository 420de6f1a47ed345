"""Queries equal up to names are solved once, and only proven answers are passed on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from smtspool.errors import MisuseError
from smtspool.query import Answer, Query, Status, parse_smt2
from smtspool.store import Lease, Order, Store, forms
from tests.clock import Clock
from tests.store.support import LEASE_S, TIMEOUT, UNSAT, query, sat

DISAGREEMENT = Answer(Status.UNKNOWN, reason="engines disagree", disagreement=True)


def twins(count: int, number: int = 7) -> list[Query]:
    """Queries of one form."""
    return [query(number, name=f"x{n}") for n in range(count)]


def claim(store: Store, limit: int = 99) -> list[Lease]:
    return store.claim("w", LEASE_S, limit, Order.FIFO)


def test_of_one_form_only_the_first_is_claimed(store: Store) -> None:
    store.ingest([*twins(3), query(8)])
    assert [lease.query for lease in claim(store)] == [twins(1)[0], query(8)]
    assert store.counts().waiting == 2


def test_unsat_of_the_leader_answers_all_that_wait(store: Store) -> None:
    queries = twins(4)
    store.ingest(queries)
    (leader,) = claim(store)
    store.complete([(leader, replace(UNSAT, verified_by="z3"))])
    assert store.counts().unsat == 4
    assert store.counts().publications_due == 4
    for each in queries[1:]:
        result = store.result(each.id)
        assert result is not None
        assert result.answer == Answer(
            Status.UNSAT, engine="bitwuzla", verified_by="z3", reused_from=leader.query.id
        )
    assert store.counters()["reused.unsat"] == 3
    assert store.counters()["wins.bitwuzla"] == 1


def test_a_later_query_of_an_unsat_form_is_answered_when_it_is_admitted(store: Store) -> None:
    first, later = twins(2)
    store.ingest([first])
    store.complete([(claim(store)[0], UNSAT)])
    assert store.ingest([later]) == [True]
    result = store.result(later.id)
    assert result is not None and result.answer.reused_from == first.id
    assert claim(store) == []


def test_a_proof_of_one_engine_answers_nobody_where_two_are_asked(directory: Path) -> None:
    retried, first, second, third, last = twins(5)
    with Store.open(directory, create=True) as store:
        store.ingest([retried, first])
        store.complete([(claim(store)[0], TIMEOUT)])
        store.complete([(claim(store)[0], UNSAT)])
    with Store.open(directory, confirm_unsat=True) as store:
        store.ingest([second, third])
        assert store.retry(retried.id)
        leases = claim(store)
        assert [lease.query for lease in leases] == [retried, second, third]
        store.complete([(leases[1], replace(UNSAT, verified_by="z3")), (leases[2], TIMEOUT)])
        store.ingest([last])
        result = store.result(last.id)
        assert result is not None
        assert (result.answer.verified_by, result.answer.reused_from) == ("z3", second.id)
    assert Store.fsck(directory) == []


def test_those_that_still_wait_for_a_proof_of_one_engine_are_solved_where_two_are_asked(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forms, "DRAIN_CHUNK", 1)
    with Store.open(directory, create=True) as store:
        store.ingest(twins(4))
        store.complete([(claim(store)[0], UNSAT)])
        assert (store.counts().unsat, store.counts().waiting) == (2, 2)
    with Store.open(directory, confirm_unsat=True) as store:
        assert [lease.query for _ in range(2) for lease in claim(store)] == twins(4)[2:]


def test_sat_of_the_leader_is_offered_in_the_other_querys_symbols(store: Store) -> None:
    first, second, third = twins(3)
    store.ingest([first, second])
    (leader,) = claim(store)
    store.complete([(leader, sat(leader))])
    store.ingest([third])
    offered = claim(store)
    assert [lease.query for lease in offered] == [second, third]
    for name, lease in zip(("x1", "x2"), offered, strict=True):
        assert lease.reuse is not None
        assert lease.reuse.model == {name: "#x00000007", "unused": "#x00"}
        assert lease.reuse.reused_from == first.id
        assert lease.reuse.verified_by is None
    answers = [replace(lease.reuse, verified_by="z3") for lease in offered if lease.reuse is not None]
    assert store.complete(list(zip(offered, answers, strict=True))) == [True, True]
    assert store.counters()["reused.sat"] == 2


def test_an_offer_is_not_committed_before_it_is_verified(store: Store) -> None:
    store.ingest(twins(2))
    (leader,) = claim(store)
    store.complete([(leader, sat(leader))])
    (offered,) = claim(store)
    assert offered.reuse is not None
    with pytest.raises(MisuseError, match="confirmed"):
        store.complete([(offered, offered.reuse)])


def test_functions_are_renamed_with_their_definitions(store: Store) -> None:
    def asking(function: str) -> Query:
        (parsed,) = parse_smt2(
            f"(set-logic QF_UFBV)(declare-fun {function} ((_ BitVec 8)) (_ BitVec 8))"
            f"(declare-fun idle ((_ BitVec 8)) Bool)(assert (= ({function} #x01) #x02))(check-sat)"
        )
        return parsed

    store.ingest([asking("f"), asking("g")])
    (leader,) = claim(store)
    idle = "(define-fun idle ((a (_ BitVec 8))) Bool true)"
    found = "(define-fun f ((a (_ BitVec 8))) (_ BitVec 8) #x02)"
    answer = Answer(Status.SAT, model={"f": found, "idle": idle}, engine="z3", verified_by="cvc5")
    store.complete([(leader, answer)])
    (offered,) = claim(store)
    assert offered.reuse is not None and offered.reuse.model is not None
    assert offered.reuse.model["g"] == "(define-fun g ((a (_ BitVec 8))) (_ BitVec 8) #x02)"
    assert offered.reuse.model["idle"].startswith("(define-fun idle ")


@pytest.mark.parametrize(
    "answer",
    [
        TIMEOUT,
        Answer(Status.ERROR, reason="crashed"),
        replace(UNSAT, at_limit=True),
    ],
    ids=["unknown", "error", "at-limit"],
)
def test_what_is_not_proven_is_not_reused_and_the_next_one_leads(store: Store, answer: Answer) -> None:
    queries = twins(3)
    store.ingest(queries)
    store.complete([(claim(store)[0], answer)])
    (next_leader,) = claim(store)
    assert next_leader.query == queries[1] and next_leader.reuse is None
    assert store.counts().waiting == 1
    store.complete([(next_leader, UNSAT)])
    assert store.counts().open == 0


def test_a_parked_leader_strands_nobody(store: Store) -> None:
    queries = twins(2)
    store.ingest(queries)
    for _ in range(3):
        store.fail(claim(store)[0], "died", helper_died=True)
    (lease,) = claim(store)
    assert lease.query == queries[1]


def test_an_expired_leader_still_leads(store: Store, clock: Clock) -> None:
    queries = twins(2)
    store.ingest(queries)
    claim(store)
    clock.advance(LEASE_S)
    assert [lease.query for lease in claim(store)] == queries[:1]


def test_a_retried_query_waits_for_the_one_that_leads_now(store: Store) -> None:
    first, second = twins(2)
    store.ingest([first, second])
    store.complete([(claim(store)[0], TIMEOUT)])
    assert store.retry(first.id)
    assert store.counts().waiting == 1
    (lease,) = claim(store)
    assert lease.query == second
    store.complete([(lease, UNSAT)])
    result = store.result(first.id)
    assert result is not None and result.answer.reused_from == second.id


def test_a_retried_query_of_an_unsat_form_is_answered_at_once(store: Store) -> None:
    first, second = twins(2)
    store.ingest([first, second])
    store.complete([(claim(store)[0], TIMEOUT)])
    store.complete([(claim(store)[0], UNSAT)])
    assert store.retry(first.id)
    assert store.counts().unsat == 2


def test_a_disagreement_quarantines_the_form(store: Store) -> None:
    queries = twins(3)
    store.ingest(queries)
    store.complete([(claim(store)[0], DISAGREEMENT)])
    alone = claim(store)
    assert [lease.query for lease in alone] == queries[1:]
    store.complete([(alone[0], UNSAT)])
    assert store.counts().unsat == 1
    store.ingest(twins(4))
    (last,) = claim(store)
    assert last.query == twins(4)[3] and last.reuse is None
    assert store.counters()["forms.quarantined"] == 1


def test_a_refuted_offer_quarantines_the_form(store: Store) -> None:
    queries = twins(3)
    store.ingest(queries)
    (leader,) = claim(store)
    store.complete([(leader, sat(leader))])
    (offered,) = claim(store, 1)
    store.refute(offered)
    assert store.complete([(offered, sat(offered))]) == [True]
    (last,) = claim(store)
    assert last.reuse is None
    assert store.counters()["reuse.refuted"] == 1


def test_only_an_offer_can_be_refuted(store: Store) -> None:
    store.ingest([query(1)])
    with pytest.raises(MisuseError, match="no answer to refute"):
        store.refute(claim(store)[0])


def test_opposite_answers_to_one_form_quarantine_it(store: Store) -> None:
    store.ingest(twins(2))
    (leader,) = claim(store)
    store.complete([(leader, sat(leader))])
    (other,) = claim(store)
    store.complete([(other, UNSAT)])
    store.ingest(twins(3))
    assert claim(store)[0].reuse is None
    assert store.counters()["forms.quarantined"] == 1


def first_by_priority(store: Store) -> Query:
    (lease,) = store.claim("w", LEASE_S, 1, Order.PRIORITY)
    return lease.query


def test_an_urgent_query_lends_its_leader_its_priority(store: Store) -> None:
    leader, urgent = query(7, name="x"), query(7, name="y", priority=9.0)
    store.ingest([leader, query(8, priority=5.0), urgent])
    assert first_by_priority(store).id == leader.id


def test_a_waiting_query_that_becomes_urgent_lends_its_priority_too(store: Store) -> None:
    leader, waiting = query(7, name="x"), query(7, name="y")
    store.ingest([leader, query(8, priority=5.0), waiting])
    store.ingest([replace(waiting, priority=9.0)])
    assert first_by_priority(store).id == leader.id


def test_the_next_leader_inherits_what_was_lent(store: Store) -> None:
    store.ingest([*twins(2), query(8, priority=5.0), query(7, name="y", priority=9.0)])
    (leader,) = store.claim("w", LEASE_S, 1, Order.PRIORITY)
    assert leader.query.id == twins(1)[0].id
    store.complete([(leader, TIMEOUT)])
    assert first_by_priority(store).id == twins(2)[1].id


def test_the_next_leader_is_as_urgent_as_those_that_wait_and_no_more(store: Store) -> None:
    store.ingest([query(7, name="x", priority=9.0), query(7, name="y"), query(8, priority=5.0)])
    store.complete([(lease, TIMEOUT) for lease in store.claim("w", LEASE_S, 1, Order.PRIORITY)])
    assert first_by_priority(store).id == query(8).id


def test_a_query_that_is_retried_lends_its_priority_to_the_one_that_leads_now(store: Store) -> None:
    urgent, patient = query(7, name="y", priority=9.0), query(7, name="x")
    store.ingest([urgent])
    store.complete([(claim(store)[0], TIMEOUT)])
    store.ingest([patient, query(8, priority=5.0)])
    assert store.retry(urgent.id)
    assert first_by_priority(store).id == patient.id


def test_an_urgent_query_that_does_not_wait_lends_nothing(store: Store) -> None:
    first, second = twins(2)
    store.ingest([first])
    store.complete([(claim(store)[0], TIMEOUT)])
    store.ingest([second])
    store.ingest([replace(first, priority=9.0)])
    assert first_by_priority(store).priority == 0.0


@pytest.mark.parametrize("satisfiable", [False, True])
def test_very_many_waiting_queries_are_let_go_in_parts(
    directory: Path, monkeypatch: pytest.MonkeyPatch, satisfiable: bool
) -> None:
    monkeypatch.setattr(forms, "DRAIN_CHUNK", 10)
    with Store.open(directory, create=True) as store:
        store.ingest(twins(35))
        (leader,) = claim(store)
        store.complete([(leader, sat(leader) if satisfiable else UNSAT)])
        assert store.counts().waiting == 24
        assert Store.fsck(directory) == []
    # Whoever claims next goes on, in another process if need be.
    with Store.open(directory) as store:
        claimed = [lease for _ in range(3) for lease in claim(store)]
        assert store.counts().waiting == 0
        assert len(claimed) == (34 if satisfiable else 0)
        assert store.counts().unsat == (0 if satisfiable else 35)
    assert Store.fsck(directory) == []
