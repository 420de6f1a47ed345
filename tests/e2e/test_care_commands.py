"""``prune`` and ``backup``: what a campaign can do without, and a copy of it while it is served."""

from __future__ import annotations

import errno
import io
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from smtspool.files import Directory, write_durable
from smtspool.service import Campaign, What, archive, backup, prune, pruning
from smtspool.store import Store
from tests.e2e.campaign import Place
from tests.service.support import equation, query, until


@pytest.fixture
def served(place: Place) -> Place:
    """Twenty answered queries and two refused files."""
    place.create(*[(f"{n}.smt2", equation(n)) for n in range(1, 21)], ("bad.smt2", "("), ("b.txt", ""))
    place.run("serve", place.root, "--once")
    return place


def test_a_dry_run_removes_nothing_and_says_what_would_go(served: Place) -> None:
    before = sorted(served.root.rglob("*"))
    told = served.documents(
        *("prune", served.root, "accepted", "rejected", "results", "attempts"),
        *("--older-than", "0s", "--dry-run", "--json"),
    )
    assert [(one["what"], one["number"]) for one in told] == [
        *(("accepted", 20), ("rejected", 4), ("results", 20), ("attempts", 20)),
    ]
    assert all(one["bytes"] > 0 for one in told)
    assert sorted(served.root.rglob("*")) == before
    assert "accepted: 0 files" in served.run("prune", served.root, "accepted", "--older-than", "1h").stdout
    assert "such as 30d" in served.run("prune", served.root, "accepted", "--older-than", "1", code=2).stderr


def test_what_was_pruned_comes_back_from_the_store(served: Place) -> None:
    answers = served.answers()
    results = {path.name: path.read_bytes() for path in (served.root / "out" / "results").iterdir()}
    served.run("prune", served.root, "accepted", "rejected", "results", "--older-than", "0s")
    for folder in ("spool/accepted", "spool/rejected", "out/results"):
        assert list((served.root / folder).iterdir()) == []
    assert served.answers() == answers
    served.run("republish", served.root, "--all")
    served.run("serve", served.root, "--once")
    assert {p.name: p.read_bytes() for p in (served.root / "out" / "results").iterdir()} == results
    assert served.run("fsck", served.root).stdout == "clean\n"


def test_attempts_are_forgotten_and_the_answers_stay(served: Place) -> None:
    with Store.view(served.root / "store") as store:
        before = {one.query_id: (one.number, one.answer.status, one.answer.model) for one in store.results()}
    served.run("prune", served.root, "attempts", "--older-than", "0s")
    with Store.view(served.root / "store") as store:
        found = list(store.results())
        after = {one.query_id: (one.number, one.answer.status, one.answer.model) for one in found}
    assert after == before
    assert not any(one.answer.attempts for one in found)
    assert served.run("fsck", served.root).stdout == "clean\n"


def test_archived_files_are_read_by_anybody_and_by_salvage(served: Place) -> None:
    accepted = {path.name: path.read_bytes() for path in (served.root / "spool" / "accepted").iterdir()}
    served.run("prune", served.root, "accepted", "rejected", "--archive", "--older-than", "0s")
    assert served.in_spool("accepted") == served.in_spool("rejected") == set()
    folder = served.root / "spool" / "archive"
    assert len(list(folder.iterdir())) == 2
    (packed,) = folder.glob("accepted-*.tar.xz")
    with tarfile.open(packed) as opened:
        assert sorted(opened.getnames()) == sorted(accepted)
    index = served.root / "store" / "index.sqlite3"
    index.write_bytes(b"\0" * index.stat().st_size)
    told = served.run("salvage", served.root, "rescued", code=5).stdout
    assert "submitted again: 20 files" in told
    incoming = served.folder / "rescued" / "spool" / "incoming"
    assert {path.name: path.read_bytes() for path in incoming.iterdir()} == accepted


def test_salvage_passes_over_a_damaged_archive_and_names_that_no_spool_has(served: Place) -> None:
    served.run("prune", served.root, "accepted", "--archive", "--older-than", "0s")
    folder = served.root / "spool" / "archive"
    (packed,) = folder.iterdir()
    packed.write_bytes(packed.read_bytes()[:100])
    with tarfile.open(folder / "accepted-0.tar.xz", "w:xz") as hostile:
        for name in ("../../escaped.smt2", ".hidden.smt2", "good\n.smt2", f"{'x' * 300}.smt2"):
            entry = tarfile.TarInfo(name)
            data = equation(77).encode()
            entry.size = len(data)
            hostile.addfile(entry, io.BytesIO(data))
    served.run("submit", served.root, served.file("late.smt2", equation(78)))
    index = served.root / "store" / "index.sqlite3"
    index.write_bytes(b"\0" * index.stat().st_size)
    (told,) = served.documents("salvage", served.root, "rescued", "--json", code=5)
    assert told["resubmitted"] == 2
    assert served.root.parent.joinpath("rescued", "spool", "incoming", "late.smt2").exists()
    assert [packed.name in one for one in told["unread"]] == [False, False, False, True]
    shown = served.run("salvage", served.root, "again", code=5).stdout
    assert shown.count("cannot be read: ") == 4
    assert "no name of a file in a spool" in shown


def test_killed_before_the_files_are_removed_an_archive_loses_nothing(
    served: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at a kill between the archive and the removal: the removal never happens."""
    campaign = Campaign.open(served.root)
    accepted = served.in_spool("accepted")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("smtspool.service.pruning._remove", killed)
        prune(campaign, What.ACCEPTED, 4e9, archive=True)
    assert served.in_spool("accepted") == accepted
    assert prune(campaign, What.ACCEPTED, 4e9, archive=True).number == 20
    assert served.in_spool("accepted") == set()
    with archive.Directory.open(campaign.spool / "archive") as archives:
        assert {name for name, _ in archive.archived(archives, "accepted", [])} == accepted


def test_a_result_that_is_published_again_while_others_are_removed_stays(
    served: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, old = Campaign.open(served.root), pruning._old
    again = min((served.root / "out" / "results").iterdir())

    def published(folder: Directory, before: float) -> Iterator[tuple[str, os.stat_result]]:
        found = list(old(folder, before))
        write_durable(folder, again.name, b"{}")
        return iter(found)

    monkeypatch.setattr(pruning, "_old", published)
    assert prune(campaign, What.RESULTS, 4e9).number == 19
    assert again.read_bytes() == b"{}"


def test_what_was_deleted_already_is_nothing_to_prune(served: Place) -> None:
    shutil.rmtree(served.root / "out")
    for name in ("accepted", "rejected"):
        shutil.rmtree(served.root / "spool" / name)
    told = served.run("prune", served.root, "accepted", "rejected", "results", "--older-than", "0s").stdout
    assert told.count(": 0 files") == 3


def test_a_sidecar_whose_file_was_removed_before_a_kill_is_removed_too(served: Place) -> None:
    rejected = served.root / "spool" / "rejected"
    (rejected / "bad.smt2").unlink()
    served.run("submit", served.root, served.file("more.smt2", equation(50)))
    served.run("serve", served.root, "--once")
    served.run("prune", served.root, "rejected", "--older-than", "0s")
    assert served.in_spool("rejected") == set()
    assert served.run("fsck", served.root).stdout == "clean\n"


def test_several_archives_are_made_of_very_many_files(served: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_FILES", 6)
    (served.root / "spool" / "accepted" / "link").symlink_to("nowhere")
    os.mkfifo(served.root / "spool" / "accepted" / "fifo")
    assert prune(Campaign.open(served.root), What.ACCEPTED, 4e9, archive=True).number == 20
    assert len(list((served.root / "spool" / "archive").iterdir())) == 4
    assert served.in_spool("accepted") == {"fifo", "link"}  # never touched


def test_a_backup_that_came_to_nothing_is_not_there(served: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As at a full disk behind the copy of the store, which alone fsck would call clean."""
    copy = backup.back_up_store

    def full(*folders: Path) -> None:
        copy(*folders)
        raise OSError(errno.ENOSPC, "No space left on device")

    before = set(served.folder.iterdir())
    with monkeypatch.context() as patched, pytest.raises(OSError, match="No space"):
        patched.setattr(backup, "back_up_store", full)
        backup.back_up(Campaign.open(served.root), served.folder / "copy")
    assert set(served.folder.iterdir()) == before
    served.run("backup", served.root, "copy")
    assert set(served.folder.iterdir()) == {*before, served.folder / "copy"}


def test_a_backup_of_a_served_campaign_is_clean_and_goes_on_by_itself(served: Place) -> None:
    service = served.start("serve", served.root)
    until(lambda: list((served.root / "store" / "owners").iterdir()), "a registered owner")
    (told,) = served.documents("backup", served.root, "copy", "--json")
    assert (told["findings"], told["files"] >= 24) == (0, True)
    service.terminate()
    service.wait()
    answers = served.answers()
    served.root = served.folder / "copy"
    assert served.run("fsck", served.root).stdout == "clean\n"
    late = served.file("late.smt2", equation(99))
    served.run("submit", served.root, late)
    served.run("republish", served.root, "--all")
    served.run("serve", served.root, "--once")
    assert served.answers() == answers | {query(99).id: "sat"}
    assert len(list((served.root / "out" / "results").iterdir())) == 21
    assert len(served.in_spool("rejected")) == 4


@pytest.mark.parametrize("command", ["backup", "salvage"])
def test_a_copy_has_all_settings_but_the_folder_of_the_store(place: Place, command: str) -> None:
    place.root.mkdir()
    store = f'  "store" = "{place.folder / "elsewhere"}" # a faster disk'
    toml = ['# "store" and the like', "jobs = 3", store, 'order = "bfs"']
    (place.root / "smtspool.toml").write_text("\n".join(toml))
    place.create(("a.smt2", equation(1)))
    told = place.run(command, place.root, "copy").stdout
    assert command == "salvage" or "without `store`" in told
    settings = place.documents("config", "copy", "--json")[0]["settings"]
    assert {name: settings[name]["value"] for name in ("jobs", "order", "store")} == {
        "jobs": 3, "order": "bfs", "store": "",
    }  # fmt: skip
    assert Campaign.open(place.folder / "copy").store == place.folder / "copy" / "store"


def test_a_backup_has_no_lock_files(served: Place) -> None:
    (served.root / "spool" / "telemetry" / ".ingest.lock").touch(mode=0o600)
    served.run("backup", served.root, "copy")
    assert not list((served.folder / "copy").rglob(".*.lock"))


def test_a_backup_is_never_written_over_anything(served: Place) -> None:
    assert "already" in served.run("backup", served.root, served.root, code=2).stderr


def test_what_is_leased_is_pending_in_a_backup(place: Place) -> None:
    campaign = place.create()
    with Store.open(campaign.store) as store, store.register() as owner:
        store.ingest([query(n) for n in range(5)])
        assert len(store.claim(owner.name, 60.0, 3)) == 3
        place.run("backup", place.root, "copy")
        assert store.counts().leased == 3
    with Store.view(Path(place.folder / "copy" / "store")) as copy:
        assert (copy.counts().pending, copy.counts().leased) == (5, 0)
