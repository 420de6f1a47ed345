"""A copy of a campaign while it is served: its store as it is at one moment, and the files of its spool."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from smtspool.errors import MisuseError
from smtspool.files import Directory, temporary_name
from smtspool.store import Finding, Store, back_up_store

from .campaign import Campaign
from .config import FILE_NAME, toml_without

__all__ = ["Backup", "back_up"]


@dataclass(frozen=True, slots=True)
class Backup:
    """What was copied, and what fsck says of the copy."""

    files: int
    bytes: int
    left_out: tuple[str, ...]  # settings that the copy does not have
    findings: tuple[Finding, ...]


def back_up(campaign: Campaign, root: Path) -> Backup:
    """Copy the campaign to ``root``, which must not exist and gets its name when it is complete and durable.

    The folders of producers are copied before the store, so that a file which is admitted meanwhile is in one
    of the two, or in both, which is harmless; all others are copied after it. ``out/`` is not copied, since
    it is derived from the store. The setting ``store`` becomes a comment in the copy, since it would lead to
    the store of the original. Lock files are not copied, so the right to read is enough.
    """
    if root.exists():
        raise MisuseError(f"{root} exists already: name a folder that does not")
    root.parent.mkdir(parents=True, exist_ok=True)
    growing = root.parent / temporary_name()
    try:
        growing.mkdir()
        made = _back_up(campaign, growing)
        with Directory.open(root.parent.absolute()) as parent:
            parent.rename(growing.name, parent, root.name)
            parent.sync()
    except BaseException:
        shutil.rmtree(growing, ignore_errors=True)
        raise
    return made


def _back_up(campaign: Campaign, root: Path) -> Backup:
    settings, had_store = toml_without("store", campaign.root)
    before = ("incoming", "telemetry")
    copied = [_copied(campaign.spool / name, root / "spool" / name) for name in before]
    back_up_store(campaign.store, root / "store")
    copied.append(_copied(campaign.profile, root / "store" / "profile"))
    for name in sorted(os.listdir(campaign.spool)):
        if name not in before and not name.startswith("."):
            copied.append(_copied(campaign.spool / name, root / "spool" / name))
    if settings:
        copied.append((1, (root / FILE_NAME).write_bytes(settings.encode())))
    (root / "out").mkdir()
    with Directory.open(root.absolute()) as folder:
        folder.sync_file_system()
    index = sum(path.stat().st_size for path in (root / "store").iterdir() if path.is_file())
    return Backup(
        1 + sum(files for files, _ in copied),
        index + sum(size for _, size in copied),
        ("store",) if had_store else (),
        tuple(Store.fsck(root / "store")),
    )


def _copied(source: Path, target: Path) -> tuple[int, int]:
    """Copy a file, or a folder with all in it but links and vanished files; numbers of files and bytes."""
    files = size = 0
    with suppress(FileNotFoundError):
        mode = source.lstat().st_mode
        if stat.S_ISDIR(mode):
            target.mkdir(parents=True)
            names = (name for name in os.listdir(source) if not fnmatch(name, ".*.lock"))
            for name in sorted(names):
                more, bytes_more = _copied(source / name, target / name)
                files, size = files + more, size + bytes_more
        elif stat.S_ISREG(mode):
            shutil.copy2(source, target, follow_symlinks=False)
            return 1, target.stat().st_size
    return files, size
