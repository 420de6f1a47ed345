"""Profiling: who coordinates, what is learnt, what is served, and what a restart believes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from smtspool.actions import Step, observed_by
from smtspool.errors import AdmissionError
from smtspool.profile import ProfileGeneration, parse_runtime
from smtspool.query import Answer, Query, Status, parse_envelope
from smtspool.service import Campaign, Service, Settings
from smtspool.service import profiling as module
from smtspool.service.engines import Engines
from smtspool.service.increments import Increments
from smtspool.service.profiling import FEEDBACK_SECONDS, KNOWLEDGE, Profiling
from smtspool.solve import Cancellation, Portfolio
from smtspool.spool import Spool
from smtspool.store import Store
from tests.clock import Clock
from tests.service.support import PATIENCE_S, until

CONTEXT = "a" * 64
SETTINGS = Settings(jobs=1, engines=("bitwuzla", "z3"), profile_interval_seconds=0.0, poll_seconds=0.02)


def telemetry(*values: int, site: int = 7, times: int = 8) -> dict[str, Any]:
    rows = [[site, 8, times * len(values), 0, [[value, times] for value in values]]]
    return {"schema": 3, "empirical_value_profile_context": CONTEXT, "empirical_value_profiles": rows}


def submit(campaign: Campaign, name: str, document: object) -> None:
    hidden = campaign.spool / "telemetry" / f".{name}"
    hidden.write_text(json.dumps(document))
    hidden.rename(hidden.with_name(f"{name}.json"))


def waiting(campaign: Campaign) -> list[str]:
    return sorted(name for name in os.listdir(campaign.spool / "telemetry") if not name.startswith("."))


def below(limit: int, *, but: int | None = None, site: int = 7) -> dict[str, Any]:
    return {
        "schema": "smtspool-query-v1",
        "logic": "QF_BV",
        "declarations": ["(declare-const x (_ BitVec 8))"],
        "prefix": [] if but is None else [f"(distinct x (_ bv{but} 8))"],
        "target": f"(bvult x (_ bv{limit} 8))",
        "metadata": {"context": CONTEXT, "site": site, "bits": 8, "operand": "x"},
    }


def domains(generation: ProfileGeneration | None) -> dict[int, tuple[int, ...]]:
    assert generation is not None
    return {one.key.site: one.values for one in parse_runtime(generation.content).domains}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def start(campaign: Campaign, clock: Clock) -> Iterator[Callable[..., Profiling]]:
    with ExitStack() as stack:

        def make(*, admits: bool = True) -> Profiling:
            profiling = Profiling(
                campaign,
                SETTINGS,
                Increments(),
                admits=admits,
                open_store=lambda: Store.open(campaign.store),
                clock=clock,
            )
            stack.callback(profiling.close)
            return profiling

        yield make


# -- one service ------------------------------------------------------------------------------------------


def test_what_waits_in_the_spool_is_learnt_before_the_first_query(
    campaign: Campaign, start: Callable[..., Profiling]
) -> None:
    submit(campaign, "one", telemetry(3))
    submit(campaign, "two", telemetry(5))
    profiling = start()
    assert profiling.serve() is None
    profiling.begin()
    assert domains(profiling.serve()) == {7: (3, 5)}
    assert waiting(campaign) == []


def test_telemetry_stays_in_the_spool_while_the_checkpoint_cannot_be_written(
    campaign: Campaign, start: Callable[..., Profiling]
) -> None:
    profiling = start()
    profiling.begin()
    (campaign.profile / "state.json").mkdir()
    submit(campaign, "one", telemetry(3))
    profiling.step()
    assert domains(profiling.serve()) == {7: (3,)}
    assert waiting(campaign) == ["one.json"]
    (campaign.profile / "state.json").rmdir()
    profiling.step()
    assert waiting(campaign) == []


def test_a_restart_believes_what_it_can_replay(campaign: Campaign, start: Callable[..., Profiling]) -> None:
    submit(campaign, "one", telemetry(3))
    first = start()
    first.begin()
    first.close()
    state = campaign.profile / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "records": [telemetry(9)]}))
    second = start()
    second.begin()
    assert domains(second.serve()) == {7: (9,)}


def test_a_folder_that_cannot_be_used_costs_the_probes_and_nothing_else(
    campaign: Campaign, start: Callable[..., Profiling]
) -> None:
    campaign.profile.write_text("in the way")
    profiling = start()
    profiling.begin()
    assert profiling.serve() is None
    with pytest.raises(NotADirectoryError):
        profiling.step()  # its loop tries again, with growing delay
    campaign.profile.unlink()
    submit(campaign, "one", telemetry(3))
    profiling.step()
    assert domains(profiling.serve()) == {7: (3,)}


def test_the_store_knows_how_it_is(campaign: Campaign, store: Store, start: Callable[..., Profiling]) -> None:
    submit(campaign, "one", telemetry(3))
    profiling = start()
    profiling.step()
    told = store.get(KNOWLEDGE)
    assert isinstance(told, dict)
    assert (told["current_profiles"], told["served"], told["dirty"]) == (1, True, False)


# -- feedback ---------------------------------------------------------------------------------------------


def probe(profiling: Profiling, portfolio: Portfolio, limit: int, but: int | None = None) -> None:

    query: Query = parse_envelope(below(limit, but=but))
    assert profiling.prober.probe(portfolio, query, 10.0, Cancellation()) is not None


@pytest.fixture(scope="module")
def portfolio() -> Iterator[Portfolio]:

    with Engines(SETTINGS) as engines, engines.portfolio() as running:
        yield running


def records(campaign: Campaign) -> list[dict[str, Any]]:
    state: dict[str, Any] = json.loads((campaign.profile / "state.json").read_text())
    return list(state["records"])


def test_feedback_travels_with_the_next_telemetry_of_its_program(
    campaign: Campaign, start: Callable[..., Profiling], portfolio: Portfolio
) -> None:
    submit(campaign, "one", telemetry(3))
    profiling = start()
    profiling.begin()
    probe(profiling, portfolio, 4)
    probe(profiling, portfolio, 2)
    probe(profiling, portfolio, 5, but=3)
    submit(campaign, "two", telemetry(3))
    profiling.step()
    [first, second] = records(campaign)
    assert first["empirical_domain_feedback"] == []
    [row] = second["empirical_domain_feedback"]
    assert row[:11] == [7, 8, [3], 3, 1, 2, 1, 1, 0, 1, 0]


def test_feedback_without_telemetry_is_a_record_of_its_own_after_a_while(
    campaign: Campaign, start: Callable[..., Profiling], portfolio: Portfolio, clock: Clock
) -> None:
    submit(campaign, "one", telemetry(3))
    profiling = start()
    profiling.begin()
    probe(profiling, portfolio, 4)
    profiling.step()
    assert len(records(campaign)) == 1
    clock.advance(FEEDBACK_SECONDS)
    profiling.step()
    assert len(records(campaign)) == 2


def test_the_last_feedback_is_written_at_the_end(
    campaign: Campaign, start: Callable[..., Profiling], portfolio: Portfolio
) -> None:
    submit(campaign, "one", telemetry(3))
    profiling = start()
    profiling.begin()
    probe(profiling, portfolio, 4)
    profiling.close()
    assert len(records(campaign)) == 2


# -- several services -------------------------------------------------------------------------------------


def test_one_leads_and_the_other_serves_what_it_can_replay(
    campaign: Campaign, start: Callable[..., Profiling], portfolio: Portfolio, clock: Clock
) -> None:
    leader, follower = start(), start()
    leader.begin()
    follower.begin()
    assert follower.serve() is None
    submit(campaign, "one", telemetry(3))
    follower.step()
    assert waiting(campaign) == ["one.json"]
    leader.step()
    follower.step()
    assert domains(follower.serve()) == {7: (3,)}

    probe(follower, portfolio, 4)
    clock.advance(FEEDBACK_SECONDS)
    follower.step()
    [report] = waiting(campaign)
    assert report.startswith("feedback-")
    leader.step()
    assert len(records(campaign)) == 2

    leader.close()
    submit(campaign, "two", telemetry(5))
    follower.step()
    assert domains(follower.serve()) == {7: (3, 5)}


@pytest.mark.parametrize("follows", [False, True], ids=["as the first", "as a follower"])
def test_a_lead_that_cannot_be_taken_is_left_to_others_and_taken_later(
    campaign: Campaign, start: Callable[..., Profiling], monkeypatch: pytest.MonkeyPatch, follows: bool
) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise MemoryError("no memory for the window")

    leader, successor = start(), start()
    leader.begin()
    if follows:
        submit(campaign, "one", telemetry(3))
        leader.step()
        successor.step()
    submit(campaign, "two", telemetry(5))
    leader.step()
    leader.close()
    with monkeypatch.context() as patched:
        patched.setattr(module, "coordinator_of", too_large)
        for _ in range(2):
            with pytest.raises(MemoryError):
                successor.step()
    other = start()
    other.begin()
    submit(campaign, "three", telemetry(6))
    successor.step()
    assert waiting(campaign) == ["three.json"]
    assert domains(successor.serve()) == {7: (3, 5) if follows else (5,)}
    other.close()
    successor.step()
    assert domains(successor.serve()) == {7: (3, 5, 6) if follows else (5, 6)}


def test_without_the_right_to_admit_the_spool_is_left_alone(
    campaign: Campaign, start: Callable[..., Profiling]
) -> None:
    submit(campaign, "one", telemetry(3))
    profiling = start(admits=False)
    profiling.begin()
    profiling.step()
    assert waiting(campaign) == ["one.json"]


def test_who_may_not_admit_does_not_keep_who_may_from_leading(
    campaign: Campaign, start: Callable[..., Profiling]
) -> None:
    follower, leader = start(admits=False), start()
    follower.begin()
    submit(campaign, "one", telemetry(3))
    leader.begin()
    assert waiting(campaign) == []
    follower.step()
    assert domains(follower.serve()) == {7: (3,)}


# -- the whole service ------------------------------------------------------------------------------------


def answers(campaign: Campaign) -> dict[str, Answer]:
    with Store.open(campaign.store) as store:
        return {result.query_id: result.answer for result in store.results()}


def serve_once(campaign: Campaign, *queries: dict[str, Any]) -> list[Answer]:
    with Spool.open(campaign.spool) as spool:
        spool.submit_many((f"{n}.json", json.dumps(query).encode()) for n, query in enumerate(queries))
    with Service(campaign, SETTINGS, once=True) as service:
        assert service.join(PATIENCE_S)
    known = answers(campaign)
    return [known[parse_envelope(query).id] for query in queries]


def test_a_probe_answers_or_falls_back_and_the_account_says_which(campaign: Campaign) -> None:
    submit(campaign, "one", telemetry(3))
    hit, fallback, rejected, other = serve_once(
        campaign, below(4), below(5, but=3), below(2), below(9, site=8)
    )
    assert {one.status for one in (hit, fallback, rejected, other)} == {Status.SAT}
    assert hit.model is not None
    assert hit.model["x"] in ("#x03", "#b00000011")
    assert hit.verified_by not in (None, hit.engine)
    assert [attempt.attempt_id.split("-")[0] for attempt in hit.attempts] == ["probe"]
    assert [attempt.reason for attempt in fallback.attempts][:1] == ["probe: unsat"]
    assert len(fallback.attempts) >= 2
    for unprobed in (rejected, other):
        assert all(not attempt.attempt_id.startswith("probe") for attempt in unprobed.attempts)


def test_an_unsat_probe_is_never_an_answer_nor_reused_as_one(campaign: Campaign) -> None:
    """The same form twice, with a domain that has no model: each time the query itself is asked."""
    submit(campaign, "one", telemetry(3))
    first, second = serve_once(campaign, below(5, but=3), below(6, but=3))
    assert [one.attempts[0].reason for one in (first, second)] == ["probe: unsat"] * 2
    assert (first.status, second.status) == (Status.SAT, Status.SAT)
    assert all(attempt.status is not Status.UNSAT for one in (first, second) for attempt in one.attempts)


def test_profiling_is_before_claiming_and_recovers_before_it_serves(campaign: Campaign) -> None:
    submit(campaign, "one", telemetry(3))
    serve_once(campaign, below(4))

    seen: list[str] = []

    class Recorder:
        def before(self, step: Step) -> None:
            seen.append(step.name)

        def after(self, step: Step) -> None:
            pass

    with observed_by(Recorder()):
        serve_once(campaign, below(5))
    names = [name for name in seen if name in ("LoadState", "VerifyRuntime", "Replay", "Serve")]
    assert names[:4] == ["LoadState", "VerifyRuntime", "Replay", "Serve"]


def test_a_running_service_learns(campaign: Campaign) -> None:
    with Service(campaign, SETTINGS) as service:
        with Store.open(campaign.store) as store:

            def profiles() -> int:
                told = store.get(KNOWLEDGE)
                return told["current_profiles"] if isinstance(told, dict) else 0

            with pytest.raises(AdmissionError):
                service.observe(telemetry(3), {"schema": 3})
            assert waiting(campaign) == []
            service.observe(telemetry(3))
            until(lambda: profiles() == 1)
            with Spool.open(campaign.spool) as spool:
                spool.submit("q.json", json.dumps(below(4)).encode())
            until(lambda: answers(campaign))
        service.drain()
        assert service.join(PATIENCE_S)
    [answer] = answers(campaign).values()
    assert answer.attempts[0].attempt_id.startswith("probe")
    assert Path(campaign.profile / "state.json").exists()
