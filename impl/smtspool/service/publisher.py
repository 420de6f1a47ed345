"""Publication: from the committed answer to the files under ``out/``.

A committed answer is final. Its files are derived from it through the store's outbox: they are written
durably, tried again with a growing delay, given up as a dead letter that ``status`` shows, and written again
on request. Writing twice gives the same file, so a kill between the file and the outbox row is harmless. One
service at a time publishes, under a lock that the kernel releases when it dies, so that several do not write
the same files.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from smtspool.errors import ModelError
from smtspool.files import (
    Directory,
    Draft,
    FileLock,
    is_temporary,
    sync_drafts,
)
from smtspool.store import Publication, Store

from .campaign import Campaign
from .desk import Desk
from .inputs import NewInputs, content, new_inputs
from .loops import FINISHED

__all__ = ["Publisher"]

log = logging.getLogger("smtspool")

RESULT_SCHEMA = "smtspool-result-v1"
PASS_LIMIT = 256
# Pause after a pass, in which results gather, since a pass for fifty results costs little more than for one.
GATHER_SECONDS = 0.25
# The longest pause between two passes, since failed publications become due again.
PAUSE_SECONDS = 1.0
LOCK = ".publish.lock"
# Pause after another service had the lock; short, since that one may die.
BUSY_PAUSE_SECONDS = 0.1


def result_document(publication: Publication, inputs: NewInputs) -> bytes:
    """The JSON document of one answered query (schema ``smtspool-result-v1``), a line for each member."""
    result = publication.result
    members: Mapping[str, object] = {
        "schema": RESULT_SCHEMA,
        "id": result.query_id,
        **result.answer.to_json(),
        "inputs_hex": [data.hex() for data in inputs.data],
        "inputs_naming": inputs.naming,
        "inputs_missing": inputs.why,
        "metadata": publication.remarks.metadata,
        "notes": publication.remarks.notes,
        "submissions": [one.to_json() for one in publication.submissions.listed],
        "submissions_total": publication.submissions.total,
        "completed": result.completed,
    }
    lines = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in members.items())
    return "{{\n{}\n}}\n".format(",\n".join(lines)).encode()


@dataclass(slots=True)
class _Writing:
    """The files of one publication, on the way to their names."""

    publication: Publication
    drafts: list[tuple[Draft, str]] = field(default_factory=list)
    failure: OSError | ModelError | None = None
    inputs: int = 0  # new ones

    def draft(self, results: Directory, inputs: Directory) -> None:
        """Raises ModelError when a value of the model is no byte."""
        identity = self.publication.result.query_id
        found = new_inputs(self.publication)
        self.inputs = len(found.data)
        for name, data in found.named(self.publication):
            if content(inputs, name) == data:
                continue  # it was published before, and with a new time a fuzzer would read it again
            self.drafts.append((Draft.write(inputs, data), name))
        document = result_document(self.publication, found)
        self.drafts.append((Draft.write(results, document), f"{identity}.json"))

    def publish(self) -> None:
        while self.drafts:
            draft, name = self.drafts[0]
            draft.publish(name)
            del self.drafts[0]

    def discard(self) -> None:
        for draft, _ in self.drafts:
            draft.discard()


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

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    def step(self) -> float | None:
        """Write what is due. Returns the pause before the next pass, in seconds."""
        # Read before the outbox, since no result is committed after it is set.
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
            if not due:
                return PAUSE_SECONDS
            self._publish(self._store, due, results, inputs)
        if not solved_all:
            self._desk.draining.wait(GATHER_SECONDS)
        return 0

    def _publish(self, store: Store, due: list[Publication], results: Directory, inputs: Directory) -> None:
        writings = [_Writing(publication) for publication in due]
        try:
            for one in writings:
                try:
                    one.draft(results, inputs)
                except (OSError, ModelError) as error:
                    one.failure = error
            sound = [one for one in writings if one.failure is None]
            sync_drafts([draft for one in sound for draft, _ in one.drafts])
            for one in sound:
                try:
                    one.publish()
                except OSError as error:
                    one.failure = error
        finally:
            for one in writings:
                one.discard()
        results.sync()
        inputs.sync()
        done = [one for one in writings if one.failure is None]
        store.published(
            (one.publication for one in done), inputs={one.publication.id: one.inputs for one in done}
        )
        for one in writings:
            if one.failure is not None:
                log.warning("query %s: cannot publish: %s", one.publication.result.query_id, one.failure)
                store.publication_failed(one.publication.id, str(one.failure))


def _sweep(directory: Directory) -> None:
    """Remove temporary files of killed publishers. To be called with the lock, before anything is written."""
    for name in directory.names():
        if is_temporary(name):
            with suppress(FileNotFoundError):  # an operator may have removed it
                directory.unlink(name)
