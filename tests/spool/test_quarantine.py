from __future__ import annotations

import errno
import hashlib
import logging
import os
import socket
from pathlib import Path

import pytest

from smtspool.actions import Step, observed_by
from smtspool.errors import AdmissionError, InfrastructureError, Reason
from smtspool.files import Identity
from smtspool.query import parse_file
from smtspool.spool import Rejection, Spool, admission
from smtspool.spool.names import free_names, quarantine_names
from smtspool.spool.quarantine import TOLD_PER_MINUTE, Refusals
from tests.spool.support import (
    BROKEN,
    Ledger,
    assert_in_order,
    envelope,
    files,
    folder,
    publish,
    scan,
    sidecar,
)


def test_a_sidecar_says_what_why_and_when(root: Path, spool: Spool, ledger: Ledger) -> None:
    publish(root, "b.json", BROKEN)
    identity = Identity.of((root / "incoming" / "b.json").stat())
    scan(spool, ledger, wall=lambda: 1234.5)
    document = sidecar(root, "b.json")
    assert document.pop("message")
    assert document == {
        "schema": "smtspool-rejection-v1",
        "name": "b.json",
        "reason": "json",
        "place": {"line": 1, "column": 12, "near": '{"schema":'},
        "sha256": hashlib.sha256(BROKEN).hexdigest(),
        "identity": identity._asdict(),
        "time": 1234.5,
    }


def test_each_refusal_is_told_with_its_place_until_there_are_too_many(
    root: Path, spool: Spool, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(TOLD_PER_MINUTE + 10):
        publish(root, f"{number:02}.json", BROKEN)
    scan(spool, ledger)
    told = [record.getMessage() for record in caplog.records]
    assert told[0].startswith("rejected (json): 00.json:1:12: ")
    assert len(told) == TOLD_PER_MINUTE + 1
    assert told[-1].endswith(f"see the sidecars, such as {TOLD_PER_MINUTE}.json.error")


def test_after_a_minute_refusals_are_told_again(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    refusals = Refusals(clock=lambda: now[0])
    bad = Rejection(
        "a", Identity(0, 0, 0, 0, 0, 0), AdmissionError(Reason.SUFFIX, "neither json nor smt2"), None
    )
    for _ in range(TOLD_PER_MINUTE + 5):
        refusals.tell(bad, "a")
    now[0] = 60.0
    refusals.tell(bad, "a")
    assert len(caplog.records) == TOLD_PER_MINUTE + 2
    assert caplog.records[-1].getMessage() == "rejected (suffix): a: neither json nor smt2"


def test_hostile_kinds_are_moved_as_they_are(root: Path, spool: Spool, ledger: Ledger) -> None:
    incoming = root / "incoming"
    (incoming / "directory.json").mkdir()
    (incoming / "directory.json" / "inner").write_bytes(b"kept")
    os.mkfifo(incoming / "fifo.json")
    (incoming / "link.json").symlink_to("/etc/passwd")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(incoming)  # the path of a socket is short
        try:
            listener.bind("socket.json")
        finally:
            os.chdir(here)
    publish(root, "good.json", envelope(1))

    report = scan(spool, ledger)

    assert (report.accepted, report.rejected) == (1, 4)
    rejected = root / "rejected"
    assert (rejected / "directory.json" / "inner").read_bytes() == b"kept"
    assert (rejected / "fifo.json").is_fifo()
    assert (rejected / "socket.json").is_socket()
    assert (rejected / "link.json").readlink() == Path("/etc/passwd")
    assert_in_order(root)


def test_a_name_rejected_again_gets_one_fresh_suffix_for_file_and_sidecar(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    contents = [BROKEN + bytes([65 + number]) for number in range(5)]
    for content in contents:
        publish(root, "b.json", content)
        scan(spool, ledger)
    rejected = {name for name in files(root)["rejected"] if not name.endswith(".error")}
    assert len(rejected) == 5
    for name in rejected:
        content = (root / "rejected" / name).read_bytes()
        assert sidecar(root, name)["sha256"] == hashlib.sha256(content).hexdigest()
        assert sidecar(root, name)["name"] == "b.json"
    assert_in_order(root)


def test_a_file_called_like_a_sidecar_never_becomes_one(root: Path, spool: Spool, ledger: Ledger) -> None:
    publish(root, "b.json", BROKEN)
    publish(root, "b.json.error", b"not a sidecar")
    publish(root, "c.json.error", b"alone")
    for _ in range(2):
        scan(spool, ledger)
    contents = {(root / "rejected" / name).read_bytes() for name in files(root)["rejected"]}
    assert {b"not a sidecar", b"alone", BROKEN} <= contents
    assert sidecar(root, "b.json")["name"] == "b.json"
    assert_in_order(root)


def test_a_strangers_error_file_in_rejected_is_neither_overwritten_nor_removed(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    (root / "rejected" / "b.json.error").write_bytes(b"my notes")
    publish(root, "b.json", BROKEN)
    scan(spool, ledger)
    assert (root / "rejected" / "b.json.error").read_bytes() == b"my notes"
    assert len(files(root)["rejected"]) == 3


@pytest.mark.parametrize(
    "name",
    [
        b"x" * 250 + b".json",
        b"\xff" * 250 + b".json",
        b"x" * 255,
        b"a." + b"x" * 253,
        "\N{GREEK SMALL LETTER PI}".encode() * 120 + b".error",
        b"new\nline\t\x01.json",
        b"-rf",
        b"~",
        b"a..",
    ],
)
def test_no_name_is_too_strange_to_be_moved_twice(
    root: Path, spool: Spool, ledger: Ledger, name: bytes
) -> None:
    good = os.fsdecode(name).endswith(".json")
    for number in range(3):
        for content in (envelope(number), BROKEN) if good else (BROKEN,):
            Path(os.fsdecode(os.fsencode(root) + b"/incoming/" + name)).write_bytes(content)
            scan(spool, ledger)
    rejected = [entry for entry in folder(root, "rejected") if not entry.endswith(".error")]
    assert len(rejected) == 3
    assert all(os.fsencode(sidecar(root, entry)["name"]) == name for entry in rejected)
    assert len(folder(root, "accepted")) == (3 if good else 0)
    assert_in_order(root)


def test_every_made_up_name_fits_and_is_fresh() -> None:
    for limit in (255, 143):
        longest = ("x" * limit, "x" * (limit - 5) + ".json", "\udcff" * limit, "a." + "b" * (limit - 2))
        for name in ("a.json", *longest):
            for make in (free_names, quarantine_names):
                made = list(make(name, lambda limit=limit: limit))
                room = limit - len(".error") if make is quarantine_names else limit
                assert len(set(made)) == len(made) > 1
                assert all(len(os.fsencode(entry)) <= room for entry in made)
                assert not any(entry.endswith(".error") for entry in made)


def test_a_failure_of_the_decoder_itself_is_quarantined_as_such(
    root: Path, spool: Spool, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defective(name: str, *rest: object) -> object:
        if name == "b.json":
            raise RecursionError("too deep")
        return parse_file(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(admission, "parse_file", defective)
    publish(root, "b.json", envelope(1))
    publish(root, "c.json", envelope(2))
    report = scan(spool, ledger)
    assert (report.accepted, report.rejected) == (1, 1)
    assert sidecar(root, "b.json")["reason"] == "internal"
    assert "RecursionError: too deep" in sidecar(root, "b.json")["message"]


def test_an_operator_who_moves_a_file_back_gets_it_judged_anew_without_remains(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    publish(root, "b.json", BROKEN)
    scan(spool, ledger)
    (root / "rejected" / "b.json").rename(root / "incoming" / "b.json")
    scan(spool, ledger)
    assert files(root)["rejected"] == {"b.json", "b.json.error"}
    (root / "rejected" / "b.json").unlink()
    scan(spool, ledger)
    assert files(root)["rejected"] == set()


def test_an_orderly_quarantine_is_not_listed_by_every_scan(root: Path, spool: Spool, ledger: Ledger) -> None:
    publish(root, "b.json", BROKEN)
    scan(spool, ledger)
    settled = (root / "rejected").stat()
    scan(spool, ledger, wall=lambda: settled.st_mtime + 3600)
    # An orphan made without a trace in the directory's mtime shows whether anybody looks.
    (root / "rejected" / "b.json").unlink()
    os.utime(root / "rejected", ns=(settled.st_atime_ns, settled.st_mtime_ns))
    scan(spool, ledger, wall=lambda: settled.st_mtime + 3600)
    assert files(root)["rejected"] == {"b.json.error"}
    (root / "rejected" / "trace").touch()
    scan(spool, ledger, wall=lambda: settled.st_mtime + 3600)
    assert files(root)["rejected"] == {"trace"}


def test_a_move_that_fails_keeps_the_file_and_the_next_scan_completes_the_sidecar(
    root: Path, spool: Spool, ledger: Ledger
) -> None:
    publish(root, "b.json", BROKEN)

    class DiskFails:
        def before(self, step: Step) -> None:
            if step.name == "Move":
                raise OSError(errno.EIO, "the disk fails")

        def after(self, step: Step) -> None: ...

    with observed_by(DiskFails()), pytest.raises(InfrastructureError):
        scan(spool, ledger)
    assert files(root)["incoming"] == {"b.json"}
    assert files(root)["rejected"] == {"b.json.error"}
    scan(spool, ledger)
    assert files(root)["rejected"] == {"b.json", "b.json.error"}
    assert_in_order(root)


def test_a_name_that_is_no_text_is_logged_as_text(
    root: Path, spool: Spool, ledger: Ledger, caplog: pytest.LogCaptureFixture
) -> None:
    publish(root, "bad\udcff.json", BROKEN)
    publish(root, "noted\udcff.smt2", b"(set-option :other 1)(check-sat)")
    with caplog.at_level(logging.DEBUG, "smtspool"):
        scan(spool, ledger)
    messages = [record.getMessage() for record in caplog.records]
    assert any("bad\\udcff.json:1:12: " in message for message in messages)
    assert any("noted\\udcff.smt2: " in message for message in messages)
