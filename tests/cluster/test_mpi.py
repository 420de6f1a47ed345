"""Qualification under the real mpiexec: real ranks, real messages, host names by UTS namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from smtspool import cluster
from smtspool.errors import ConfigError
from tests.cluster.launch import PROGRAM, Rank, run
from tests.e2e.campaign import COMMAND, Place

pytestmark = pytest.mark.slow

FAULTY = (sys.executable, PROGRAM)
# A deadline that no test waits for: what fails must fail long before it.
LONG = "600"
SOON_S = 60.0
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def qualified(place: Place, hosts: str, *, code: int = 0) -> dict[str, Any]:
    """What rank 0 prints."""
    shared = place.folder / "shared"
    shared.mkdir(exist_ok=True)
    ranks = [Rank("qualify", shared, "--json", host=f"host{name}" if name else "") for name in hosts]
    printed = run(place, *ranks, code=code).stdout
    assert os.listdir(shared) == []
    [line] = printed.splitlines()
    return json.loads(line)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("hosts", "rounds", "contention"), [("ab", 2, 2), ("abc", 3, 6), ("abab", 2, 6), ("abcd", 4, 12)]
)
def test_ranks_on_several_hosts_verify(place: Place, hosts: str, rounds: int, contention: int) -> None:
    report = qualified(place, hosts)
    assert (report["clean"], report["verified"], report["diagnostic"]) == (True, True, None)
    proof = report["proof"]
    assert [member["processor"] for member in proof["members"]] == [f"host{name}" for name in hosts]
    assert (proof["rounds"], proof["release_checks"]) == (rounds, rounds)
    assert (proof["contention_checks"], proof["identity_checks"]) == (contention, len(hosts))
    assert len(proof["transcript"]) == 64
    assert report["capability"]["proof"] == proof


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_on_one_host_are_clean_and_not_verified(place: Place, ranks: int) -> None:
    shared = place.folder / "shared"
    shared.mkdir()
    printed = run(place, *[Rank("qualify", shared, "--json")] * ranks, code=3).stdout
    report = json.loads(printed)
    assert (report["clean"], report["verified"]) == (True, False)
    assert len(report["proof"]["members"]) == ranks
    assert report["capability"]["proof"] is None


def test_without_mpiexec_there_is_one_rank(place: Place) -> None:
    done = place.run("qualify", place.folder, code=3)
    assert done.stdout.startswith("clean, not verified: all ranks are on one host")


@pytest.mark.parametrize("hosts", [("node", "node"), ("node", "b", "node")])
def test_machines_with_one_name_are_refused_before_anything_is_locked(
    place: Place, hosts: Sequence[str]
) -> None:
    shared, other = place.folder / "shared", place.folder / "boot_id"
    shared.mkdir()
    other.write_text(f"{uuid4()}\n")
    ranks = [Rank("qualify", shared, "--json", host=host) for host in hosts[:-1]]
    ranks += [Rank("qualify", shared, "--json", host=hosts[-1], mounted=[(other, BOOT_ID)])]
    report = json.loads(run(place, *ranks, code=65).stdout)
    assert (report["diagnostic"]["stage"], report["diagnostic"]["code"]) == ("membership", "refused")
    assert report["diagnostic"]["text"] == (
        f"rank 0 and rank {len(hosts) - 1} are on two machines with one name 'node': "
        "give each host its own name"
    )
    assert os.listdir(shared) == []


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_rank_that_cannot_even_say_its_rank_ends_all_with_65_long_before_the_deadline(
    place: Place, rank: int
) -> None:
    began = time.monotonic()
    words = ("Get_rank", str(rank), "qualify", place.folder, "--timeout", LONG)
    done = run(place, *[Rank(*words, host=f"host{name}", program=FAULTY) for name in "abc"], code=65)
    assert time.monotonic() - began < SOON_S
    assert "cluster lock qualification raised: injected communicator adapter failure" in done.stdout


@pytest.mark.parametrize("call", ["Get_size", "isend", "receive"])
def test_any_failing_call_of_one_rank_ends_all_with_65(place: Place, call: str) -> None:
    words = (call, "1", "qualify", place.folder, "--timeout", LONG)
    done = run(place, *[Rank(*words, host=f"host{name}", program=FAULTY) for name in "ab"], code=65)
    assert "injected communicator adapter failure" in done.stdout


def test_a_directory_that_one_host_has_not_is_everybodys_reason(place: Place) -> None:
    shared = place.folder / "shared"
    shared.mkdir()
    ranks = [Rank("qualify", shared, host="hosta"), Rank("qualify", shared / "gone", host="hostb")]
    done = run(place, *ranks, code=65)
    assert done.stdout.startswith("refused: rank 1: the shared directory cannot be probed")
    assert "no such directory" in done.stdout


def test_two_different_directories_are_refused(place: Place) -> None:
    ranks = []
    for name in "ab":
        (place.folder / name).mkdir()
        ranks.append(Rank("qualify", place.folder / name, "--json", host=f"host{name}"))
    report = json.loads(run(place, *ranks, code=65).stdout)
    assert report["diagnostic"]["stage"] == "anchor"
    assert report["diagnostic"]["code"] == "refused"


def test_no_descriptor_and_no_file_is_left_by_any_attempt(place: Place) -> None:
    shared = place.folder / "shared"
    shared.mkdir()
    words = ("descriptors", "0", shared)
    run(place, *[Rank(*words, host=f"host{name}", program=FAULTY) for name in "abc"])
    for rank in range(3):
        told = json.loads((place.folder / f"shared.{rank}").read_text())
        assert told == [[True, 0], [False, 0], [True, 0]]
    assert os.listdir(shared) == []


def test_a_message_longer_than_its_reader_accepts_is_refused_and_gone(place: Place) -> None:
    program = """
import time
from smtspool.cluster import OversizeMessage, world
comm = world()
sent = [comm.isend(frame, 0, 5) for frame in (b"x" * 300_000, b"short")]
refused, frame = [], None
deadline = time.monotonic() + 60
while frame is None and time.monotonic() < deadline:
    try:
        frame = comm.receive(0, 5, 1000)
    except OversizeMessage as error:
        refused.append(str(error))
print(refused, frame, all(one.Test() for one in sent))
"""
    done = run(place, Rank("-c", program, program=(sys.executable,)))
    assert done.stdout == "['a message of 300000 bytes; at most 1000 are read'] b'short' True\n"


@pytest.mark.parametrize(("end", "code"), [("sys.exit(9)", 9), ("raise LookupError('lost')", 70)])
def test_a_rank_that_leaves_by_an_exception_ends_the_job(place: Place, end: str, code: int) -> None:
    program = f"""
import sys, time
from smtspool.cluster import world
with world() as comm:
    if comm.Get_rank() == 1:
        {end}
    time.sleep(600)
"""
    done = run(place, *[Rank("-c", program, program=(sys.executable,))] * 2, code=code)
    assert f"smtspool: {'lost' if code == 70 else 9}" in done.stderr


def test_without_mpi_the_command_says_what_to_install(place: Place) -> None:
    hidden = "import sys; sys.modules['mpi4py'] = None; from smtspool.cli import main; main()"
    command = [sys.executable, "-c", hidden, "qualify", str(place.folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "pip install 'smtspool[mpi]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_mpi_is_a_setting_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ConfigError, match="there is no MPI here"):
        cluster.world()


@pytest.mark.parametrize("name", ["PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"])
def test_a_job_is_known_by_its_environment(name: str) -> None:
    assert cluster.started_by_mpi({name: "0"})
    assert not cluster.started_by_mpi({"PATH": "/bin"})


def test_mpiexec_comes_with_the_environment() -> None:
    assert Path(COMMAND).with_name("mpiexec").exists()
