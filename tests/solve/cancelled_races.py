"""Run as a process of its own: many cancelled races under ``ulimit -n 256``, then count what is left."""

from __future__ import annotations

import resource
import sys
import threading
from collections.abc import Callable

from smtspool.solve import Cancellation, CancelReason, ForkServer, Hedge, HedgePolicy, Portfolio, parse_engine
from tests.solve.processes_seen import Holdings, descendants
from tests.solve.queries import EASY, HARD
from tests.solve.tracks import eventually


def race_and_cancel(portfolio: Portfolio, delay_s: float) -> None:
    token = Cancellation()
    timer = threading.Timer(delay_s, token.cancel, [CancelReason.USER])
    timer.start()
    answer = portfolio.solve(HARD, timeout_s=30, cancel=token)
    timer.join()
    assert answer.reason == "cancelled: user", answer


def wait_until(holds: Callable[[], bool], what: str) -> None:
    if not eventually(holds):
        sys.exit(f"{what}: {Holdings.now()} {descendants()}")


def main(races: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    first = Holdings.now()
    servers = [ForkServer(parse_engine(name)) for name in ("bitwuzla", "z3", "cvc5")]
    with Portfolio(servers, policy=HedgePolicy(Hedge.TOGETHER)) as portfolio:
        portfolio.solve(EASY, timeout_s=30)
        race_and_cancel(portfolio, 0.05)
        for race in range(races):
            race_and_cancel(portfolio, (race % 10) / 1e3)
        answer = portfolio.solve(EASY, timeout_s=30)
        assert answer.verified_by, answer
        wait_until(lambda: "Z" not in descendants().values(), "zombies stay")
        # At most: three fork servers; per engine a helper for solving, one for checking, one spare.
        wait_until(lambda: len(descendants()) <= 12, "helpers pile up")
    for server in servers:
        server.close()
    wait_until(lambda: Holdings.now() == first, f"not what it was at the start, {first}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
