"""An exception at every call; recorded fleets are behaviours of the model, damaged recordings are not; and
the same under ``mpiexec``."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conformance.engine.replay import Divergence
from conformance.engine.trace import Recorded
from conformance.qualification.environment import places
from conformance.qualification.mpi import Job, job
from conformance.qualification.sweep import CALLS, FreeRun, Strike, sweep
from conformance.qualification.trace import check, damage, explain
from conformance.traces import harmless, survivors

TWO = ("hosta", "hostb")

# Damage that leaves a behaviour of the model, and why.
HARMLESS = (
    r"\w+Error\) (dropped|doubled)",  # an exception may as well have come a moment later, unseen
)


@pytest.mark.slow
def test_an_exception_at_every_call_ends_as_it_must() -> None:
    with places() as directories:
        runs = list(sweep(directories, TWO, renewals=1))
    struck = Counter(run.struck for run in runs)
    assert set(struck) == set(CALLS)
    assert len(runs) > 500
    recordings = [run.lines for run in runs[::8]]  # `make conformance` checks all
    for lines, verdict in zip(recordings, check(recordings, TWO), strict=True):
        assert verdict.accepted, explain(lines, verdict)


@pytest.mark.slow
def test_three_ranks_and_locks_that_are_not_shared() -> None:
    three = ("hosta", "hostb", "hosta")
    with places() as directories:
        whole = FreeRun(directories, three, renewals=2).run()
        apart = FreeRun(directories, three, shared=False).run()
        late = FreeRun(directories, three, Strike(2, "try_lock", 0, LookupError("injected"))).run()
    assert [master.controller and master.controller.ledger.successes for master in whole.fleet.masters] == [
        2
    ] * 3
    assert apart.fleet.network.code == late.fleet.network.code == 65
    # The first rank to act on it may take the others along before they have a result.
    results = [master.result for master in apart.fleet.masters if master.result is not None]
    assert results and all("locks are not shared" in result.error for result in results)
    recordings = [whole.lines, apart.lines, late.lines]
    for lines, verdict in zip(recordings, check(recordings, three), strict=True):
        assert verdict.accepted, explain(lines, verdict)


@pytest.mark.slow
def test_every_systematic_damage_is_rejected_or_harmless() -> None:
    with places() as directories:
        lines = (
            FreeRun(directories, TWO, Strike(1, "try_lock", 2, LookupError("injected")), renewals=0)
            .run()
            .lines
        )
    damaged = damage(lines)
    survived = survivors(lines, damaged, partial(check, hosts=TWO))
    assert survived <= harmless(lines, damaged, HARMLESS)
    assert len(survived) < len(damaged) / 4


later = itertools.count(1_000_000)


def line(
    who: str, action: str, outcome: str | None = None, error: str | None = None, **params: Any
) -> Recorded:
    """A line after all that was recorded."""
    at = next(later)
    return Recorded(at, who, at, at, action, {"rank": int(who[-1]), **params}, outcome, error)


def until(lines: list[Recorded], who: str, action: str, **params: Any) -> list[Recorded]:
    """The lines before that one."""
    for index, one in enumerate(lines):
        if (one.who, one.action) == (who, action) and params.items() <= one.params.items():
            return lines[:index]
    raise AssertionError(f"no {action} of {who}")


@pytest.mark.slow
def test_what_an_exception_in_a_wait_has_closed_the_others_may_see_before_it_is_told() -> None:
    with places() as directories:
        whole = FreeRun(directories, TWO, renewals=0).run().lines
    gone = [
        *until(whole, "rank 1", "Reacquire", round=0),
        line("rank 1", "Reacquire", error="FileNotFoundError", round=0),
        line("rank 1", "Enter", phase="reacquired", round=0),
        line("rank 0", "Contain", stage="reacquired"),
        line("rank 0", "Consume", "Refused", at="startup"),
        line("rank 0", "Abort", error="Gone", code=65),
    ]
    [verdict, silent] = check([gone, [one for one in gone if one.action != "Contain"]], TWO)
    assert verdict.accepted, explain(gone, verdict)
    assert not silent.accepted


@pytest.mark.slow
def test_a_root_that_is_interrupted_while_it_observes_may_have_asked() -> None:
    with places() as directories:
        whole = FreeRun(directories, TWO, renewals=1).run().lines
    before = until(whole, "rank 0", "Observe", at="renewal")
    struck = line("rank 0", "Observe", error="KeyboardInterrupt", at="renewal")
    alone = [
        line("rank 1", "Observe", "Observed", at="renewal"),
        line("rank 1", "Enter", phase="membership", round=0),
        line("rank 1", "Exchange", "Expired", phase="membership", round=0),
        line("rank 1", "Consume", "Failure", at="renewal"),
        line("rank 1", "Shutdown"),
        line("rank 1", "Abort", error="Gone", code=70),
    ]
    [verdict, unasked] = check([[*before, struck, *alone], [*before, *alone]], TWO)
    assert verdict.accepted, explain([*before, struck, *alone], verdict)
    assert not unasked.accepted


@pytest.mark.slow
def test_a_rank_that_counts_without_the_others_is_no_behaviour() -> None:
    with places() as directories:
        lines = FreeRun(directories, TWO, renewals=0).run().lines
    commits = [index for index, line in enumerate(lines) if line.params.get("phase") == "commit"]
    alone = [line for index, line in enumerate(lines) if index not in commits]
    whole, verdict = check([lines, alone], TWO)
    assert whole.accepted and not verdict.accepted


def test_a_rank_that_swallows_is_seen() -> None:
    class Deaf(FreeRun):
        def _live(self, rank: int) -> None:
            try:
                self._serve(rank, self.fleet.masters[rank])
            except BaseException:  # noqa: BLE001  the fault that is to be seen
                self.ended[rank] = None
            with self._stir:
                self.ended.setdefault(rank, None)
                self._alive.discard(rank)
                self._let_time_pass()

    with places() as directories, pytest.raises(Divergence, match="rank 1"):
        Deaf(directories, TWO, Strike(1, "try_lock", 0, KeyboardInterrupt())).run()


JOBS = {
    "two hosts, two renewals": (TWO, {"renewals": 2}, 0),
    "three ranks on two hosts": (("hosta", "hostb", "hosta"), {"renewals": 1}, 0),
    "one host": (("hosta", "hosta"), {}, 0),
    "a rank that does not know itself": (TWO, {"strike": [1, "Get_rank", 1, "ordinary"]}, 65),
    "an ordinary exception in a round": (TWO, {"strike": [1, "try_lock", 0, "ordinary"]}, 65),
    "an ordinary exception at renewal": (
        TWO,
        {"renewals": 1, "timeout": 3.0, "strike": [0, "isend", 25, "ordinary"]},
        70,
    ),
    "an interrupt in a wait": (TWO, {"timeout": 3.0, "strike": [1, "pause", 3, "control"]}, 70),
}


@pytest.mark.slow
def test_the_same_under_mpiexec(tmp_path: Path) -> None:
    recorded: dict[tuple[str, ...], dict[str, Job]] = {}
    for number, (name, (hosts, how, code)) in enumerate(JOBS.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        arguments: Any = how
        done = recorded.setdefault(hosts, {})[name] = job(folder, hosts, **arguments)
        assert done.code == code and done.lines, f"{name}: {done.said}"
        if code == 0:
            assert done.left == []
    for hosts, jobs in recorded.items():
        verdicts = check([done.lines for done in jobs.values()], hosts, ordered=False)
        for (name, done), verdict in zip(jobs.items(), verdicts, strict=True):
            assert verdict.accepted, f"{name}: {explain(done.lines, verdict)}"


@pytest.mark.slow
def test_recordings_of_processes_are_ordered_by_when_steps_began_and_ended(tmp_path: Path) -> None:
    done = job(tmp_path, ("hosta", "hosta"))
    first = next(line for line in done.lines if line.action == "Exchange")
    late = [replace(line, clock=line.clock + 1e6, begun=(line.begun or 0) + 1e6) for line in done.lines]
    mixed = [late[index] if line is first else line for index, line in enumerate(done.lines)]
    whole, verdict = check([done.lines, mixed], ("hosta", "hosta"), ordered=False)
    assert whole.accepted and not verdict.accepted
