"""Renewal: the plan, the books, and what may be entered in them (F330-F332, F353, F354)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smtspool.cluster import (
    AgreedPlan,
    Capability,
    Code,
    Completion,
    Diagnostic,
    Ledger,
    Member,
    Proof,
    QualificationResult,
    RenewalController,
    RenewalPlan,
    Stage,
    complete_renewal,
    transcript_of,
)
from smtspool.errors import MisuseError
from tests.cluster.fleet import EPOCH, qualify_all

PLAN = RenewalPlan(interval=10.0, timeout=5.0, jitter=0.0)
HOSTS = ("a", "b", "a")


@pytest.fixture
def controller(probed: Capability) -> RenewalController:
    return RenewalController(AgreedPlan(PLAN, EPOCH, len(HOSTS)), capability=probed, completed_at=100.0)


@pytest.fixture(scope="module")
def verified(probed: Capability) -> Callable[[int], QualificationResult]:
    """The verified result of a generation, as rank 0 got it."""
    made: dict[int, QualificationResult] = {}

    def of(generation: int) -> QualificationResult:
        if generation not in made:
            made[generation] = qualify_all(probed, HOSTS, epoch=EPOCH, generation=generation)[0]
        assert made[generation].verified
        return made[generation]

    return of


def balanced(ledger: Ledger) -> bool:
    return ledger.attempts == ledger.successes + ledger.failures


# -- when --------------------------------------------------------------------------------------------------


def test_a_renewal_is_due_once_the_interval_has_passed_and_it_is_safe(controller: RenewalController) -> None:
    assert not controller.due(109.9)
    assert controller.due(110.0)
    assert not controller.due(110.0, safe=False)
    assert not controller.due(math.nan)
    controller.begin()
    assert not controller.due(1000.0)


def test_without_an_interval_nothing_is_ever_due(probed: Capability) -> None:
    plan = AgreedPlan(RenewalPlan(interval=0.0), EPOCH, 2)
    assert not RenewalController(plan, capability=probed, completed_at=0.0).due(1e9)


def test_the_delay_is_the_same_everywhere_and_spreads_fleets() -> None:
    epochs = [f"{number:064x}" for number in range(1024)]
    delays = [AgreedPlan(RenewalPlan(60.0, 5.0, 0.1), epoch, 2).delay(3) for epoch in epochs]
    assert delays == [AgreedPlan(RenewalPlan(60.0, 5.0, 0.1), epoch, 2).delay(3) for epoch in epochs]
    assert len(set(delays)) > 1000
    assert all(60.0 <= delay < 66.0 for delay in delays)
    buckets = [
        sum(low <= delay - 60.0 < low + 0.1 for delay in delays) for low in [n / 10 for n in range(60)]
    ]
    assert max(buckets) < 40
    assert sum(map(bool, buckets)) > 55


@pytest.mark.parametrize("interval", [1e-300, 1.0, 86_400.0])
def test_the_delay_never_reaches_its_upper_end(interval: float) -> None:
    for jitter in (0.0, 1e-18, 0.5):
        for generation in range(50):
            delay = AgreedPlan(RenewalPlan(interval, 5.0, jitter), EPOCH, 2).delay(generation)
            longest = interval * (1 + jitter)
            assert interval <= delay and (delay < longest or delay == interval == longest)


@pytest.mark.parametrize("wrong", [-0.001, 0.500001, math.inf, math.nan, "0.1", True, None])
def test_a_plan_with_a_wrong_jitter_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="jitter must be a number"):
        RenewalPlan(jitter=wrong)


def test_signed_zeros_are_one_plan() -> None:
    assert AgreedPlan(RenewalPlan(-0.0, 1.0, -0.0), EPOCH, 2).fingerprint == (
        AgreedPlan(RenewalPlan(0.0, 1.0, 0.0), EPOCH, 2).fingerprint
    )


def test_each_number_and_the_epoch_make_another_fingerprint() -> None:
    plans = [RenewalPlan(1, 2, 0.3), RenewalPlan(2, 2, 0.3), RenewalPlan(1, 3, 0.3), RenewalPlan(1, 2, 0.4)]
    prints = {AgreedPlan(plan, epoch, 2).fingerprint for plan in plans for epoch in (EPOCH, "f" * 64)}
    assert len(prints) == 8


# -- commit ------------------------------------------------------------------------------------------------


def test_a_verified_result_is_a_success_and_moves_the_proof(
    controller: RenewalController, verified: Callable[[int], QualificationResult]
) -> None:
    assert controller.begin() == 1
    assert controller.complete(1, verified(1), completed_at=120.0)
    ledger = controller.ledger
    assert (ledger.generation, ledger.in_flight) == (1, 0)
    assert (ledger.attempts, ledger.successes, ledger.failures) == (1, 1, 0)
    assert ledger.completed_at == 120.0
    assert ledger.last_elapsed == ledger.total_elapsed == verified(1).elapsed > 0


def test_a_failure_is_an_attempt_and_leaves_the_old_proof_its_age(
    controller: RenewalController, probed: Capability, verified: Callable[[int], QualificationResult]
) -> None:
    diagnostic = Diagnostic(Stage.EXCLUDED, Code.RAISED, 0, 1, "x")
    failed = QualificationResult(False, False, probed, Proof(), 1, EPOCH, 0, 0.0, diagnostic=diagnostic)
    controller.begin()
    assert not controller.complete(1, failed, completed_at=120.0)
    assert controller.ledger == Ledger(100.0, 10.0, generation=1, attempts=1, failures=1)
    controller.begin()
    assert controller.complete(2, verified(2), completed_at=130.0)
    assert balanced(controller.ledger)
    assert controller.ledger.attempts == 2


SPLICES: dict[str, Callable[[QualificationResult], QualificationResult]] = {
    "not clean": lambda r: replace(r, clean=False),
    "not verified": lambda r: replace(r, verified=False),
    "clean is 1": lambda r: replace(r, clean=1),  # type: ignore[arg-type]
    "a diagnostic": lambda r: replace(r, diagnostic=Diagnostic(Stage.COMMIT, Code.RAISED, 0, 1, "x")),
    "an older generation": lambda r: replace(r, generation=r.generation - 1),
    "generation is a bool": lambda r: replace(r, generation=True),
    "another epoch": lambda r: replace(r, epoch="f" * 64),
    "no rounds": lambda r: with_proof(r, rounds=0),
    "rounds are a bool": lambda r: with_proof(r, rounds=True),
    "fewer refusals": lambda r: with_proof(r, contention_checks=1),
    "no releases": lambda r: with_proof(r, release_checks=0),
    "no identities": lambda r: with_proof(r, identity_checks=0),
    "other members": lambda r: with_proof(r, members=(Member(0, "a"), Member(1, "c"), Member(2, "a"))),
    "fewer members": lambda r: with_proof(r, members=(Member(0, "a"), Member(1, "b")), contention_checks=2),
    "members are no tuple": lambda r: with_proof(r, members=[*r.proof.members]),
    "a member is a pair": lambda r: with_proof(r, members=tuple(map(tuple, r.proof.members))),
    "members are a number": lambda r: with_proof(r, members=7),
    "another representative": lambda r: with_proof(r, representatives=(1, 2)),
    "no transcript": lambda r: with_proof(r, transcript=""),
    "a transcript of another generation": lambda r: with_proof(
        r, transcript=transcript_of(EPOCH, 9, replace(r.proof, transcript=""))
    ),
    "no proof": lambda r: replace(r, proof=None),  # type: ignore[arg-type]
    "no capability": lambda r: replace(r, capability=None),
    "a capability without the proof": lambda r: replace(r, capability=capability_of(r).unproved()),
    "a capability of another root": lambda r: replace(r, capability=replace(capability_of(r), root="/x")),
    "negative time": lambda r: replace(r, elapsed=-1.0),
    "endless time": lambda r: replace(r, elapsed=math.inf),
    "time is not a number": lambda r: replace(r, elapsed=math.nan),
    "time is a text": lambda r: replace(r, elapsed="1"),  # type: ignore[arg-type]
    "time is a bool": lambda r: replace(r, elapsed=True),
}


def capability_of(result: QualificationResult) -> Capability:
    assert result.capability is not None
    return result.capability


def with_proof(result: QualificationResult, **changes: Any) -> QualificationResult:
    """``result`` with a changed proof, consistently so in its capability."""
    proof = replace(result.proof, **changes)
    return replace(result, proof=proof, capability=replace(capability_of(result), proof=proof))


@pytest.mark.parametrize("splice", SPLICES.values(), ids=SPLICES.keys())
def test_a_spliced_result_is_a_failed_attempt(
    controller: RenewalController,
    verified: Callable[[int], QualificationResult],
    splice: Callable[[QualificationResult], QualificationResult],
) -> None:
    controller.begin()
    assert controller.complete(1, splice(verified(1)), completed_at=120.0) is False
    assert (controller.ledger.attempts, controller.ledger.failures) == (1, 1)
    assert math.isfinite(controller.ledger.total_elapsed)


def test_the_result_of_an_earlier_generation_is_a_failed_attempt(
    controller: RenewalController, verified: Callable[[int], QualificationResult]
) -> None:
    controller.begin()
    controller.complete(1, verified(1), completed_at=120.0)
    controller.begin()
    assert not controller.complete(2, verified(1), completed_at=130.0)
    ledger = controller.ledger
    assert (ledger.attempts, ledger.successes, ledger.failures) == (2, 1, 1)


# -- or rollback -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("generation", "result", "completed_at", "error"),
    [
        (2, "verified", 120.0, MisuseError),
        (0, "verified", 120.0, MisuseError),
        (True, "verified", 120.0, MisuseError),
        (1.0, "verified", 120.0, MisuseError),
        (1, "a text", 120.0, TypeError),
        (1, "verified", 99.0, ValueError),
        (1, "verified", math.nan, ValueError),
        (1, "verified", math.inf, ValueError),
        (1, "verified", "later", TypeError),
    ],
)
def test_what_cannot_be_accounted_for_changes_nothing(
    controller: RenewalController,
    verified: Callable[[int], QualificationResult],
    generation: Any,
    result: str,
    completed_at: Any,
    error: type[Exception],
) -> None:
    controller.begin()
    before = controller.ledger
    value: Any = verified(1) if result == "verified" else result
    with pytest.raises(error):
        controller.complete(generation, value, completed_at=completed_at)
    assert controller.ledger == before
    assert balanced(controller.ledger)


def test_a_sum_that_overflows_changes_nothing(
    controller: RenewalController, verified: Callable[[int], QualificationResult]
) -> None:
    controller.ledger = replace(controller.ledger, total_elapsed=1.7e308)
    controller.begin()
    before = controller.ledger
    with pytest.raises(OverflowError):
        controller.complete(1, replace(verified(1), elapsed=1.7e308), completed_at=120.0)
    assert controller.ledger == before


def test_an_error_while_judging_or_scheduling_changes_nothing(
    controller: RenewalController, verified: Callable[[int], QualificationResult]
) -> None:
    class Broken(AgreedPlan):
        def delay(self, generation: int) -> float:
            raise LookupError("no schedule")

    controller.begin()
    controller.agreed = Broken(PLAN, EPOCH, len(HOSTS))
    before = controller.ledger
    for result in (verified(1), replace(verified(1), clean=False)):
        with pytest.raises(LookupError):
            controller.complete(1, result, completed_at=120.0)
        assert controller.ledger == before


def test_a_generation_is_begun_once_and_in_order(controller: RenewalController) -> None:
    for wrong in (0, 2, True, 1.0, "1"):
        with pytest.raises(MisuseError, match="generation 1 is next"):
            controller.begin(wrong)  # type: ignore[arg-type]
    assert controller.begin(1) == 1
    with pytest.raises(MisuseError, match="no renewal can begin now"):
        controller.begin()


# -- the consumer's boundary (F354, F357) ------------------------------------------------------------------


def test_a_completion_is_a_success_a_failure_or_an_accounting_error(
    controller: RenewalController, verified: Callable[[int], QualificationResult]
) -> None:
    controller.begin()
    assert complete_renewal(controller, 1, verified(1), clock=lambda: 120.0) == Completion(True)
    controller.begin()
    assert complete_renewal(controller, 2, verified(1), clock=lambda: 130.0) == Completion(False)
    controller.begin()
    before = controller.ledger
    ended = complete_renewal(controller, 3, verified(3), clock=lambda: 10.0, rank=2)
    assert controller.ledger == before
    assert ended.diagnostic is not None
    assert (ended.success, ended.diagnostic.code, ended.diagnostic.rank) == (False, Code.RAISED, 2)
    assert ended.diagnostic.text.startswith("cluster lock renewal was not accounted for: ")


def test_a_failing_completion_clock_is_an_accounting_error_and_read_once(
    controller: RenewalController, verified: Callable[[int], QualificationResult]
) -> None:
    read = []

    def clock() -> float:
        read.append(1)
        raise LookupError("\n" * 600 + "x" * 1000)

    controller.begin()
    before = controller.ledger
    ended = complete_renewal(controller, 1, verified(1), clock=clock)
    assert ended.diagnostic is not None
    assert len(ended.diagnostic.text) == 512
    assert (controller.ledger, len(read)) == (before, 1)


def test_a_signal_passes_the_completion(
    controller: RenewalController, verified: Callable[[int], QualificationResult]
) -> None:
    def clock() -> float:
        raise KeyboardInterrupt

    controller.begin()
    with pytest.raises(KeyboardInterrupt):
        complete_renewal(controller, 1, verified(1), clock=clock)
    assert balanced(controller.ledger)


def test_a_wrong_controller_is_an_accounting_error(
    probed: Capability, shared: Path, verified: Callable[[int], QualificationResult]
) -> None:
    ended = complete_renewal(None, 1, verified(1), clock=lambda: 1.0)  # type: ignore[arg-type]
    assert not ended.success
    assert ended.diagnostic is not None
