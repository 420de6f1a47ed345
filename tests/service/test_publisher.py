"""Publication: files say what was committed, whatever happens between the commit and the file."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from smtspool.files import Directory, FileLock
from smtspool.query import Answer, Status, parse_envelope
from smtspool.service import Campaign
from smtspool.service.desk import Desk
from smtspool.service.publisher import Publisher
from smtspool.store import Backoff, Store
from tests.service.support import query, witnessed

SAT = Answer(Status.SAT, {"b": "#x2a"}, engine="z3", verified_by="bitwuzla")


@pytest.fixture
def publisher(campaign: Campaign) -> Iterator[Publisher]:
    # No delay between tries, and three of them.
    impatient = Backoff(base_s=0.0, failures=3)
    made = Publisher(campaign, Desk(), open_store=lambda: Store.open(campaign.store, backoff=impatient))
    yield made
    made.close()


def answer(store: Store, asked: object, given: Answer) -> None:
    store.ingest([asked])  # type: ignore[list-item]
    with store.register() as owner:
        assert store.complete([(store.claim(owner.name, 60, 1)[0], given)]) == [True]


def answer_witnessed(store: Store) -> str:
    asked = parse_envelope(witnessed(42))
    answer(store, asked, SAT)
    return asked.id


def results(campaign: Campaign) -> list[Path]:
    return sorted((campaign.out / "results").iterdir())


def inputs(campaign: Campaign) -> list[Path]:
    return sorted((campaign.out / "inputs").iterdir())


def test_a_result_file_says_everything(campaign: Campaign, store: Store, publisher: Publisher) -> None:
    identity = answer_witnessed(store)
    assert publisher.step() == 0
    [path] = results(campaign)
    document = json.loads(path.read_text())
    assert path.name == f"{identity}.json"
    assert document["schema"] == "smtspool-result-v1"
    assert (document["id"], document["status"], document["verified_by"]) == (identity, "sat", "bitwuzla")
    assert document["model"] == {"b": "#x2a"}
    assert [bytes.fromhex(new_input) for new_input in document["inputs_hex"]] == [b"A*"]
    assert document["metadata"] == {"site": 42}
    assert document["completed"] > 0
    assert store.counts().publications_due == 0


def test_a_new_input_is_named_as_afl_wants_it(campaign: Campaign, store: Store, publisher: Publisher) -> None:
    identity = answer_witnessed(store)
    publisher.step()
    [path] = inputs(campaign)
    assert path.read_bytes() == b"A*"
    assert re.fullmatch(rf"id:\d{{6}},query:{identity[:16]}", path.name)


def test_unsat_has_a_result_and_no_input(campaign: Campaign, store: Store, publisher: Publisher) -> None:
    answer(store, query(1, against=2), Answer(Status.UNSAT, engine="z3"))
    publisher.step()
    assert len(results(campaign)) == 1
    assert inputs(campaign) == []


def test_a_failed_write_is_tried_again(campaign: Campaign, store: Store, publisher: Publisher) -> None:
    identity = answer_witnessed(store)
    obstacle = campaign.out / "results" / f"{identity}.json"
    obstacle.mkdir()
    publisher.step()
    assert store.counts().publications_due == 1
    obstacle.rmdir()
    publisher.step()
    assert store.counts().publications_published == 1
    assert obstacle.is_file()


def test_after_too_many_failures_it_is_a_dead_letter_that_can_be_revived(
    campaign: Campaign, store: Store, publisher: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    identity = answer_witnessed(store)
    obstacle = campaign.out / "results" / f"{identity}.json"
    obstacle.mkdir()
    while store.counts().publications_due:
        publisher.step()
    assert store.counts().publications_dead == 1
    assert caplog.text.count("cannot publish") == 3
    obstacle.rmdir()
    assert store.revive_publications() == 1
    publisher.step()
    assert store.counts().publications_published == 1


def test_a_kill_between_the_file_and_the_outbox_is_harmless(
    campaign: Campaign, store: Store, publisher: Publisher
) -> None:
    answer_witnessed(store)
    [publication] = store.due_publications(10)
    publisher.step()
    before = [(path.name, path.read_bytes()) for path in (*results(campaign), *inputs(campaign))]
    assert store.republish() == 1  # what the outbox looks like if only the files were written
    [again] = store.due_publications(10)
    assert again.id == publication.id
    publisher.step()
    assert [(path.name, path.read_bytes()) for path in (*results(campaign), *inputs(campaign))] == before


def test_every_known_input_becomes_a_new_one(campaign: Campaign, store: Store, publisher: Publisher) -> None:
    envelope = witnessed(42)
    longer = {**envelope, "witness": {**envelope["witness"], "input_hex": "424344"}}
    store.ingest([parse_envelope(longer)])
    answer_witnessed(store)
    publisher.step()
    assert sorted(path.read_bytes() for path in inputs(campaign)) == [b"A*", b"B*D"]
    [path] = results(campaign)
    assert sorted(json.loads(path.read_text())["inputs_hex"]) == sorted([b"A*".hex(), b"B*D".hex()])
    assert store.counters()["inputs.found"] == 2


def test_an_input_that_comes_after_the_answer_becomes_a_new_one_too(
    campaign: Campaign, store: Store, publisher: Publisher
) -> None:
    answer_witnessed(store)
    publisher.step()
    [first] = inputs(campaign)
    envelope = witnessed(42)
    longer = {**envelope, "witness": {**envelope["witness"], "input_hex": "424344"}}
    store.ingest([parse_envelope(longer)])
    publisher.step()
    assert [path.read_bytes() for path in inputs(campaign)] == [b"A*", b"B*D"]
    assert inputs(campaign)[0] == first
    [path] = results(campaign)
    assert json.loads(path.read_text())["inputs_hex"] == [b"A*".hex(), b"B*D".hex()]
    assert store.counts().publications_published == 1


def test_nothing_temporary_is_left(campaign: Campaign, store: Store, publisher: Publisher) -> None:
    identity = answer_witnessed(store)
    (campaign.out / "results" / f"{identity}.json").mkdir()
    publisher.step()
    assert not [path for path in (*results(campaign), *inputs(campaign)) if path.name.startswith(".")]


def test_what_killed_publishers_left_half_written_is_swept(campaign: Campaign, publisher: Publisher) -> None:
    for folder in ("results", "inputs"):
        (campaign.out / folder / f".{'a' * 16}.tmp").write_bytes(b"half")
    publisher.step()
    assert inputs(campaign) == [] and list((campaign.out / "results").iterdir()) == []


def test_one_service_at_a_time_publishes(campaign: Campaign, store: Store, publisher: Publisher) -> None:
    answer_witnessed(store)
    with Directory.open(campaign.out) as out, FileLock(out, ".publish.lock") as other:
        assert other.try_acquire()
        assert publisher.step() == pytest.approx(0.1)
        assert store.counts().publications_due == 1
    publisher.step()
    assert store.counts().publications_due == 0


def test_a_folder_that_was_removed_is_made_again(
    campaign: Campaign, store: Store, publisher: Publisher
) -> None:
    publisher.step()
    shutil.rmtree(campaign.out)
    answer_witnessed(store)
    publisher.step()
    assert len(results(campaign)) == len(inputs(campaign)) == 1


def test_it_ends_when_nothing_more_can_become_due(campaign: Campaign, store: Store) -> None:
    desk = Desk()
    publisher = Publisher(campaign, desk, open_store=lambda: Store.open(campaign.store))
    assert publisher.step() == 1.0
    answer_witnessed(store)
    desk.solved_all.set()
    assert publisher.step() == 0
    assert publisher.step() is None
    publisher.close()


def test_a_value_that_is_no_byte_becomes_a_dead_letter_and_holds_up_nobody(
    campaign: Campaign, store: Store, publisher: Publisher
) -> None:
    asked = parse_envelope(witnessed(7))
    answer(store, asked, Answer(Status.SAT, {"b": "(bvadd #x07 #x00)"}, engine="odd", verified_by="z3"))
    other = answer_witnessed(store)
    for _ in range(3):
        assert publisher.step() == 0
    assert [path.stem for path in results(campaign)] == [other]
    counts = store.counts()
    assert (counts.publications_due, counts.publications_dead) == (0, 1)
