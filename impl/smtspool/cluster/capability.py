"""Capabilities of a directory: nine operations, those that are required, and the result of trying them.

F327 and F328. A capability describes a pair of directories as one process on one host sees it. Only a
verified qualification adds the ``proof`` that its locks hold between hosts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from .proof import Proof

__all__ = ["FULL", "Capability", "Operation", "Requirements", "merged"]

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class Operation(StrEnum):
    """The operations a shared directory needs, in the order they are tried."""

    FILE_FSYNC = "file_fsync"
    DIRECTORY_FSYNC = "directory_fsync"
    SAME_DIRECTORY_REPLACE = "same_directory_replace"
    CROSS_DIRECTORY_REPLACE = "cross_directory_replace"
    PUBLICATION_REPLACE = "publication_replace"
    HARD_LINK = "hard_link"
    DURABLE_UNLINK = "durable_unlink"
    ADVISORY_LOCK_EXCLUSION = "advisory_lock_exclusion"
    ADVISORY_LOCK_RELEASE = "advisory_lock_release"


_ALWAYS = {Operation.FILE_FSYNC, Operation.DIRECTORY_FSYNC}
_LOCKS = {Operation.ADVISORY_LOCK_EXCLUSION, Operation.ADVISORY_LOCK_RELEASE}


@dataclass(frozen=True, slots=True)
class Requirements:
    """A named set of operations. Both syncs always belong to it; the two lock operations go together."""

    name: str
    operations: frozenset[Operation]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"not a name for requirements: {self.name!r}; use a-z, 0-9 and -, at most 64")
        if not all(type(operation) is Operation for operation in self.operations):
            raise TypeError("requirements are a set of operations")
        if not self.operations >= _ALWAYS:
            raise ValueError("requirements without syncing a file and its directory promise nothing")
        if len(self.operations & _LOCKS) == 1:
            raise ValueError("a lock that excludes must also be released: require both or neither")


FULL = Requirements("full-shared-state-v1", frozenset(Operation))


def merged(name: str, first: Requirements, *others: Requirements) -> Requirements:
    """The operations that any of them requires."""
    return Requirements(name, first.operations.union(*(one.operations for one in others)))


@dataclass(frozen=True, slots=True)
class Capability:
    """The result of a probe of ``root`` and ``publication_root`` (both real paths).

    ``operations`` maps each of the nine to True (tried here and found to work) or None (not required, so not
    tried); if one fails, the probe raises. File system type and mount are for diagnosis only and decide
    nothing. ``proof`` is set if, and only if, the locks were verified across hosts.
    """

    root: str
    publication_root: str
    device: int  # st_dev
    filesystem_id: int  # f_fsid, 0 where there is none
    publication_device: int
    publication_filesystem_id: int
    filesystem_type: str
    mount_point: str
    mount_source: str
    distributed: bool
    requirements: Requirements
    operations: Mapping[Operation, bool | None]
    proof: Proof | None = None

    @property
    def complete(self) -> bool:
        """True if all nine operations were required and seen to work."""
        return all(self.operations.get(operation) is True for operation in Operation)

    def unproved(self) -> Capability:
        """The same without a proof, for results that are not verified."""
        return replace(self, proof=None)

    def to_json(self) -> dict[str, object]:
        """Schema ``smtspool-capability-v1``; an operation that was not tried is null."""
        return {
            "schema": "smtspool-capability-v1",
            "root": self.root,
            "publication_root": self.publication_root,
            "device": self.device,
            "filesystem_id": self.filesystem_id,
            "publication_device": self.publication_device,
            "publication_filesystem_id": self.publication_filesystem_id,
            "filesystem_type": self.filesystem_type,
            "mount_point": self.mount_point,
            "mount_source": self.mount_source,
            "distributed": self.distributed,
            "requirements": self.requirements.name,
            "operations": {operation.value: self.operations.get(operation) for operation in Operation},
            "proof": None if self.proof is None else self.proof.to_json(),
        }
