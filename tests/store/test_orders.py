"""Which query is claimed next."""

from __future__ import annotations

import pytest

from smtspool.errors import MisuseError
from smtspool.store import Order, Store
from tests.store.support import LEASE_S, query

SHALLOW = query(1, priority=1.0)
DEEP = query(2, path=(90, 80, 70))
MIDDLE = query(3, path=(60, 50), priority=5.0)
ALSO_DEEP = query(4, path=(40, 30, 20), priority=2.0)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (Order.DFS, [ALSO_DEEP, DEEP, MIDDLE, SHALLOW]),
        (Order.BFS, [SHALLOW, MIDDLE, ALSO_DEEP, DEEP]),
        (Order.PRIORITY, [MIDDLE, ALSO_DEEP, SHALLOW, DEEP]),
        (Order.FIFO, [SHALLOW, DEEP, MIDDLE, ALSO_DEEP]),
    ],
)
def test_each_order_sorts_as_its_name_says(store: Store, order: Order, expected: list[object]) -> None:
    store.ingest([SHALLOW, DEEP, MIDDLE, ALSO_DEEP])
    assert [lease.query for lease in store.claim("w", LEASE_S, 9, order)] == expected


def test_queries_of_equal_rank_come_in_order_of_admission(store: Store) -> None:
    queries = [query(n) for n in range(20)]
    store.ingest(queries)
    for order in Order:
        leases = store.claim("w", LEASE_S, 20, order)
        assert [lease.query for lease in leases] == queries
        store.release(leases)


def test_priority_rules_among_queries_without_prefix(store: Store) -> None:
    ranked = [query(n, priority=float(priority)) for n, priority in enumerate((1, 9, 5, 7, 3))]
    store.ingest(ranked)
    claimed = store.claim("w", LEASE_S, 4, Order.PRIORITY)
    assert [lease.query.priority for lease in claimed] == [9.0, 7.0, 5.0, 3.0]
    (last,) = store.claim("w", LEASE_S, 4, Order.PRIORITY, claimed[0].affinity)
    assert last.query.priority == 1.0


def test_a_batch_is_taken_along_the_path_of_its_first_query(store: Store) -> None:
    deep, sibling = query(1, path=(90, 80, 70)), query(2, path=(90, 80, 70))
    parent, elsewhere = query(3, path=(90, 80)), query(4, path=(5, 4, 3))
    store.ingest([deep, elsewhere, parent, sibling])
    claimed = store.claim("w", LEASE_S, 3, Order.DFS)
    assert [lease.query for lease in claimed] == [deep, sibling, parent]


def test_a_batch_goes_on_with_the_next_path_whole(store: Store) -> None:
    long, short = (90, 80, 70, 60), (5, 4, 3)
    first = [query(n, path=long[:n]) for n in range(1, 5)]
    second = [query(10 + n, path=short[:n]) for n in range(1, 4)]
    store.ingest([*second, *first])
    claimed = store.claim("w", LEASE_S, 6, Order.DFS)
    assert [lease.query for lease in claimed] == [*reversed(first), second[2], second[1]]


def test_affinity_takes_the_prefix_then_its_extensions_then_its_ancestors(store: Store) -> None:
    path = (90, 80, 70)
    first, same = query(1, path=path), query(2, path=path)
    below, above = query(3, path=(*path, 60)), query(4, path=path[:-1])
    elsewhere = query(5, path=(5, 4, 3, 2, 1))
    store.ingest([first])
    (lease,) = store.claim("w", LEASE_S, 1)
    store.ingest([elsewhere, above, below, same])
    claimed = store.claim("w", LEASE_S, 9, Order.DFS, lease.affinity)
    assert [each.query for each in claimed] == [same, below, above, elsewhere]


def test_an_idle_worker_steals_from_a_hot_prefix(store: Store) -> None:
    store.ingest([query(1, path=(5,)), *(query(n, path=(90, 80)) for n in range(2, 6))])
    (own,) = store.claim("mine", LEASE_S, 1, Order.BFS)
    stolen = [store.claim(f"w{n}", LEASE_S, 1, Order.DFS, own.affinity)[0] for n in range(4)]
    assert len({lease.query.id for lease in stolen}) == 4


def test_the_empty_prefix_has_no_neighbours(store: Store) -> None:
    store.ingest([query(1)])
    (lease,) = store.claim("w", LEASE_S, 1)
    store.ingest([query(2, path=(9,)), query(3, path=(8, 7))])
    (claimed,) = store.claim("w", LEASE_S, 1, Order.DFS, lease.affinity)
    assert claimed.query == query(3, path=(8, 7))


def test_affinity_and_limit_are_checked(store: Store) -> None:
    with pytest.raises(MisuseError, match="affinity"):
        store.claim("w", LEASE_S, 1, Order.DFS, "nonsense")
    with pytest.raises(MisuseError, match="at least one"):
        store.claim("w", LEASE_S, 0)
