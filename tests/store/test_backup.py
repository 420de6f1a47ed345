"""A copy of a store is one moment of it, whoever writes meanwhile."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from smtspool.store import Store, back_up_store
from tests.store.support import LEASE_S, UNSAT, query, start_child, wait_for


def test_a_copy_of_a_store_that_is_written_is_sound_and_whole(directory: Path, tmp_path: Path) -> None:
    Store.open(directory, create=True).close()
    ready, said = os.pipe()

    def work() -> int:
        number = 0
        with Store.open(directory) as store, store.register() as owner:
            while True:
                store.ingest([query(number + more, path=(9, 8)) for more in range(10)])
                leases = store.claim(owner.name, LEASE_S, 5)
                store.complete([(lease, UNSAT) for lease in leases[:3]])
                number += 10
                os.write(said, b".")

    child = start_child(work)
    os.close(said)
    totals = []
    try:
        for copy in ("first", "second", "third"):
            assert os.read(ready, 3)
            back_up_store(directory, tmp_path / copy)
            assert Store.fsck(tmp_path / copy) == []
            with Store.view(tmp_path / copy) as store:
                totals.append(store.counts().total)
                assert store.counts().leased == 0
    finally:
        os.kill(child, signal.SIGKILL)
        wait_for(child)
        os.close(ready)
    assert totals == sorted(totals) and totals[0] % 10 == 0 and totals[0] < totals[-1]


def test_a_store_that_nobody_has_open_is_copied_without_a_trace(directory: Path, tmp_path: Path) -> None:
    with Store.open(directory, create=True) as store:
        store.ingest([query(number) for number in range(20)])
    before = sorted(directory.iterdir())
    back_up_store(directory, tmp_path / "copy")
    assert sorted(directory.iterdir()) == before
    with Store.view(tmp_path / "copy") as copy:
        assert copy.counts().total == 20
