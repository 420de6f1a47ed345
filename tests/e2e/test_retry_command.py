"""``smtspool retry`` obeys the settings of the campaign."""

from __future__ import annotations

import pytest

from smtspool.query import Answer, Status
from smtspool.store import Order, Store
from tests.e2e.campaign import Place
from tests.store.support import TIMEOUT, query

ALONE = Answer(Status.UNSAT, engine="bitwuzla")


@pytest.mark.parametrize(("confirm", "pending"), [("false", 0), ("true", 1)])
def test_what_one_engine_said_alone_ends_no_query_where_two_are_asked(
    place: Place, confirm: str, pending: int
) -> None:
    place.run("init", place.root)
    with Store.open(place.root / "store") as store:
        for asked, answer in ((query(1), TIMEOUT), (query(1, name="y"), ALONE)):
            store.ingest([asked])
            [lease] = store.claim("test", 60, 1, Order.FIFO)
            assert store.complete([(lease, answer)]) == [True]
    place.run("retry", place.root, query(1).id, SMTSPOOL_CONFIRM_UNSAT=confirm)
    with Store.open(place.root / "store") as store:
        assert store.counts().pending == pending
