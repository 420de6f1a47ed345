"""From the committed answer to the files under ``out/``.

The commit is the truth. The files are derived from it through the store's outbox: written durably,
retried with a growing delay, given up visibly (a dead letter), and written again on request.
Writing twice gives the same file, so a kill between the file and the outbox row is harmless.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from smtspool.files import Directory, read_stable, write_durable
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
    """The step of the publishing thread; owns its database connection and its directories."""

    def __init__(self, campaign: Campaign, desk: Desk, *, open_store: Callable[[], Store]) -> None:
        self._campaign = campaign
        self._desk = desk
        self._open_store = open_store
        self._store: Store | None = None
        self._results: Directory | None = None
        self._inputs: Directory | None = None

    def _open(self) -> tuple[Store, Directory, Directory]:
        if self._store is None:
            self._store = self._open_store()
        if self._results is None:
            self._results = Directory.open(self._campaign.out / "results", create=True)
        if self._inputs is None:
            self._inputs = Directory.open(self._campaign.out / "inputs", create=True)
        return self._store, self._results, self._inputs

    def close(self) -> None:
        for resource in (self._store, self._results, self._inputs):
            if resource is not None:
                resource.close()

    def step(self) -> float | None:
        """Write what is due. Returns the pause before the next pass, in seconds."""
        # Read before the outbox: once it is set, nothing is committed any more.
        solved_all = self._desk.solved_all.is_set()
        store, results, inputs = self._open()
        due = store.due_publications(PASS_LIMIT)
        written = []
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="publication") as pool:
            failures = list(pool.map(partial(self._write, results, inputs), due))
        for publication, failure in zip(due, failures, strict=True):
            if failure is None:
                written.append(publication.id)
            else:
                log.warning("query %s: cannot publish: %s", publication.query.id, failure)
                store.publication_failed(publication.id, str(failure))
        if written:
            results.sync()
            inputs.sync()
            store.published(written)
        if due:
            return 0
        return FINISHED if solved_all and not store.counts().publications_due else 1.0

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
