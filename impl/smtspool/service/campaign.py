"""A campaign folder: where queries come in, where the truth is kept, where answers go out.

::

    DIR/smtspool.toml   settings
    DIR/spool/          incoming, accepted, rejected, telemetry (may be shared between hosts)
    DIR/store/          the database (this host's own disk only; the setting ``store`` moves it there)
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

from .config import FILE_NAME, default_toml, load
from .intake import Intake

__all__ = ["Campaign"]


@dataclass(frozen=True, slots=True)
class Campaign:
    """The folders of one campaign; a value, nothing is open."""

    root: Path
    store: Path

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def profile(self) -> Path:
        """What was learnt from telemetry, beside the database on this host's own disk."""
        return self.store / "profile"

    @classmethod
    def create(cls, root: Path) -> Campaign:
        """Make the folder and everything in it, durably; what already exists is kept as it is."""
        with Directory.open(root.absolute(), create=True) as directory:
            with suppress(FileExistsError):
                write_durable(directory, FILE_NAME, default_toml().encode(), replace=False)
            with directory.child("out", create=True) as out:
                for name in ("results", "inputs"):
                    out.child(name, create=True).close()
        campaign = cls._at(root.absolute())
        Spool.open(campaign.spool, create=True).close()
        Intake(campaign.spool).close()
        campaign.create_store()
        return campaign

    @classmethod
    def open(cls, root: Path) -> Campaign:
        """The campaign at ``root``; MisuseError if there is none, ConfigError for invalid settings."""
        campaign = cls._at(root.absolute())
        ours = campaign.store.is_dir() or campaign.store != campaign.root / "store"
        if not ours or not campaign.spool.is_dir():
            raise MisuseError(f"{root} is not a campaign folder; create one with: smtspool init {root}")
        return campaign

    @classmethod
    def _at(cls, root: Path) -> Campaign:
        settings, _ = load(root)
        return cls(root, root / (settings.store or "store"))

    def create_store(self) -> None:
        """Make this host's store, unless it exists."""
        Store.open(self.store, create=True).close()
