"""What recordings of all protocols have in common: short names, lines that no step explains, damage."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from conformance.engine.replay import Divergence
from conformance.engine.trace import Recorded, Verdict
from conformance.engine.values import Value

__all__ = ["ALL", "changed", "explain", "harmless", "in_full", "short_names", "survivors"]

ALL = "all"  # whose the lines are where their order is exact


def short_names(lines: Sequence[Recorded]) -> Mapping[str, str]:
    """Process -> c1, c2, ... TLC's states are as wide as there are names, so each recording has its own."""
    return {who: f"c{n}" for n, who in enumerate(dict.fromkeys(line.who for line in lines), 1)}


def in_full(
    verdict: Verdict, names: Mapping[str, str], told: Callable[[Value], Value] = lambda value: value
) -> Verdict:
    """The verdict with the names of the recording; ``told`` makes a text of what would be explained next."""
    at = {who: verdict.at[short] for who, short in names.items()}
    return replace(verdict, at=at, enabled={who: told(verdict.enabled[names[who]]) for who in names})


def explain(lines: Sequence[Recorded], verdict: Verdict) -> str:
    """The first lines that no step of the model explains, and what it has or would allow there."""
    if verdict.accepted:
        return f"{sum(line.number > 0 for line in lines)} lines, all explained"
    seen: Counter[str] = Counter()
    stuck = []
    for line in lines:
        who = ALL if ALL in verdict.at else line.who
        seen[who] += 1
        if line.number and seen[who] == verdict.at.get(who, 0) + 1:
            told = {key: value for key, value in line.params.items() if key != "consumer"}
            went = f" -> {line.error or line.outcome}" if line.error or line.outcome else ""
            stuck.append(
                f"  line {line.number}: {line.who} {line.action} {told or ''}{went}\n"
                f"    enabled there: {verdict.enabled[who]}"
            )
    return (
        f"{verdict.explained} lines are explained; no step of the model explains the next"
        f"{', which is one of' if len(stuck) > 1 else ''}:\n" + "\n".join(stuck)
    )


def changed(
    line: Recorded, outcomes: Mapping[str, str], actions: Mapping[str, str] | None = None
) -> dict[str, Recorded]:
    """A line that became another action, or went another way; by what was done to it."""
    found: dict[str, Recorded] = {}
    if action := (actions or {}).get(line.action):
        found[f"becomes {action}"] = replace(line, action=action)
    if went := outcomes.get(line.outcome or ""):
        found[f"goes {went} not {line.outcome}"] = replace(line, outcome=went)
    return found


def survivors(
    lines: Sequence[Recorded],
    damaged: Mapping[str, Sequence[Recorded]],
    check: Callable[[Sequence[Sequence[Recorded]]], Sequence[Verdict]],
) -> set[str]:
    """The damage that leaves a behaviour of the model. The recording itself must be one."""
    whole, *verdicts = check([lines, *damaged.values()])
    if not whole.accepted:
        raise Divergence(explain(lines, whole), "trace")
    return {name for name, verdict in zip(damaged, verdicts, strict=True) if verdict.accepted}


def harmless(lines: Sequence[Recorded], damaged: Iterable[str], patterns: Collection[str]) -> set[str]:
    """The damage that may survive: what a pattern says, and the loss of somebody's last line, since a
    recording may end anywhere."""
    last = {line.who: line.number for line in lines}
    ends = [rf"line {number} \(.*\) dropped" for number in last.values()]
    return {name for name in damaged if any(re.search(why, name) for why in (*patterns, *ends))}
