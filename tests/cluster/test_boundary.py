"""The total boundary (F355): the ten checks of its driver, and an exception at every call."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from smtspool.cluster import (
    TEXT_LIMIT,
    Capability,
    Code,
    Observation,
    Proof,
    QualificationResult,
    Stage,
    Time,
    qualify,
)
from tests.cluster.bus import Bus, BusCommunicator, together
from tests.cluster.faults import COMMUNICATION, FILES, POLLS, Clock, FaultyCommunicator, FaultyFiles, Fuse
from tests.cluster.fleet import qualify_one

PREFIX = "cluster lock qualification raised: "


class Unforeseen(BusCommunicator):
    """A communicator of somebody else's, with an exception that nobody listed (F355 §1)."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(Bus(1), 0)
        self._error = error

    def Get_rank(self) -> int:
        raise self._error


def qualified_with(error: BaseException, capability: Any, **more: Any) -> QualificationResult:
    root = Path(capability.root) if isinstance(capability, Capability) else Path("/")
    return qualify_one(Unforeseen(error), root, Observation(capability, "a"), **more)


def assert_contained(result: QualificationResult) -> None:
    """F355 §4: a failed value without any proof."""
    assert (result.clean, result.verified) == (False, False)
    assert result.proof == Proof()
    assert result.elapsed == 0.0
    assert result.capability is None or result.capability.proof is None
    assert result.diagnostic is not None
    assert result.diagnostic.code is Code.RAISED
    assert result.error.startswith(PREFIX)
    assert len(result.error) <= TEXT_LIMIT
    assert result.error.isprintable()


# -- the driver of F355 §7 ---------------------------------------------------------------------------------


def test_1_one_member_is_clean_and_not_verified(probed: Capability, shared: Path) -> None:
    result = qualify(BusCommunicator(Bus(1), 0), shared, Observation(probed, "a"))
    assert (result.clean, result.verified, result.error) == (True, False, "")
    assert [tuple(member) for member in result.proof.members] == [(0, "a")]
    assert result.proof.rounds == 0


def test_2_an_unlisted_exception_of_the_communicator_becomes_a_failed_value(probed: Capability) -> None:
    result = qualified_with(LookupError("injected communicator adapter failure"), probed)
    assert_contained(result)
    assert result.error == PREFIX + "injected communicator adapter failure"


def test_3_it_keeps_the_generation(probed: Capability) -> None:
    assert qualified_with(LookupError("x"), probed, generation=7).generation == 7


def test_4_it_keeps_a_valid_capability(probed: Capability) -> None:
    assert qualified_with(LookupError("x"), probed).capability == probed


def test_5_an_exception_of_the_clock_becomes_a_failed_value_that_measured_nothing(
    probed: Capability, shared: Path
) -> None:
    def broken() -> float:
        raise LookupError("no time")

    seen = Observation(probed, "a")
    result = qualify_one(BusCommunicator(Bus(1), 0), shared, seen, clock=broken)
    assert_contained(result)
    assert result.elapsed == 0.0


def test_6_a_long_text_is_cleaned_and_then_cut_to_exactly_512(probed: Capability) -> None:
    result = qualified_with(LookupError("\n\0\r" * 300 + "x\n" * 2000), probed)
    assert_contained(result)
    # The last of the 512 may be the blank that a line end became.
    assert result.error == (PREFIX + "x " * 1000)[:TEXT_LIMIT].rstrip()
    assert len(qualified_with(LookupError("\n" * 600 + "y" * 2000), probed).error) == TEXT_LIMIT


def test_7_an_exception_that_cannot_be_rendered_gives_the_name_of_its_type(probed: Capability) -> None:
    class Unspeakable(LookupError):
        def __str__(self) -> str:
            raise LookupError("again")

    result = qualified_with(Unspeakable(), probed)
    assert_contained(result)
    assert result.error == PREFIX + "Unspeakable"


def test_8_a_long_type_name_with_line_ends_is_cleaned_and_cut_too(probed: Capability) -> None:
    def refuse(self: object) -> str:
        raise LookupError("again")

    kind = type("Long\nName\r\x1b" + "N" * 700, (LookupError,), {"__str__": refuse})
    result = qualified_with(kind(), probed)
    assert_contained(result)
    assert len(result.error) == TEXT_LIMIT
    assert result.error.startswith(PREFIX + "Long Name N")


class NearlyCapability(Capability):
    pass


class NearlyInt(int):
    pass


def test_9_what_is_not_exactly_a_capability_or_a_generation_is_dropped(probed: Capability) -> None:
    assert qualified_with(LookupError("x"), {"root": "/"}).capability is None
    fields = {name: getattr(probed, name) for name in Capability.__dataclass_fields__}
    assert qualified_with(LookupError("x"), NearlyCapability(**fields)).capability is None
    for wrong in (True, NearlyInt(3), -1, 2**63, 1.0, "1", None):
        result = qualified_with(LookupError("x"), probed, generation=wrong)
        assert_contained(result)
        assert (type(result.generation), result.generation) == (int, 0), wrong


@pytest.mark.parametrize("signal", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_10_what_steers_the_process_passes(probed: Capability, signal: type[BaseException]) -> None:
    with pytest.raises(signal):
        qualified_with(signal(), probed)


# -- beyond the driver -------------------------------------------------------------------------------------


def test_the_diagnostic_says_where_it_happened(probed: Capability) -> None:
    diagnostic = qualified_with(LookupError("x"), probed, generation=3).diagnostic
    assert diagnostic is not None
    assert (diagnostic.stage, diagnostic.rank, diagnostic.generation) == (Stage.EPOCH, None, 3)


@pytest.mark.parametrize("error", [AssertionError("x"), MemoryError(), ExceptionGroup("g", [ValueError()])])
def test_every_ordinary_exception_is_contained(probed: Capability, error: Exception) -> None:
    assert_contained(qualified_with(error, probed))


def attempt(
    capability: Capability, victim: int, fuse: Fuse, hosts: tuple[str, ...] = ("a", "b")
) -> list[QualificationResult | BaseException]:
    """A qualification whose rank ``victim`` meets the fuse; then the time of the others is up."""
    bus, clock = Bus(len(hosts)), Clock()

    def body(rank: int) -> Any:
        def run() -> QualificationResult:
            here = fuse if rank == victim else Fuse(-1, AssertionError(), frozenset())

            def now() -> float:
                here("clock")
                return clock()

            def pause(seconds: float) -> None:
                here("pause")
                time.sleep(min(seconds, 5e-4))  # so that a rank that waits leaves the others the processor

            try:
                return qualify(
                    FaultyCommunicator(bus, rank, here),
                    Path(capability.root),
                    Observation(capability, hosts[rank]),
                    time=Time(now, pause),
                    files=FaultyFiles(here),
                )
            finally:
                if here.blown_by and not isinstance(here.error, OSError):
                    clock.run_away()

        return run

    return together([body(rank) for rank in range(len(hosts))])


def healthy(outcomes: list[QualificationResult | BaseException]) -> bool:
    return all(isinstance(outcome, QualificationResult) and outcome.verified for outcome in outcomes)


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize(
    ("among", "places"),
    [(COMMUNICATION, range(500)), (FILES, range(500)), (POLLS, range(0, 90, 7))],
    ids=["communicator", "files", "polls"],
)
def test_an_ordinary_exception_at_any_call_is_contained(
    probed: Capability, victim: int, among: frozenset[str], places: range
) -> None:
    blown = 0
    for place in places:
        fuse = Fuse(place, LookupError("injected"), among)
        outcomes = attempt(probed, victim, fuse)
        if fuse.blown_by is None:
            assert healthy(outcomes)
            break
        blown += 1
        result = outcomes[victim]
        assert isinstance(result, QualificationResult), (place, fuse.blown_by, result)
        assert_contained(result)
        other = outcomes[1 - victim]
        assert isinstance(other, QualificationResult)
        # The last message may be the only one that was missing: then the other has its proof.
        assert not other.clean or fuse.blown_by in ("Test", "isend", "receive", "clock", "pause")
    assert blown >= len(among)


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("among", [COMMUNICATION, FILES], ids=["communicator", "files"])
def test_an_interruption_at_any_call_passes_and_leaves_nothing(
    probed: Capability, victim: int, among: frozenset[str]
) -> None:
    for place in range(500):
        fuse = Fuse(place, KeyboardInterrupt(), among)
        outcomes = attempt(probed, victim, fuse)
        if fuse.blown_by is None:
            break
        assert isinstance(outcomes[victim], KeyboardInterrupt), (place, fuse.blown_by)
    assert place > len(among)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_failing_system_call_is_every_ranks_failure_with_its_reason(
    probed: Capability, victim: int
) -> None:
    for place in range(500):
        fuse = Fuse(place, PermissionError(1, "injected"), FILES - {"release", "remove"})
        outcomes = attempt(probed, victim, fuse)
        if fuse.blown_by is None:
            break
        for outcome in outcomes:
            assert isinstance(outcome, QualificationResult)
            assert outcome.diagnostic is not None
            assert outcome.diagnostic.code is Code.REFUSED
            assert outcome.error == f"rank {victim}: [Errno 1] injected"
    assert place > len(FILES)
