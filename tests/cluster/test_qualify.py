"""Qualification as a whole: ranks as threads, real files, real locks (F329, F351, F352)."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from smtspool.actions import Step, observed_by
from smtspool.cluster import (
    Capability,
    Code,
    LockFiles,
    Member,
    Observation,
    Operation,
    Proof,
    QualificationResult,
    Requirements,
    Stage,
    probe_directory,
    require_complete,
    transcript_of,
)
from smtspool.files import Directory
from tests.cluster.bus import Bus, BusCommunicator
from tests.cluster.fleet import EPOCH, attempt_all, qualify_all, qualify_one


def counts(result: QualificationResult) -> tuple[int, int, int, int]:
    proof = result.proof
    return proof.rounds, proof.contention_checks, proof.release_checks, proof.identity_checks


def failed_at(result: QualificationResult) -> Stage | None:
    return None if result.diagnostic is None else result.diagnostic.stage


# -- verified, clean ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "representatives", "expected"),
    [
        ("ab", (0, 1), (2, 2, 2, 2)),
        ("aba", (0, 1), (2, 4, 2, 3)),
        ("aabb", (0, 2), (2, 6, 2, 4)),
        ("abc", (0, 1, 2), (3, 6, 3, 3)),
        ("abcd", (0, 1, 2, 3), (4, 12, 4, 4)),
    ],
)
def test_ranks_on_several_hosts_verify_with_exact_counts_and_one_transcript(
    probed: Capability, hosts: str, representatives: tuple[int, ...], expected: tuple[int, int, int, int]
) -> None:
    results = qualify_all(probed, hosts)
    for rank, result in enumerate(results):
        assert (result.clean, result.verified, result.error, result.rank) == (True, True, "", rank)
        assert counts(result) == expected
        assert result.proof.representatives == representatives
        assert result.proof.members == tuple(Member(*pair) for pair in enumerate(hosts))
        assert result.capability == replace(probed, proof=result.proof)
        assert result.elapsed > 0
    assert len({(result.epoch, result.proof) for result in results}) == 1
    bare = replace(results[0].proof, transcript="")
    assert results[0].proof.transcript == transcript_of(results[0].epoch, 0, bare)


@pytest.mark.parametrize("hosts", ["a", "aa", "aaa"])
def test_ranks_on_one_host_are_clean_and_not_verified_and_touch_no_lock(
    probed: Capability, hosts: str
) -> None:
    class Untouched(LockFiles):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(f"{name} was called")

    for result in qualify_all(probed, hosts, files=Untouched()):
        assert (result.clean, result.verified, counts(result)) == (True, False, (0, 0, 0, 0))
        assert result.capability == probed
        assert result.proof.representatives == (0,)


def test_each_startup_has_an_epoch_of_its_own_and_a_renewal_keeps_it(probed: Capability) -> None:
    first, second = (qualify_all(probed, "ab") for _ in range(2))
    assert first[0].epoch == first[1].epoch != second[0].epoch
    renewed = qualify_all(probed, "ab", epoch=first[0].epoch, generation=1)
    assert renewed[0].verified
    assert renewed[0].epoch == first[0].epoch
    assert renewed[0].proof.transcript != first[0].proof.transcript


def test_a_proven_capability_goes_in_and_only_a_new_proof_comes_out(probed: Capability) -> None:
    [proven, _] = qualify_all(probed, "ab", epoch=EPOCH)
    assert proven.capability is not None and proven.capability.proof is not None
    for result in qualify_all(proven.capability, "aa", epoch=EPOCH, generation=1):
        assert (result.clean, result.verified) == (True, False)
        assert result.capability == probed  # not verified now, so nothing says so any more
    for result in qualify_all(
        proven.capability, "ab", epoch=EPOCH, generation=1, each=[{}, {"error": "broken"}]
    ):
        assert not result.clean
        assert result.capability == probed


def test_a_rank_that_has_committed_its_transcript_cannot_fail_any_more(probed: Capability) -> None:
    committed = threading.Event()

    class Watch:
        def before(self, step: Step) -> None:
            pass

        def after(self, step: Step) -> None:
            if step.name == "CommitTranscript" and step.params["rank"] == 0:
                committed.set()

    def clock() -> float:
        if committed.is_set():
            raise LookupError("no clock any more")
        return time.monotonic()

    with observed_by(Watch()):
        first, second = qualify_all(probed, "ab", each=[{"clock": clock}, {}])
    assert committed.is_set()
    assert (first.verified, second.verified) == (True, True), first.error


def test_the_steps_of_a_rank_are_those_of_the_model(probed: Capability) -> None:
    steps: list[Step] = []

    class Recorder:
        def before(self, step: Step) -> None: ...

        def after(self, step: Step) -> None:
            if step.params["rank"] == 1:
                steps.append(step)

    with observed_by(Recorder()):
        qualify_all(probed, "ab")
    phases = [step.params["phase"] for step in steps if step.name == "Exchange"]
    a_round = ["open", "held", "excluded", "released", "reacquired"]
    before, after = ["epoch", "membership", "root", "prepare", "anchor"], ["identity", "transcript", "commit"]
    assert phases == [*before, *a_round, *a_round, *after]
    assert [step.params["phase"] for step in steps if step.name == "Enter"] == phases
    assert {step.outcome for step in steps if step.name == "Exchange"} == {"Agreed"}
    others = [(step.name, step.outcome) for step in steps if step.name not in ("Enter", "Exchange")]
    assert others == [
        ("Contend", "Blocked"),
        ("Release", None),
        ("Reacquire", "Acquired"),
        ("Hold", "Acquired"),
        ("Release", None),
        ("CloseIdentity", "Same"),
        ("CommitTranscript", None),
    ]


# -- locks that do not hold --------------------------------------------------------------------------------


class GivesToAll(LockFiles):
    """Locks of a mount that does not share them: every host gets its own."""

    def try_lock(self, fd: int, *, shared: bool = False) -> bool:
        return True


class NeverReleases(LockFiles):
    def __init__(self) -> None:
        self._kept: list[int] = []

    def release(self, fd: int) -> None:
        """Like a server that has not heard of it: the lock stays until the test ends."""
        self._kept.append(os.dup(fd))
        os.close(fd)

    def end(self) -> None:
        for fd in self._kept:
            os.close(fd)


def test_a_lock_that_is_given_twice_fails_everywhere_at_contention(probed: Capability) -> None:
    for result in qualify_all(probed, "ab", files=GivesToAll()):
        assert (result.clean, result.verified, failed_at(result)) == (False, False, Stage.EXCLUDED)
        assert result.error.startswith("rank 1: round 0: the lock held on another host was given to this one")
        assert counts(result) == (0, 0, 0, 0)
        assert result.proof.transcript == ""


def test_one_host_with_locks_of_its_own_is_enough_to_fail_all(probed: Capability) -> None:
    for result in qualify_all(probed, "abc", each=[{}, {}, {"files": GivesToAll()}]):
        assert failed_at(result) is Stage.EXCLUDED
        assert "rank 2" in result.error


def test_a_release_that_others_do_not_see_fails_everywhere(probed: Capability) -> None:
    files = NeverReleases()
    try:
        for result in qualify_all(probed, "ab", files=files):
            assert failed_at(result) is Stage.REACQUIRED
            assert "still refused after its holder released it" in result.error
    finally:
        files.end()


def test_a_lock_that_breaks_later_fails_that_generation_only(probed: Capability) -> None:
    assert qualify_all(probed, "ab", epoch=EPOCH)[0].verified
    broken = qualify_all(probed, "ab", epoch=EPOCH, generation=1, files=GivesToAll())
    assert not broken[0].clean
    assert qualify_all(probed, "ab", epoch=EPOCH, generation=2)[0].verified


def test_counts_of_a_failure_are_those_of_the_rounds_that_ended(probed: Capability) -> None:
    class SecondRound(LockFiles):
        held = 0

        def try_lock(self, fd: int, *, shared: bool = False) -> bool:
            taken = super().try_lock(fd, shared=shared)
            self.held += taken and not shared
            return taken or self.held > 1

    files = SecondRound()
    for result in qualify_all(probed, "ab", files=files):
        assert (failed_at(result), counts(result)) == (Stage.EXCLUDED, (1, 1, 1, 0))
        assert result.proof.transcript == ""


# -- another directory, another file -----------------------------------------------------------------------


def test_hosts_with_different_directories_fail(probed: Capability, tmp_path: Path) -> None:
    other = probe_directory(tmp_path)
    for result in qualify_all(probed, "ab", each=[{}, {"capability": other, "root": tmp_path}]):
        assert failed_at(result) is Stage.ANCHOR
        assert counts(result) == (0, 0, 0, 0)


def test_a_lock_file_that_is_replaced_by_its_like_fails(probed: Capability, shared: Path) -> None:
    class Replaces(LockFiles):
        def open_root(self, path: Path) -> Directory:
            root = super().open_root(path)
            for name in root.names():  # at the identity closure: it is there by then
                content = (path / name).read_bytes()
                (path / name).unlink()
                (path / name).write_bytes(content)
            return root

    for result in qualify_all(probed, "ab", each=[{}, {"files": Replaces()}]):
        assert failed_at(result) is Stage.IDENTITY
        assert counts(result) == (2, 2, 2, 0)
        assert "replaced" in result.error


def test_a_taken_name_fails_before_any_round_and_is_left_alone(probed: Capability, shared: Path) -> None:
    token = bytes.fromhex(EPOCH) + (0).to_bytes(8) + (1).to_bytes(8)
    text = hashlib.sha256(b"smtspool-cluster-lock-v1\0" + token).hexdigest()
    foreign = shared / f".smtspool-lock-{text[:32]}"
    foreign.write_text("somebody else's")
    try:
        for result in qualify_all(probed, "ab", epoch=EPOCH):
            assert failed_at(result) is Stage.PREPARE
            assert counts(result) == (0, 0, 0, 0)
        assert foreign.read_text() == "somebody else's"
    finally:
        foreign.unlink()


def test_what_killed_attempts_left_long_ago_is_removed(probed: Capability, shared: Path) -> None:
    old, young, other = (shared / name for name in (".smtspool-lock-0", ".smtspool-lock-1", ".smtspool"))
    for path in (old, young, other):
        path.write_text("left")
    for path in (old, other):
        os.utime(path, (0, time.time() - 5 * 3600))
    assert qualify_all(probed, "ab")[0].verified
    assert sorted(os.listdir(shared)) == [other.name, young.name]
    for path in (young, other):
        path.unlink()


def test_a_directory_on_another_file_system_than_probed_fails(probed: Capability) -> None:
    moved = replace(probed, device=probed.device + 1)
    for result in qualify_all(probed, "ab", each=[{}, {"capability": moved}]):
        assert failed_at(result) is Stage.ROOT
        assert "another file system" in result.error


# -- what ranks bring along --------------------------------------------------------------------------------


WITHOUT_LINK = Requirements("no-link", frozenset(Operation) - {Operation.HARD_LINK})


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"error": "the probe failed"}, "rank 1: the probe failed"),
        ({"error": "\n"}, "rank 1: it cannot say why"),
        ({"error": 7}, "rank 1: the local error is no text"),
        ({"capability": None}, "rank 1: the shared directory was not probed"),
        ({"capability": "yes"}, "rank 1: the shared directory was not probed"),
        ({"generation": True}, "rank 1: the generation is no whole number of 63 bits"),
        ({"processor": ""}, "rank 1: the name of this host is empty or unusable"),
        ({"processor": "a\0b"}, "rank 1: the name of this host is empty or unusable"),
        ({"processor": "\ud800"}, "rank 1: the name of this host is empty or unusable"),
        ({"processor": "ü" * 128}, "rank 1: the name of this host is empty or unusable"),
        ({"boot": "A" * 36}, "rank 1: the boot id of this machine is unusable"),
        ({"boot": None}, "rank 1: the boot id of this machine is unusable"),
        ({"root": Path("/")}, "rank 1: the probe was of "),
    ],
)
def test_a_rank_that_cannot_take_part_joins_to_say_so_and_all_fail(
    probed: Capability, bad: dict[str, Any], why: str
) -> None:
    for result in qualify_all(probed, "abc", each=[{}, bad, {}]):
        assert (result.clean, failed_at(result)) == (False, Stage.MEMBERSHIP)
        assert result.error.startswith(why)
        assert result.proof == Proof()


ONE, OTHER = str(UUID(int=1)), str(UUID(int=2))


@pytest.mark.parametrize(
    ("hosts", "boots", "twins"),
    [
        (("node", "node"), (ONE, OTHER), "rank 0 and rank 1"),
        (("node", "b", "node"), (ONE, ONE, OTHER), "rank 0 and rank 2"),
        (("a", "node", "node", "node"), (OTHER, "", ONE, OTHER), "rank 2 and rank 3"),
    ],
)
def test_two_machines_with_one_name_are_refused_by_every_rank(
    probed: Capability, hosts: Sequence[str], boots: Sequence[str], twins: str
) -> None:
    for result in qualify_all(probed, hosts, each=[{"boot": boot} for boot in boots]):
        assert result.diagnostic is not None
        assert (result.diagnostic.code, failed_at(result)) == (Code.REFUSED, Stage.MEMBERSHIP)
        assert (
            result.error == f"{twins} are on two machines with one name 'node': give each host its own name"
        )
        assert result.proof == Proof()


def test_two_machines_with_one_long_name_are_told_what_to_do(probed: Capability) -> None:
    for result in qualify_all(probed, ["\x01" * 255] * 2, each=[{"boot": ONE}, {"boot": OTHER}]):
        assert result.error.endswith("give each host its own name")


@pytest.mark.parametrize("boot", [ONE, ""])
def test_names_under_one_kernel_are_hosts_and_the_boot_id_is_no_part_of_the_proof(
    probed: Capability, boot: str
) -> None:
    for result in qualify_all(probed, "aba", epoch=EPOCH, each=[{"boot": boot}] * 3):
        assert result.verified
        plain = Proof(tuple(Member(*pair) for pair in enumerate("aba")), (0, 1), 2, 4, 2, 3)
        assert result.proof == replace(plain, transcript=transcript_of(EPOCH, 0, plain))


def test_several_machines_with_names_of_their_own_verify(probed: Capability) -> None:
    assert qualify_all(probed, "ab", each=[{"boot": ONE}, {"boot": OTHER}])[0].verified


@pytest.mark.parametrize("boots", [(ONE, ONE), ("", ONE), (ONE, ""), ("", "")])
def test_one_boot_id_or_one_that_cannot_be_read_tells_no_two_ranks_apart(
    probed: Capability, boots: Sequence[str]
) -> None:
    for result in qualify_all(probed, "aa", each=[{"boot": boot} for boot in boots]):
        assert (result.clean, result.verified) == (True, False)


def test_an_incomplete_probe_is_not_enough(probed: Capability, shared: Path) -> None:
    partial = probe_directory(shared, requirements=WITHOUT_LINK)
    for result in qualify_all(probed, "ab", each=[{"capability": partial}, {}]):
        assert result.error == "rank 0: the probe did not try everything that a shared directory needs"


@pytest.mark.parametrize("generation", [-1, True, 2**63, 1.5])
def test_a_generation_that_is_none_fails_all_and_becomes_zero(probed: Capability, generation: Any) -> None:
    for result in qualify_all(probed, "ab", generation=generation):
        assert (result.clean, type(result.generation), result.generation) == (False, int, 0)


def test_an_epoch_that_is_none_fails_all(probed: Capability) -> None:
    for result in qualify_all(probed, "ab", epoch="E" * 64):
        assert result.error == "rank 0: the epoch is not 64 hexadecimal digits"


@pytest.mark.parametrize("timeout", ["soon", float("nan"), None])
def test_a_timeout_that_is_none_is_the_default(probed: Capability, timeout: Any) -> None:
    assert qualify_all(probed, "ab", timeout=timeout)[0].verified


# -- missing, slow and stale -------------------------------------------------------------------------------


def test_a_missing_rank_fails_the_others_at_the_deadline(probed: Capability, shared: Path) -> None:
    now = [50.0]
    [comm, _] = Bus(2).communicators()

    def pause(seconds: float) -> None:
        assert 0 < seconds <= 0.025
        now[0] += seconds

    seen = Observation(probed, "a")
    result = qualify_one(comm, shared, seen, timeout=0.025, clock=lambda: now[0], pause=pause)
    assert result.diagnostic is not None
    assert (result.diagnostic.code, result.diagnostic.stage) == (Code.EXPIRED, Stage.EPOCH)
    assert result.error == "no record from rank 1 within the time allowed"
    assert result.elapsed == pytest.approx(0.025)


def test_ranks_of_different_generations_do_not_meet(probed: Capability) -> None:
    results = qualify_all(probed, "ab", epoch=EPOCH, timeout=0.2, each=[{"generation": 1}, {"generation": 2}])
    assert not any(result.clean for result in results)
    assert "generation" in results[0].error or "no record" in results[0].error


def test_what_a_failed_attempt_left_is_dropped_and_counted_by_the_next(
    probed: Capability, shared: Path
) -> None:
    bus = Bus(2)
    comms = bus.communicators()
    # Both wait in vain for an answer of the other: one for rank 0, one as rank 0 whose answers nobody took.
    lonely = qualify_one(comms[1], shared, Observation(probed, "b"), epoch=EPOCH, timeout=0.02, number=1)
    assert not lonely.clean
    lonely = qualify_one(comms[0], shared, Observation(probed, "a"), epoch="f" * 64, timeout=0.02, number=1)
    assert lonely.stale == 1  # of another epoch
    lonely = qualify_one(comms[1], shared, Observation(probed, "b"), epoch=EPOCH, timeout=0.02, number=2)
    results = qualify_all(probed, "ab", comms=comms, epoch=EPOCH, number=3)
    assert [result.verified for result in results] == [True, True]
    assert [result.stale for result in results] == [1, 0]
    assert bus.waiting() == 0


def test_one_deadline_is_announced_for_all_that_follows_the_meeting(probed: Capability) -> None:
    """Rank 1 allows 5 s to meet; 10 s later, by its clock, it still has the 30 s that rank 0 announced."""
    ahead = [0.0]

    class Slow(BusCommunicator):
        def isend(self, frame: bytes, dest: int, tag: int) -> Any:
            if b'"anchor"' in frame:
                ahead[0] = 10.0
            return super().isend(frame, dest, tag)

    def late() -> float:
        return time.monotonic() + ahead[0]

    bus = Bus(2)
    comms = [BusCommunicator(bus, 0), Slow(bus, 1)]
    each = [{"timeout": 30.0}, {"timeout": 5.0, "clock": late}]
    results = qualify_all(probed, "ab", comms=comms, each=each)
    assert all(result.verified for result in results)
    assert ahead[0] == 10.0


# -- the transcript ----------------------------------------------------------------------------------------


class Altered(BusCommunicator):
    """A rank that says something else in one phase."""

    def __init__(self, bus: Bus, rank: int, change: Callable[[bytes], bytes]) -> None:
        super().__init__(bus, rank)
        self._change = change

    def isend(self, frame: bytes, dest: int, tag: int) -> Any:
        return super().isend(self._change(frame), dest, tag)


def test_one_other_transcript_fails_all(probed: Capability) -> None:
    def other(frame: bytes) -> bytes:
        key = b'"transcript": "'
        at = frame.find(key) + len(key)
        return frame if at < len(key) else frame[:at] + b"0" * 64 + frame[at + 64 :]

    bus = Bus(3)
    comms = [BusCommunicator(bus, 0), Altered(bus, 1, other), BusCommunicator(bus, 2)]
    for result in qualify_all(probed, "abc", comms=comms):
        assert (result.clean, result.verified, failed_at(result)) == (False, False, Stage.COMMIT)
        assert counts(result) == (3, 6, 3, 3)
        assert result.proof.transcript == ""
        assert result.capability == probed


def test_a_rank_is_verified_only_after_it_heard_that_all_are(probed: Capability) -> None:
    """Rank 1 dies between the two steps: rank 0 has seen all transcripts, and has no proof."""

    class Dies(BusCommunicator):
        def isend(self, frame: bytes, dest: int, tag: int) -> Any:
            if b'"commit"' in frame:
                raise KeyboardInterrupt
            return super().isend(frame, dest, tag)

    bus = Bus(2)
    comms = [BusCommunicator(bus, 0), Dies(bus, 1)]
    first, second = attempt_all(probed, "ab", comms=comms, timeout=0.5)
    assert isinstance(second, KeyboardInterrupt)
    assert isinstance(first, QualificationResult)
    assert (first.verified, failed_at(first), first.proof.transcript) == (False, Stage.COMMIT, "")


BASE = Proof((Member(0, "a"), Member(1, "b")), (0, 1), 2, 2, 2, 2)


def test_every_input_of_the_transcript_changes_it() -> None:
    transcripts = {
        transcript_of(EPOCH, 1, BASE),
        transcript_of("f" * 64, 1, BASE),
        transcript_of(EPOCH, 2, BASE),
        transcript_of(EPOCH, 1, replace(BASE, members=(Member(0, "a"), Member(2, "b")))),
        transcript_of(EPOCH, 1, replace(BASE, members=(Member(0, "a"), Member(1, "c")))),
        transcript_of(EPOCH, 1, replace(BASE, representatives=(1, 0))),
        *(
            transcript_of(EPOCH, 1, replace(BASE, **{name: 3}))
            for name in ("rounds", "contention_checks", "release_checks", "identity_checks")
        ),
    }
    assert len(transcripts) == 10


@pytest.mark.parametrize(
    ("epoch", "generation", "proof"),
    [
        ("e" * 63, 1, BASE),
        (EPOCH, True, BASE),
        (EPOCH, -1, BASE),
        (EPOCH, 1, replace(BASE, rounds=True)),
        (EPOCH, 1, replace(BASE, rounds=2**63)),
        (EPOCH, 1, replace(BASE, members=(Member(True, "a"),))),
        (EPOCH, 1, replace(BASE, members=(Member(0, "\ud800"),))),
    ],
)
def test_an_inexact_input_has_no_transcript(epoch: str, generation: int, proof: Proof) -> None:
    with pytest.raises(ValueError):
        transcript_of(epoch, generation, proof)


def test_a_whole_proof_is_told_from_one_with_a_part_missing() -> None:
    require_complete(BASE)
    for broken in (
        Proof(),
        replace(BASE, rounds=1),
        replace(BASE, contention_checks=3),
        replace(BASE, release_checks=1),
        replace(BASE, identity_checks=0),
        replace(BASE, representatives=(0,)),
        replace(BASE, members=(Member(0, "a"), Member(1, "a"))),
        replace(BASE, members=(Member(1, "a"), Member(0, "b"))),
        replace(BASE, members=(Member(0, "a"), Member(1, ""))),
    ):
        with pytest.raises(ValueError):
            require_complete(broken)
