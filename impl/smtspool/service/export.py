"""New test inputs for a fuzzer, derived from the store and compared with the published files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from smtspool.errors import ModelError
from smtspool.files import Directory, write_durable
from smtspool.store import Store

from .campaign import Campaign
from .inputs import NewInputs, content, new_inputs

__all__ = ["Export", "export_inputs"]

EXPORT_SCHEMA = "smtspool-export-v1"


@dataclass(slots=True)
class Export:
    """What an export did and found."""

    written: int = 0  # files that the folder did not have, or had with other content
    present: int = 0
    sat: int = 0  # answers that could give an input
    namings: Counter[str] = field(default_factory=Counter)  # inputs without a witness, by naming
    without: Counter[str] = field(default_factory=Counter)  # sat answers without an input, by reason
    damaged: list[str] = field(default_factory=list)  # files of out/inputs that differ from the store

    def to_json(self) -> dict[str, object]:
        return {"schema": EXPORT_SCHEMA, **{name: getattr(self, name) for name in self.__slots__}}

    def notes(self) -> Iterator[str]:
        """Notes for the user, a line each."""
        for naming, count in sorted(self.namings.items()):
            yield f"{count} without a witness: {naming} gave the bytes; those without a symbol are 00"
        for why, count in sorted(self.without.items()):
            yield f"{count} sat without an input: {why}"
        if self.without:
            yield "say which symbol is which byte: submit an envelope with a witness, see docs/queries.md"
        if not self.sat:
            yield "no query is sat yet, so there is no input"
        for name in self.damaged:
            yield f"damaged: out/inputs/{name} is not what was published; exported from the store"
        if self.damaged:
            yield "`smtspool republish DIR --all` and the next `smtspool serve` write out/ anew"


def export_inputs(campaign: Campaign, folder: Path) -> Export:
    """Write all new inputs to ``folder``, durably; ``afl-fuzz -F`` can read it.

    They are derived from the store. A published file that differs is reported, and the content from the store
    exported.
    """
    folder.mkdir(parents=True, exist_ok=True)
    export = Export()
    with (
        Store.view(campaign.store) as store,
        _published(campaign) as published,
        Directory.open(folder.resolve()) as target,
    ):
        for publication in store.sat_publications():
            try:
                found = new_inputs(publication)
            except ModelError as error:
                found = NewInputs(why=str(error))
            export.sat += 1
            if found.why is not None:
                export.without[found.why] += 1
            if found.naming is not None:
                export.namings[found.naming] += len(found.data)
            for name, data in found.named(publication):
                if published is not None and content(published, name) not in (None, data):
                    export.damaged.append(name)
                if content(target, name) == data:
                    export.present += 1
                    continue
                write_durable(target, name, data, sync=False)
                export.written += 1
        target.sync()
    return export


def _published(campaign: Campaign) -> AbstractContextManager[Directory | None]:
    """``out/inputs``; None if it was deleted, which is allowed."""
    try:
        return Directory.open(campaign.out / "inputs")
    except FileNotFoundError:
        return nullcontext()
