"""Durable admission against litequeue, persist-queue and huey.

The job is the same for all: every file of a directory is read, stored durably and moved away. The peers
store the bytes as they are; nothing is parsed, checked or deduplicated for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from ..files import fill, moved_in_batches
from ..inputs import Problem, small, source_name
from ..measure import Bench, Row, at_least, interleaved
from ..peers import PEERS, Peer
from .admission import admit


def run(bench: Bench) -> Iterator[Row]:
    problems = small(bench, bench.choose(20, 1_000, 5_000))
    contenders = {peer.name: partial(peer_rate, bench, peer, problems) for peer in PEERS}
    rates = interleaved(bench, {"smtspool": partial(admit, bench, problems), **contenders})
    for peer in PEERS:
        what = f"admission, {source_name(bench)}"
        yield Row.ratio(what, "files/s", rates["smtspool"], peer.name, rates[peer.name], at_least(3))


def peer_rate(bench: Bench, peer: Peer, problems: Sequence[Problem]) -> float:
    """Files per second."""
    with bench.directory() as directory:
        fill(directory / "incoming", problems)
        (directory / "queue").mkdir()
        with peer.open(directory / "queue") as put:
            taken = moved_in_batches(
                directory / "incoming",
                directory / "accepted",
                lambda bodies: put([body.decode() for body in bodies]),
            )
    return len(problems) / taken
