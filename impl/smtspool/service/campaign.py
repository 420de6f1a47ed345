"""A campaign folder: where queries come in, where the truth is kept, where answers go out.

::

    DIR/smtspool.toml   settings
    DIR/spool/          incoming, accepted, rejected (may be shared between hosts)
    DIR/store/          the database (this host's own disk only)
    DIR/out/results/    one JSON file per answered query
    DIR/out/inputs/     one file per new test input, for ``afl-fuzz -F``
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from smtspool.errors import MisuseError
from smtspool.files import Directory, write_durable
from smtspool.spool import Spool
from smtspool.store import Store

from .config import FILE_NAME, default_toml

__all__ = ["Campaign"]


@dataclass(frozen=True, slots=True)
class Campaign:
    """The folders of one campaign; a value, nothing is open."""

    root: Path

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def out(self) -> Path:
        return self.root / "out"

    @classmethod
    def create(cls, root: Path) -> Campaign:
        """Make the folder and everything in it, durably; what already exists is kept as it is."""
        campaign = cls(root.absolute())
        with Directory.open(campaign.root, create=True) as directory:
            with suppress(FileExistsError):
                write_durable(directory, FILE_NAME, default_toml().encode(), replace=False)
            with directory.child("out", create=True) as out:
                for name in ("results", "inputs"):
                    out.child(name, create=True).close()
        Spool.open(campaign.spool, create=True).close()
        Store.open(campaign.store, create=True).close()
        return campaign

    @classmethod
    def open(cls, root: Path) -> Campaign:
        """The campaign at ``root``; MisuseError if there is none."""
        campaign = cls(root.absolute())
        if not campaign.store.is_dir() or not campaign.spool.is_dir():
            raise MisuseError(f"{root} is not a campaign folder; create one with: smtspool init {root}")
        return campaign
