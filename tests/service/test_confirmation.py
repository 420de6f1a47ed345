"""Where two engines are asked for an unsat answer, what one of them said before is asked again."""

from __future__ import annotations

from dataclasses import replace

from smtspool.query import Answer
from smtspool.service import Campaign, Service, Settings
from tests.service.support import equation, submit, until

SETTINGS = Settings(jobs=1, engines=("z3",), poll_seconds=0.05)
CONFIRMING = replace(SETTINGS, engines=("bitwuzla", "z3"), confirm_unsat=True)


def answered(campaign: Campaign, settings: Settings) -> list[Answer]:
    with Service(campaign, settings, once=True) as service:
        until(lambda: service.join(0.1), "the end")
        with service.open_store() as store:
            return [result.answer for result in store.results()]


def test_a_proof_of_one_engine_is_not_reused_where_two_are_asked(campaign: Campaign) -> None:
    submit(campaign, a=equation(1, against=2))
    [alone] = answered(campaign, SETTINGS)
    assert (alone.status, alone.verified_by) == ("unsat", None)
    submit(campaign, b=equation(1, against=2, name="y"))
    [_, confirmed] = answered(campaign, CONFIRMING)
    assert confirmed.status == "unsat"
    assert confirmed.verified_by not in (None, confirmed.engine) and confirmed.reused_from is None
    submit(campaign, c=equation(1, against=2, name="z"))
    [*_, reused] = answered(campaign, CONFIRMING)
    assert reused.reused_from is not None and reused.verified_by == confirmed.verified_by
