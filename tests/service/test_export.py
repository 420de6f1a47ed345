"""New inputs for a fuzzer: from the store, whatever became of the published files, and with words where
there are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from smtspool.files import Directory
from smtspool.query import Answer, Query, Status, parse_envelope, parse_smt2
from smtspool.service import Campaign, export_inputs
from smtspool.service.desk import Desk
from smtspool.service.publisher import Publisher
from smtspool.store import Store
from tests.service.support import witnessed

BYTES = "(declare-const {0} (_ BitVec 8))(assert (= {0} #x2a))(check-sat)"


@pytest.fixture
def publisher(campaign: Campaign) -> Iterator[Publisher]:
    made = Publisher(campaign, Desk(), open_store=lambda: Store.open(campaign.store))
    yield made
    made.close()


def answer(store: Store, asked: Query) -> None:
    model = {symbol.name: "#x2a" for symbol in asked.symbols}
    given = Answer(Status.SAT, model, engine="z3", verified_by="bitwuzla")
    store.ingest([asked])
    with store.register() as owner:
        assert store.complete([(store.claim(owner.name, 60, 1)[0], given)]) == [True]


def scripted(name: str) -> Query:
    (query,) = parse_smt2(BYTES.format(name))
    return query


def exported(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def inputs(campaign: Campaign) -> list[Path]:
    return sorted((campaign.out / "inputs").iterdir())


def test_export_writes_what_the_folder_does_not_have(
    campaign: Campaign, store: Store, publisher: Publisher, tmp_path: Path
) -> None:
    answer(store, parse_envelope(witnessed(42)))
    publisher.step()
    target = tmp_path / "afl" / "foreign"
    assert export_inputs(campaign, target).written == 1
    again = export_inputs(campaign, target)
    assert (again.written, again.present, list(again.notes())) == (0, 1, [])
    assert exported(target) == [b"A*"]


@pytest.mark.parametrize("damage", [b"", b"A", b"A+", b"A*\0"], ids=["truncated", "short", "other", "long"])
def test_a_published_file_that_is_damaged_is_named_and_the_right_bytes_are_exported(
    campaign: Campaign, store: Store, publisher: Publisher, tmp_path: Path, damage: bytes
) -> None:
    answer(store, parse_envelope(witnessed(42)))
    publisher.step()
    (published,) = inputs(campaign)
    published.write_bytes(damage)
    done = export_inputs(campaign, tmp_path / "foreign")
    assert done.damaged == [published.name]
    assert any(published.name in note for note in done.notes())
    assert exported(tmp_path / "foreign") == [b"A*"]
    store.republish()
    publisher.step()
    assert published.read_bytes() == b"A*"
    assert export_inputs(campaign, tmp_path / "foreign").damaged == []


@pytest.mark.parametrize("entry", ["link", "folder"])
def test_what_is_no_file_where_one_was_published_is_damage(
    campaign: Campaign, store: Store, publisher: Publisher, tmp_path: Path, entry: str
) -> None:
    answer(store, parse_envelope(witnessed(42)))
    publisher.step()
    (published,) = inputs(campaign)
    published.unlink()
    if entry == "link":
        published.symlink_to("/etc/passwd")
    else:
        published.mkdir()
    assert export_inputs(campaign, tmp_path / "foreign").damaged == [published.name]
    assert exported(tmp_path / "foreign") == [b"A*"]


def test_what_is_not_published_yet_or_was_deleted_is_exported(
    campaign: Campaign, store: Store, tmp_path: Path
) -> None:
    answer(store, parse_envelope(witnessed(42)))
    done = export_inputs(campaign, tmp_path / "foreign")
    assert (done.written, done.damaged) == (1, [])


def test_a_file_that_is_being_published_meanwhile_is_no_damage(
    campaign: Campaign, store: Store, publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(store, parse_envelope(witnessed(42)))
    publisher.step()
    (published,) = inputs(campaign)
    open_file = Directory.open_file

    def open_and_republish(self: Directory, name: str, flags: int, mode: int = 0o666) -> int:
        descriptor = open_file(self, name, flags, mode)
        if name == published.name:
            monkeypatch.undo()
            (published.parent / "new").write_bytes(b"A*")
            (published.parent / "new").rename(published)
        return descriptor

    monkeypatch.setattr(Directory, "open_file", open_and_republish)
    done = export_inputs(campaign, tmp_path / "foreign")
    assert (done.written, done.damaged) == (1, [])


def test_scripts_give_inputs_by_the_naming_of_their_symbols_and_say_so(
    campaign: Campaign, store: Store, publisher: Publisher, tmp_path: Path
) -> None:
    answer(store, scripted("k!2"))
    answer(store, scripted("x"))
    publisher.step()
    done = export_inputs(campaign, tmp_path / "foreign")
    assert exported(tmp_path / "foreign") == [b"\0\0*"] == [path.read_bytes() for path in inputs(campaign)]
    assert (done.sat, done.namings) == (2, {"k!N": 1})
    [(why, count)] = done.without.items()
    assert "no symbol has a name" in why and count == 1
    assert any("a witness" in note for note in done.notes())


def test_a_witness_that_names_no_symbol_is_the_ground_on_which_the_naming_writes(
    campaign: Campaign, store: Store, tmp_path: Path
) -> None:
    script = {"declarations": ["(declare-const k!1 (_ BitVec 8))"], "target": "(= k!1 #x2a)"}
    bare = {"witness": {"input_hex": b"ABC".hex(), "symbols": {}}}
    answer(store, parse_envelope(witnessed(42) | script | bare))
    export_inputs(campaign, tmp_path / "foreign")
    assert exported(tmp_path / "foreign") == [b"A*C"]


def test_without_any_sat_answer_that_is_said(campaign: Campaign, store: Store, tmp_path: Path) -> None:
    assert list(export_inputs(campaign, tmp_path / "foreign").notes()) == [
        "no query is sat yet, so there is no input"
    ]


def test_an_input_that_is_published_already_is_not_written_again(
    campaign: Campaign, store: Store, publisher: Publisher
) -> None:
    answer(store, parse_envelope(witnessed(42)))
    publisher.step()
    (published,) = inputs(campaign)
    before = published.stat()
    store.republish()
    publisher.step()
    assert (published.stat().st_ino, published.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
