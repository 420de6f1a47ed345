"""A view of a portfolio says who is asked and since when, and ends also where something is stuck."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from smtspool import threads
from smtspool.errors import InfrastructureError
from smtspool.solve import Closing, Hedge, HedgePolicy, Part, Portfolio, RaceRules, Waiting
from tests.solve.gates import PATIENCE_S, Thread
from tests.solve.queries import EASY
from tests.solve.scripted import ScriptedServer
from tests.solve.tracks import eventually


@pytest.fixture
def portfolio() -> Iterator[Portfolio]:
    """Two engines that never reply, asked together."""
    with ScriptedServer("bitwuzla", "hang") as one, ScriptedServer("z3", "hang") as other:
        servers = [one, other]
        with Portfolio(servers, rules=RaceRules(cpus=2), policy=HedgePolicy(Hedge.TOGETHER)) as made:  # type: ignore[arg-type]
            yield made


def test_a_portfolio_shows_its_race_and_since_when_each_engine_is_in_it(portfolio: Portfolio) -> None:
    def waits() -> list[Waiting | None]:
        return [one.waiting for lane in portfolio.view().solvers for one in lane.requests]

    before = time.monotonic()
    solving = Thread(portfolio.solve, EASY, timeout_s=PATIENCE_S)
    assert eventually(lambda: waits() == [Waiting.REPLY] * 2)
    seen = portfolio.view()
    [race] = seen.races
    assert (race.query_id, race.to_come, race.letters) == (EASY.id, (), ())
    assert [(part.solver, part.part, part.told) for part in race.parts] == [
        ("bitwuzla", Part.RUNNING, None), ("z3", Part.RUNNING, None),
    ]  # fmt: skip
    assert all(before <= part.started <= seen.taken for part in race.parts)
    assert [checker.requests for checker in seen.checkers] == [(), ()]
    assert portfolio.close()
    solving.result()
    assert (portfolio.view().closing, portfolio.view().races) == (Closing.CLOSED, ())


def test_one_of_which_a_part_is_locked_cannot_be_looked_at(
    portfolio: Portfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_LOOK_S", 0.01)
    with (
        portfolio._lanes["z3"]._state,
        pytest.raises(InfrastructureError, match="solver z3 cannot be looked"),
    ):
        portfolio.view()
    assert len(portfolio.view().solvers) == 2
