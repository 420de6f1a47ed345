"""A campaign folder: settings, the spool for queries, the store, and the folder for answers.

::

    DIR/smtspool.toml   settings
    DIR/spool/          incoming, accepted, rejected, telemetry (may be shared between hosts)
    DIR/store/          the database (this host's own disk only; the setting ``store`` moves it there)
    DIR/out/results/    one JSON file per answered query
    DIR/out/inputs/     one file per new test input, for ``afl-fuzz -F``

The paths of DIR and of the setting ``store`` may contain symbolic links, which are resolved once, when the
campaign is opened. Links inside these folders are never followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from smtspool.errors import MisuseError
from smtspool.files import Directory, write_durable
from smtspool.spool import Spool
from smtspool.store import Result, Store

from .config import FILE_NAME, default_toml, load
from .intake import Intake

__all__ = ["Campaign"]


@dataclass(frozen=True, slots=True)
class Campaign:
    """The folders of one campaign. It is a value and holds nothing open.

    >>> import smtspool, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> campaign = smtspool.Campaign.create(folder.name)
    >>> campaign.submit([("a.smt2", "(declare-const in_0 (_ BitVec 8))(assert (= in_0 #x2a))(check-sat)")])
    ['a.smt2']
    >>> with smtspool.Service(campaign, once=True) as service:
    ...     done = service.join()
    >>> [result.answer.model for result in campaign.results()]
    [{'in_0': '#x2a'}]
    >>> folder.cleanup()
    """

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
    def create(cls, root: str | os.PathLike[str]) -> Campaign:
        """Make the folder and everything in it, durably; what already exists is kept as it is.

        Raises MisuseError for a link that leads nowhere, and what :meth:`open` raises for invalid settings.
        """
        folder = _resolved(root)
        if os.path.lexists(root) and not folder.exists():
            raise MisuseError(f"{os.fspath(root)} is a link to {folder}, which does not exist")
        with Directory.open(folder, create=True) as directory:
            with suppress(FileExistsError):
                write_durable(directory, FILE_NAME, default_toml().encode(), replace=False)
            with directory.child("out", create=True) as out:
                for name in ("results", "inputs"):
                    out.child(name, create=True).close()
        campaign = cls._at(folder)
        Spool.open(campaign.spool, create=True).close()
        Intake(campaign.spool).close()
        campaign.create_store()
        return campaign

    @classmethod
    def open(cls, root: str | os.PathLike[str]) -> Campaign:
        """The campaign at ``root``; MisuseError if there is none, ConfigError for invalid settings."""
        campaign = cls._at(_resolved(root))
        if not campaign._is_there():
            typed = os.fspath(root)
            leads = "" if Path(typed).absolute() == campaign.root else f" (it leads to {campaign.root})"
            raise MisuseError(
                f"{typed}{leads} is not a campaign folder; create one with: smtspool init {typed}"
            )
        return campaign

    @classmethod
    def _at(cls, root: Path) -> Campaign:
        settings, _ = load(root)
        return cls(root, _resolved(root / settings.store) if settings.store else root / "store")

    @classmethod
    def exists(cls, root: str | os.PathLike[str]) -> bool:
        """Whether there is a campaign at ``root``; ConfigError for invalid settings."""
        return cls._at(_resolved(root))._is_there()

    def _is_there(self) -> bool:
        """Without looking for a folder of the setting ``store``: each host makes its own when it serves."""
        ours = self.store.is_dir() or self.store != self.root / "store"
        return ours and self.spool.is_dir()

    def submit(self, files: Iterable[tuple[str, bytes | str]]) -> list[str]:
        """Put files, each a name ending in ``.smt2`` or ``.json`` and its content, into the spool, durably.

        Text is written as UTF-8. Returns the names of the files in the spool; a name that is taken gets a
        fresh suffix. The content is not checked here; a service rejects bad files. Raises MisuseError for a
        name that services ignore, and TypeError for anything but pairs.
        """
        pairs = map(_file, [files] if isinstance(files, str | bytes) else files)
        with Spool.open(self.spool) as spool:
            return spool.submit_many(pairs)

    def results(self, after: int = 0) -> Iterator[Result]:
        """The committed answers in the order of completion, from the one behind number ``after`` on.

        It reads the store, needs no running service, and ends with the latest answer. For one thread only.
        """
        with Store.view(self.store) as store:
            yield from store.results(after)

    def create_store(self) -> None:
        """Make this host's store, unless it exists."""
        Store.open(self.store, create=True).close()


def _file(pair: object) -> tuple[str, bytes]:
    match pair:
        case (str(name), bytes(content)):
            return name, content
        case (str(name), str(text)):
            return name, text.encode("utf-8", "surrogatepass")  # half a character is refused with its place
    raise TypeError(f"submit takes pairs of name and content, [('a.smt2', b'...')], not {pair!r:.80}")


def _resolved(path: str | os.PathLike[str]) -> Path:
    """Absolute and without links. A circle of links stays as it is, and opening it fails."""
    return Path(os.path.realpath(path))
