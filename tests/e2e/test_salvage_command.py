"""``salvage``: a damaged campaign becomes a new one, and what is lost is said."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from tests.e2e.campaign import Place
from tests.service.support import equation, query


def test_what_is_damaged_is_asked_again_from_accepted(place: Place) -> None:
    place.create(*[(f"{n}.smt2", equation(n)) for n in range(1, 7)])
    place.run("serve", place.root, "--once")
    submitted = place.file("late.smt2", equation(7))
    place.run("submit", place.root, submitted)
    (place.root / "spool" / "accepted" / "2.smt2").unlink()
    lost, again = query(2).id, query(3).id
    with closing(sqlite3.connect(place.root / "store" / "index.sqlite3", isolation_level=None)) as raw:
        raw.execute(
            "UPDATE texts SET body = x'00' WHERE query IN (SELECT number FROM queries WHERE id IN (?, ?))",
            (bytes.fromhex(lost), bytes.fromhex(again)),
        )
    place.run("fsck", place.root, code=5)
    before = sorted(place.root.rglob("*"))
    (told,) = place.documents("salvage", place.root, "rescued", "--json", code=5)
    assert sorted(place.root.rglob("*")) == before
    assert told["schema"] == "smtspool-salvage-v1"
    assert (told["queries"], told["answers"], told["resubmitted"]) == (4, 4, 2)
    assert (told["lost"], told["unreadable"], told["damage"]) == ([lost], 0, None)
    assert "already" in place.run("salvage", place.root, "rescued", code=2).stderr

    place.root = place.folder / "rescued"
    place.run("serve", place.root, "--once")
    assert place.answers() == {query(n).id: "sat" for n in (1, 3, 4, 5, 6, 7)}
    assert place.run("fsck", place.root).stdout == "clean\n"
    assert len(list((place.root / "out" / "results").iterdir())) == 6


def test_a_store_of_which_nothing_is_left_is_made_again_from_accepted(place: Place) -> None:
    place.create(*[(f"{n}.smt2", equation(n)) for n in range(1, 4)])
    place.run("serve", place.root, "--once")
    index = place.root / "store" / "index.sqlite3"
    index.write_bytes(b"\0" * index.stat().st_size)
    told = place.run("salvage", place.root, "rescued", code=5).stdout
    assert "nothing of the store can be read" in told and "submitted again: 3 files" in told
    place.root = place.folder / "rescued"
    place.run("serve", place.root, "--once")
    assert place.answers() == {query(n).id: "sat" for n in range(1, 4)}
