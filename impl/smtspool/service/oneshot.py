"""Solving scripts outside a campaign, by the workers of a service on a store in a temporary folder."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from smtspool.errors import AdmissionError, InfrastructureError
from smtspool.query import Answer, Query, parse_file
from smtspool.solve import CancelReason
from smtspool.store import Patience, Store

from .config import Settings
from .desk import Desk
from .engines import Engines
from .loops import Health, Loop
from .worker import Worker

__all__ = ["Solved", "check", "solve_scripts"]

# Long enough that no lease expires while its worker thread is alive.
LEASE_SECONDS = 24 * 3600.0
POLL_SECONDS = 0.2
# With less time than this, a query should not spend it on the start of an engine.
PATIENT_MS = 5_000

# A name, and its content or the reason why it could not be read.
Script = tuple[str, bytes | AdmissionError]


@dataclass(frozen=True, slots=True)
class Solved:
    """One ``check-sat`` of one script (``number`` counts from 1), or the script's refusal."""

    script: str
    number: int
    query: Query | None
    answer: Answer | None
    refusal: AdmissionError | None = None


def check(
    text: str | bytes, *, timeout_ms: int = 10_000, engines: Sequence[str] = Settings().engines
) -> list[Answer]:
    """Answers to the ``check-sat`` commands of an SMT-LIB script, in order; every ``sat`` is verified.

    ``text`` is the script, not the name of a file; ``timeout_ms`` is for each query; ``engines`` are names
    and ``NAME=COMMAND``, as in the settings. Raises AdmissionError if the script is refused (reason and place
    in the message), ConfigError for an unknown engine or a bad limit, InfrastructureError if no engine works.

    >>> import smtspool
    >>> script = "(declare-const x (_ BitVec 8))(assert (= x #x2a))(check-sat)(assert (= x #x00))(check-sat)"
    >>> [first, second] = smtspool.check(script)
    >>> print(first.status, first.model, second.status)
    sat {'x': '#x2a'} unsat
    """
    if isinstance(text, str):
        text = text.encode(errors="surrogatepass")  # refused as any other text that is not UTF-8
    if not isinstance(text, bytes):
        raise TypeError(f"the script is a str or bytes, not {type(text).__name__}; a file: path.read_bytes()")
    if isinstance(engines, str):
        raise TypeError(f"engines is a sequence of names, as in engines=({engines!r},)")
    settings = Settings(timeout_ms=timeout_ms, engines=tuple(engines))
    answers = []
    for solved in solve_scripts([("script.smt2", text)], settings):
        if solved.refusal is not None:
            raise solved.refusal
        assert solved.answer is not None
        answers.append(solved.answer)
    return answers


def solve_scripts(scripts: Iterable[Script], settings: Settings) -> Generator[Solved, None, None]:
    """Solve scripts; results come in the order of the scripts and of their ``check-sat``\\ s.

    Equal queries, and queries equal up to names, are solved once. Close the iterator to stop early. Raises
    InfrastructureError if no engine works.
    """
    asked: list[Solved] = []
    queries: list[Query] = []
    for name, content in scripts:
        try:
            if isinstance(content, AdmissionError):
                raise content
            parsed = parse_file(Path(name).name, content)
        except AdmissionError as refusal:
            asked.append(Solved(name, 0, None, None, refusal))
            continue
        queries.extend(parsed)
        asked.extend(Solved(name, number, query, None) for number, query in enumerate(parsed, 1))
    with tempfile.TemporaryDirectory(prefix="smtspool-") as folder, ExitStack() as stack:
        store = stack.enter_context(Store.open(Path(folder), create=True))
        store.ingest(_together(queries))
        desk, health = Desk(), Health()
        if queries:
            stack.enter_context(_solving(store, queries, settings, desk, health))
        for one in asked:
            if one.query is None:
                yield one
            else:
                answer = _await(store, desk, health, one.query.id, settings.max_attempts)
                yield replace(one, answer=_as_asked(one.query, answer))


def _together(queries: Sequence[Query]) -> list[Query]:
    """``queries``, each with the values that any of the same id asks for."""
    asked: dict[str, dict[str, None]] = {}
    for query in queries:
        asked.setdefault(query.id, {}).update(dict.fromkeys(query.values))
    return [replace(query, values=tuple(asked[query.id])) if asked[query.id] else query for query in queries]


def _as_asked(query: Query, answer: Answer) -> Answer:
    """``answer`` with the values of the terms that ``query`` asks for, and no others."""
    if answer.values is None:
        return answer
    return replace(
        answer, values={term: answer.values[term] for term in query.values if term in answer.values}
    )


@contextmanager
def _solving(
    store: Store, queries: Sequence[Query], settings: Settings, desk: Desk, health: Health
) -> Iterator[None]:
    """Workers on ``store`` until the block ends; all their ``queries`` are there already."""
    stop = threading.Event()
    desk.admitted_all.set()
    # Results are printed in the order of the scripts, so they are solved in that order.
    settings = replace(settings, lease_seconds=LEASE_SECONDS, order="fifo")
    patience = Patience(attempts=settings.max_attempts, deaths=settings.max_deaths)
    patient = all((settings.timeout_ms or query.timeout_ms) >= PATIENT_MS for query in queries)
    first = queries[0] if patient else None
    logics = {query.logic for query in queries}
    with store.register() as owner, Engines(settings, first=first, logics=logics) as engines:
        loops: list[Loop] = []
        for number in range(1, min(settings.jobs, len(queries)) + 1):
            worker = Worker(
                owner.name,
                settings,
                desk,
                open_store=partial(Store.open, store.directory, patience=patience),
                open_portfolio=engines.portfolio,
                committed=lambda: None,
                clock=engines.clock,
            )
            loops.append(
                Loop(
                    f"worker-{number}",
                    worker.step,
                    stop=stop,
                    health=health,
                    defect=health.fatal,
                    leave=worker.close,
                )
            )
        try:
            for loop in loops:
                loop.start()
            yield
        finally:
            desk.draining.set()
            stop.set()
            desk.cancel_all(CancelReason.USER)
            for loop in loops:
                if loop.ident is not None:
                    loop.hurry()
                    loop.join()


def _await(store: Store, desk: Desk, health: Health, query_id: str, failures: int) -> Answer:
    """Wait for the answer. Raises InfrastructureError if a worker fails ``failures`` times in a row."""
    while True:
        with desk.answered:
            result = store.result(query_id)
            if result is not None:
                return result.answer
            if health.fatal_error is not None:
                raise health.fatal_error
            for ailment in health.ailing().values():
                if ailment.failures >= failures:
                    raise InfrastructureError(ailment.message)
            # The lock spans look and wait, so no commit in between is missed. The timeout is for a worker
            # that ended without a commit.
            desk.answered.wait(POLL_SECONDS)
