"""The file system of a path, as the kernel reports it. For diagnosis only; nothing depends on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mount", "is_distributed", "mount_of"]

_DISTRIBUTED = {"9p", "afs", "beegfs", "ceph", "cifs", "gfs2", "glusterfs", "gpfs", "lustre", "nfs", "nfs4"}
_DISTRIBUTED |= {"ocfs2", "orangefs", "smb2", "smb3", "virtiofs"}
_DISTRIBUTED_FUSE = ("fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "fuse.juicefs")
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of ``mountinfo``."""

    point: str
    kind: str
    source: str


UNKNOWN = Mount("", "unknown", "unknown")


def mount_of(path: str, table: Path = Path("/proc/self/mountinfo")) -> Mount:
    """The mount with the longest mount point above ``path``; ``UNKNOWN`` if the kernel has no table."""
    try:
        lines = table.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return UNKNOWN
    mounts = [mount for line in lines if (mount := _parsed(line)) and _is_above(mount.point, path)]
    return max(reversed(mounts), key=lambda mount: len(mount.point), default=UNKNOWN)  # last of equals


def is_distributed(kind: str) -> bool:
    """Whether a file system of this type usually serves several hosts."""
    return kind.lower() in _DISTRIBUTED or kind.lower().startswith(_DISTRIBUTED_FUSE)


def _parsed(line: str) -> Mount | None:
    left, separator, right = line.partition(" - ")
    before, after = left.split(" "), right.split(" ")
    if not separator or len(before) < 5 or len(after) < 2:
        return None
    return Mount(_unescaped(before[4]), after[0], _unescaped(after[1]))


def _unescaped(text: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def _is_above(point: str, path: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")
