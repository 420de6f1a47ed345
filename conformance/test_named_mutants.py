"""The named faults of every protocol are caught, and the one that changes nothing is not."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from conformance.contract import Protocol
from conformance.driving import hunt
from conformance.engine.mutants import Mutant
from conformance.protocols import PROTOCOLS
from tests.sampling import sample

each = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
EVERY = 3  # of so many mutants one is hunted in the sample, and the control, and who is seen in one way alone


def of_each(mutants: Callable[[Protocol], Iterable[Mutant]]) -> pytest.MarkDecorator:
    pairs = [(protocol, mutant) for protocol in PROTOCOLS for mutant in mutants(protocol)]
    return pytest.mark.parametrize(("protocol", "mutant"), pairs, ids=lambda one: one.name)


def hunted(protocol: Protocol) -> list[Mutant]:
    chosen = sample(protocol.mutants, EVERY)
    seen_by = protocol.expected.seen_by
    return [one for one in protocol.mutants if one in chosen or one.control or one.name in seen_by]


@pytest.mark.slow
@pytest.mark.sampled
@of_each(hunted)
def test_named_mutants_are_caught_and_the_control_survives(protocol: Protocol, mutant: Mutant) -> None:
    kill = hunt(protocol, mutant)
    assert kill.as_wanted, kill.message
    if mutant.name in protocol.expected.seen_by:
        assert kill.detector == protocol.expected.seen_by[mutant.name], kill.message
    if kill.detector == "gates":
        assert "is blocked" in kill.message or "other gates" in kill.message
    if kill.detector is not None and kill.detector not in protocol.oracles:
        assert f"python -m conformance {protocol.name}/" in kill.message


@of_each(lambda protocol: protocol.mutants)
def test_mutants_apply_to_the_code_as_it_is(protocol: Protocol, mutant: Mutant) -> None:
    mutant.check()


@each
def test_one_mutant_is_the_control(protocol: Protocol) -> None:
    assert [mutant.name for mutant in protocol.mutants if mutant.control] == ["control"]


@each
def test_hints_are_about_mutants_and_what_sees_them(protocol: Protocol) -> None:
    names = {mutant.name for mutant in protocol.mutants}
    assert {*protocol.shows_in, *protocol.expected.seen_by} <= names
    assert set(protocol.shows_in.values()) <= {*protocol.graphs, *protocol.oracles}
