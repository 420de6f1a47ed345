"""From the committed answer to the files under ``out/``.

The commit is the truth. The files are derived from it through the store's outbox: written durably,
retried with a growing delay, given up visibly (a dead letter), and written again on request.
Writing twice gives the same file, so a kill between the file and the outbox row is harmless. One service
at a time publishes, under a lock that it gives back by dying, so that several do not write the same files.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from smtspool.errors import AdmissionError
from smtspool.files import Directory, FileLock, Unstable, is_temporary, read_stable, write_durable
from smtspool.query import Limits, candidate
from smtspool.store import Publication, Store

from .campaign import Campaign
from .desk import Desk
from .loops import FINISHED

__all__ = ["Publisher", "export_inputs"]

log = logging.getLogger("smtspool")

RESULT_SCHEMA = "smtspool-result-v1"
PASS_LIMIT = 256
# Files synced at the same time: they share the commits of the file system's journal (measured: 20 x).
WRITERS = 8
# Looked at without being woken this often: failed publications become due again.
PAUSE_SECONDS = 1.0
LOCK = ".publish.lock"
# Another service publishes: look again soon, it may have died.
BUSY_PAUSE_SECONDS = 0.1


def result_document(publication: Publication) -> dict[str, object]:
    """The JSON document of one answered query (schema ``smtspool-result-v1``)."""
    query, result = publication.query, publication.result
    new_inputs = _new_inputs(publication)
    return {
        "schema": RESULT_SCHEMA,
        "id": query.id,
        **result.answer.to_json(),
        "inputs_hex": [new_input.hex() for new_input in new_inputs],
        "metadata": dict(query.metadata),
        "completed": result.completed,
    }


def _new_inputs(publication: Publication) -> list[bytes]:
    """The inputs that take the branch: the model written over each input known to reach it, oldest first."""
    model = publication.result.answer.model
    if model is None:
        return []
    queries = [replace(publication.query, witness=witness) for witness in publication.witnesses]
    made = (candidate(query, model) for query in queries)
    return list(dict.fromkeys(new_input for new_input in made if new_input))


class Publisher:
    """The step of the publishing thread; owns its database connection."""

    def __init__(
        self,
        campaign: Campaign,
        desk: Desk,
        *,
        open_store: Callable[[], Store],
    ) -> None:
        self._campaign = campaign
        self._desk = desk
        self._open_store = open_store
        self._store: Store | None = None
        self._swept = False
        # For as long as the publisher: starting threads for every pass took a third of its CPU time.
        self._writers = ThreadPoolExecutor(WRITERS, thread_name_prefix="publication")

    def close(self) -> None:
        self._writers.shutdown()
        if self._store is not None:
            self._store.close()

    def step(self) -> float | None:
        """Write what is due. Returns the pause before the next pass, in seconds."""
        # Read before the outbox: once it is set, nothing is committed any more.
        solved_all = self._desk.solved_all.is_set()
        if self._store is None:
            self._store = self._open_store()
        if self._swept and not self._store.counts().publications_due:
            return FINISHED if solved_all else PAUSE_SECONDS
        with (
            Directory.open(self._campaign.out, create=True) as out,
            FileLock(out, LOCK) as lock,
            out.child("results", create=True) as results,
            out.child("inputs", create=True) as inputs,
        ):
            if not lock.try_acquire():
                return BUSY_PAUSE_SECONDS
            if not self._swept:
                _sweep(results)
                _sweep(inputs)
                self._swept = True
            due = self._store.due_publications(PASS_LIMIT)
            self._publish(self._store, due, results, inputs)
        return 0 if due else PAUSE_SECONDS

    def _publish(self, store: Store, due: list[Publication], results: Directory, inputs: Directory) -> None:
        writing = [self._writers.submit(self._write, results, inputs, publication) for publication in due]
        wait(writing)  # nobody writes any more when the folders are closed, whatever result() raises
        outcomes = [(publication, one.result()) for publication, one in zip(due, writing, strict=True)]
        written = [publication.id for publication, failure in outcomes if failure is None]
        if written:
            results.sync()
            inputs.sync()
            store.published(written)
        for publication, failure in outcomes:
            if failure is not None:
                log.warning("query %s: cannot publish: %s", publication.query.id, failure)
                store.publication_failed(publication.id, str(failure))

    def _write(self, results: Directory, inputs: Directory, publication: Publication) -> Exception | None:
        """Write the files of one result; why that failed, if it did."""
        try:
            document = json.dumps(result_document(publication), indent=1).encode() + b"\n"
            for number, new_input in enumerate(_new_inputs(publication)):
                # AFL++ reads every file of a foreign directory whose name does not start with a dot.
                name = f"id:{publication.id:06},query:{publication.query.id[:16]}"
                name += f",witness:{number}" if number else ""
                write_durable(inputs, name, new_input, sync=False)
            write_durable(results, f"{publication.query.id}.json", document, sync=False)
        except (OSError, AdmissionError) as error:  # the latter: a value of the model is no byte
            return error
        return None


def _sweep(directory: Directory) -> None:
    """Remove what killed publishers were writing. For the holder of the lock, who has written nothing yet."""
    for name in directory.names():
        if is_temporary(name):
            with suppress(FileNotFoundError):  # an operator tidies up too
                directory.unlink(name)


def export_inputs(campaign: Campaign, folder: Path) -> int:
    """Copy the new inputs that ``folder`` does not have yet; returns how many. Made for ``afl-fuzz -F``.

    One that is being published again in this moment is left for the next export.
    """
    folder.mkdir(parents=True, exist_ok=True)
    exported = 0
    with Directory.open(campaign.out / "inputs") as inputs, Directory.open(folder.absolute()) as target:
        present = set(target.names())
        for name in sorted(set(inputs.names()) - present):
            if not name.startswith("."):
                with suppress(Unstable):
                    data, _ = read_stable(inputs, name, Limits().witness)
                    write_durable(target, name, data, sync=False)
                    exported += 1
        target.sync()
    return exported
