"""Recorded requests and cancellations are behaviours of the model; damaged recordings are not."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from conformance.cancellation.stress import stress
from conformance.cancellation.trace import check, damage
from conformance.traces import explain, harmless, survivors

SEED = int(os.environ.get("CONFORMANCE_SEED", "381"))

# Damage that leaves a behaviour of the model, and why.
HARMLESS = (
    r"AcquireIO -> busy\) dropped",  # a wait that nobody looked at
    r"CancelSolver -> nobody\) (dropped|doubled|swapped with \w+)",  # nobody was told
    r"CancelSolver -> told\) (doubled|swapped with CancelSolver)",  # who is told twice is told once
    r"CancelSolver -> told\) dropped",  # the request that left for it may as well have been late
    r"Signal -> None\) dropped",  # the helper may as well have crashed
    r"\w+ -> [^)]*\) swapped with CancelSolver",  # about another query
    r"Answer -> failed\) goes sat",  # of who was cancelled the reply may as well have come before the signal
    r"Settle -> deadline\) goes answered",  # the helper may as well have crashed
)


@pytest.mark.slow
def test_every_systematic_damage_is_rejected_or_harmless() -> None:
    lines = stress(SEED, asking=2, requests=3, kills=1).lines
    damaged = damage(lines)
    survived = survivors(lines, damaged, check)
    assert survived <= harmless(lines, damaged, HARMLESS)
    assert len(survived) < len(damaged) / 2


@pytest.mark.slow
def test_a_lost_cancellation_is_no_behaviour() -> None:
    lines = stress(SEED, asking=2, requests=6, kills=0).lines
    at = next(index for index, line in enumerate(lines) if line.action == "Settle" and line.outcome == "user")
    lost = [*lines[:at], replace(lines[at], outcome="answered"), *lines[at + 1 :]]
    whole, verdict = check([lines, lost])
    assert whole.accepted and not verdict.accepted
    assert f"line {lines[at].number}: " in explain(lost, verdict)
