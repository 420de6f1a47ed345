"""The environment of a spool: its producers, and how a file is recognised again."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from conformance.engine.replay import Refused
from smtspool.files import Directory

__all__ = ["CONTENTS", "FOLDERS", "GOOD", "IDENTITY", "LOCK", "SUFFIX", "Producer", "identity"]

SUFFIX = ".smt2"
LOCK = ".ingest.lock"
FOLDERS = ("incoming", "accepted", "rejected")
_QUERY = "(set-logic QF_BV)(declare-const x (_ BitVec 8))(assert (= x #x{:02x}))(check-sat)\n"
CONTENTS: Mapping[str, bytes] = {
    "g": _QUERY.format(1).encode(),
    "h": _QUERY.format(2).encode(),
    "bad": b"(assert (= 1 1)\n",
}
GOOD = frozenset({"g", "h"})
IDENTITY = ("dev", "ino", "mode", "size", "mtime_ns")


def identity(path: str) -> tuple[int, ...] | None:
    """The part of a file's identity that a rename does not change; None when there is no file."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return tuple(getattr(status, f"st_{key}") for key in IDENTITY)


class Producer:
    """Publishes and replaces files in the spool of ``root``.

    ``variant`` decides what the model does not tell apart: with which kind of bad file and which way of
    replacing the producer begins.
    """

    def __init__(self, root: str, files: tuple[str, ...], variant: int) -> None:
        self.spool = f"{root}/spool"
        self.files = files
        self._root = root
        self._variant = variant
        self._drafts = 0

    def incoming(self, file: str) -> str:
        """The path under which ``file`` is published."""
        return f"{self.spool}/incoming/{file}{SUFFIX}"

    def lay_past(self) -> dict[str, tuple[int, ...]]:
        """Make settled files under the names that will be used. No step may change them."""
        old = [f"accepted/{file}{SUFFIX}" for file in self.files]
        old += [f"rejected/{file}{SUFFIX}{ending}" for file in self.files for ending in ("", ".error")]
        for name in old:
            Path(self.spool, name).write_bytes(b"from before")
        return {name: identity(f"{self.spool}/{name}") or () for name in old}

    def _draft(self, file: str, content: str) -> Path:
        """A file of the producer, not yet published; bad ones in turn as text, as a link and as a FIFO. Each
        has an mtime of its own, so that an inode number that the file system gives out again is no ABA,
        which F364 section 3.2 leaves out."""
        self._drafts += 1
        draft = Path(self._root) / f"{file}.draft"
        kind = (self._variant // 2 + self._drafts) % 3 if content not in GOOD else 0
        if kind == 0:
            draft.write_bytes(CONTENTS[content])
        elif kind == 1:
            (draft.parent / "elsewhere").write_bytes(CONTENTS["g"])
            draft.symlink_to(draft.parent / "elsewhere")
        else:
            os.mkfifo(draft)
        self._stamp(draft)
        return draft

    def waiting(self) -> list[str]:
        """The files in incoming/."""
        return [file for file in self.files if os.path.lexists(self.incoming(file))]

    def _stamp(self, path: str | Path) -> None:
        moment = 1_000_000_000 + self._drafts * 1_000_000_007
        os.utime(path, ns=(moment, moment), follow_symlinks=False)

    def publish(self, file: str, content: str) -> None:
        """Rename a new file into incoming/; :class:`Refused` where the name is taken."""
        draft = self._draft(file, content)
        with Directory.open(self._root) as mine, Directory.open(f"{self.spool}/incoming") as incoming:
            try:
                mine.rename(draft.name, incoming, file + SUFFIX)
            except FileExistsError as error:
                draft.unlink()
                raise Refused(str(error)) from error

    def replace(self, file: str, content: str) -> None:
        """Put other content under a name in incoming/, by rename or in place."""
        path = self.incoming(file)
        if not os.path.lexists(path):
            raise Refused(f"{file} is not in incoming/")
        draft = self._draft(file, content)
        plain = all(stat.S_ISREG(os.lstat(p).st_mode) for p in (path, draft))
        if plain and (self._variant // 2 + self._drafts) % 2:  # in place
            with open(path, "r+b") as target:
                target.truncate(target.write(draft.read_bytes()))
            self._stamp(path)
            draft.unlink()
        else:
            draft.replace(path)
