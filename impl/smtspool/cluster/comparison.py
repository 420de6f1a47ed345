"""Compares the renewal plans of all ranks: all renew by the same one, or none does (F332).

The ranks also compare what each host must have for itself, the identity of its store. So two hosts that would
write one database are refused before the first query is stored.
"""

from __future__ import annotations

from .diagnostics import Code, Stage
from .exchange import Exchange
from .proof import Member
from .renewal import AgreedPlan, RenewalPlan

__all__ = ["compare_plans"]

_FACTS = frozenset({"interval", "timeout", "jitter", "fingerprint", "keeps"})


def compare_plans(
    exchange: Exchange, plan: RenewalPlan, members: tuple[Member, ...], keeps: str
) -> AgreedPlan:
    """The plan, if every rank has an equal one and no two hosts have the same store.

    ``keeps`` is the identity of this host's store, "" for none. Otherwise ExchangeFailed is raised on every
    rank.
    """
    agreed = AgreedPlan(plan, exchange.epoch, len(members))
    own = {
        "interval": plan.interval,
        "timeout": plan.timeout,
        "jitter": plan.jitter,
        "fingerprint": agreed.fingerprint,
    }
    records = exchange.gather(Stage.CONFIGURATION, lambda: {**own, "keeps": keeps}, facts=_FACTS)
    differing = [
        str(rank) for rank, record in enumerate(records) if {name: record[name] for name in own} != own
    ]
    if differing:
        raise exchange.failure(Code.REFUSED, f"rank {', '.join(differing)} renews by another plan")
    keepers: dict[str, str] = {}
    for member, record in zip(members, records, strict=True):
        kept = record["keeps"]
        if type(kept) is not str:
            raise exchange.failure(Code.MALFORMED, f"rank {member.rank} does not say what it keeps")
        if kept and keepers.setdefault(kept, member.processor) != member.processor:
            raise exchange.failure(
                Code.REFUSED,
                f"{keepers[kept]} and {member.processor} have the same store; give each host its own disk",
            )
    return agreed
