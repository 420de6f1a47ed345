"""From the committed answer to the files under ``out/``.

The commit is the truth. The files are derived from it through the store's outbox: written durably,
retried with a growing delay, given up visibly (a dead letter), and written again on request.
Writing twice gives the same file, so a kill between the file and the outbox row is harmless.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from smtspool.files import Directory, is_temporary, read_stable, write_durable
from smtspool.query import Limits, candidate
from smtspool.store import Publication, Store

from .campaign import Campaign
from .desk import Desk
from .loops import FINISHED

__all__ = ["Publisher", "export_inputs", "result_document"]

log = logging.getLogger("smtspool")

RESULT_SCHEMA = "smtspool-result-v1"
PASS_LIMIT = 256
# Files synced at the same time: they share the commits of the file system's journal (measured: 20 x).
WRITERS = 8
# Looked at without being woken this often: failed publications become due again.
PAUSE_SECONDS = 1.0
# A temporary file that old belongs to a service that was killed.
ABANDONED_SECONDS = 3600.0


def result_document(publication: Publication) -> dict[str, object]:
    """The JSON document of one answered query (schema ``smtspool-result-v1``)."""
    query, result = publication.query, publication.result
    new_input = _new_input(publication)
    return {
        "schema": RESULT_SCHEMA,
        "id": query.id,
        **result.answer.to_json(),
        "input_hex": None if new_input is None else new_input.hex(),
        "metadata": dict(query.metadata),
        "completed": result.completed,
    }


def _new_input(publication: Publication) -> bytes | None:
    """The bytes that take the branch, from the model and the query's first witness."""
    model = publication.result.answer.model
    return None if model is None else candidate(publication.query, model)


class Publisher:
    """The step of the publishing thread; owns its database connection."""

    def __init__(
        self,
        campaign: Campaign,
        desk: Desk,
        *,
        open_store: Callable[[], Store],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._campaign = campaign
        self._desk = desk
        self._open_store = open_store
        self._wall = wall
        self._store: Store | None = None

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    def step(self) -> float | None:
        """Write what is due. Returns the pause before the next pass, in seconds."""
        # Read before the outbox: once it is set, nothing is committed any more.
        solved_all = self._desk.solved_all.is_set()
        if self._store is None:
            self._store = self._open_store()
            with self._folder("results") as results, self._folder("inputs") as inputs:
                _sweep(results, self._wall())
                _sweep(inputs, self._wall())
        due = self._store.due_publications(PASS_LIMIT)
        if not due:
            return FINISHED if solved_all and not self._store.counts().publications_due else PAUSE_SECONDS
        self._publish(self._store, due)
        return 0

    def _folder(self, name: str) -> Directory:
        # Opened anew by every pass: an operator may have removed or replaced it.
        return Directory.open(self._campaign.out / name, create=True)

    def _publish(self, store: Store, due: list[Publication]) -> None:
        with self._folder("results") as results, self._folder("inputs") as inputs:
            with ThreadPoolExecutor(WRITERS, thread_name_prefix="publication") as pool:
                failures = list(pool.map(partial(self._write, results, inputs), due))
            outcomes = list(zip(due, failures, strict=True))
            written = [publication.id for publication, failure in outcomes if failure is None]
            if written:
                results.sync()
                inputs.sync()
                store.published(written)
        for publication, failure in outcomes:
            if failure is not None:
                log.warning("query %s: cannot publish: %s", publication.query.id, failure)
                store.publication_failed(publication.id, str(failure))

    def _write(self, results: Directory, inputs: Directory, publication: Publication) -> OSError | None:
        """Write the files of one result; why that failed, if it did."""
        document = json.dumps(result_document(publication), indent=1).encode() + b"\n"
        new_input = _new_input(publication)
        try:
            if new_input:
                # AFL++ reads every file of a foreign directory whose name does not start with a dot.
                name = f"id:{publication.id:06},query:{publication.query.id[:16]}"
                write_durable(inputs, name, new_input, sync=False)
            write_durable(results, f"{publication.query.id}.json", document, sync=False)
        except OSError as error:
            return error
        return None


def _sweep(directory: Directory, now: float) -> None:
    """Remove what killed services were writing; the age leaves those of living ones alone."""
    for name in directory.names():
        if is_temporary(name):
            with suppress(FileNotFoundError):  # another service sweeps too
                if directory.stat(name).st_mtime < now - ABANDONED_SECONDS:
                    directory.unlink(name)


def export_inputs(campaign: Campaign, folder: Path) -> int:
    """Copy the new inputs that ``folder`` does not have yet; returns how many. Made for ``afl-fuzz -F``."""
    folder.mkdir(parents=True, exist_ok=True)
    exported = 0
    with Directory.open(campaign.out / "inputs") as inputs, Directory.open(folder.absolute()) as target:
        present = set(target.names())
        for name in sorted(set(inputs.names()) - present):
            if not name.startswith("."):
                data, _ = read_stable(inputs, name, Limits().witness)
                write_durable(target, name, data, sync=False)
                exported += 1
        target.sync()
    return exported
