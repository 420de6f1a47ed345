"""The litmus: is a lock taken on one host refused on all others, and free again after its release?

There is one round for each host. Its representative holds the lock, every other rank must be refused, all
close, and every other host must get the lock. Before the rounds each rank opens the directory and the lock
file and keeps the descriptors; after them, name and descriptor must still lead to the same file with the same
content (F351).
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from smtspool.files import Directory

from .capability import Capability
from .diagnostics import Stage
from .exchange import Exchange, Record
from .lockfiles import LOCK_PREFIX, LockFiles, Node
from .proof import Proof
from .steps import action

__all__ = ["Litmus"]

_DOMAIN = b"smtspool-cluster-lock-v1\0"
_NOTHING: Record = {}


class Litmus:
    """The litmus of one attempt on one rank; a context manager that leaves no descriptor and no lock.

    ``proof`` grows as rounds end. Every attempt has its own lock file, which rank 0 makes under a fresh name
    and removes. So the qualification of one fleet does not disturb another fleet that runs.
    """

    def __init__(
        self,
        exchange: Exchange,
        proof: Proof,
        root: Path,
        capability: Capability,
        token: bytes,
        files: LockFiles,
    ) -> None:
        self.proof = proof
        self._exchange = exchange
        self._rank = exchange.rank
        self._path = root
        self._capability = capability
        self._files = files
        token_text = hashlib.sha256(_DOMAIN + token).hexdigest()
        self._name = f"{LOCK_PREFIX}{token_text[:32]}"
        self._content = f"smtspool-cluster-lock-v1\n{token_text}\n".encode()
        self._held = ExitStack()  # the anchors, and the lock file itself on rank 0
        self._in_round = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held, self._in_round:
            pass  # both are closed, the round first, even if closing one raises

    def run(self) -> Proof:
        """All phases from the anchors to the identity closure; ExchangeFailed if one fails."""
        self._anchor()
        for number, holder in enumerate(self.proof.representatives):
            self._round(number, holder)
        self._close_identity()
        return self.proof

    # -- anchors ----------------------------------------------------------------------------------------

    def _anchor(self) -> None:
        self._exchange.gather(Stage.ROOT, self._open_root)
        self._exchange.gather(Stage.PREPARE, self._prepare if self._rank == 0 else _nothing)
        self._exchange.gather(Stage.ANCHOR, self._open_anchor)

    def _open_root(self) -> Record:
        self._root = self._held.enter_context(self._files.open_root(self._path))
        found = self._files.file_system(self._root)
        if found != (self._capability.device, self._capability.filesystem_id):
            raise OSError(errno.ESTALE, "the directory is on another file system than when it was probed")
        self._root_node = self._files.node(self._root.fd)
        return _NOTHING

    def _prepare(self) -> Record:
        self._files.create(self._root, self._name, self._content)
        self._held.callback(self._files.remove, self._root, self._name)
        return _NOTHING

    def _open_anchor(self) -> Record:
        self._lock_node = self._verified(self._open(self._root, self._held))
        return _NOTHING

    def _open(self, root: Directory, stack: ExitStack) -> int:
        fd = self._files.open(root, self._name)
        stack.callback(self._files.release, fd)
        return fd

    def _verified(self, fd: int) -> Node:
        if self._files.content(fd) != self._content:
            raise OSError(errno.ESTALE, "the lock file here is not the one that rank 0 wrote")
        return self._files.node(fd)

    # -- rounds -----------------------------------------------------------------------------------------

    def _round(self, number: int, holder: int) -> None:
        holds = self._rank == holder
        verifies = self._rank in self.proof.representatives and not holds
        self._exchange.gather(Stage.OPEN, self._open_for_round, round=number)
        self._phase(Stage.HELD, self._hold if holds else None, number)
        self._phase(Stage.EXCLUDED, None if holds else self._contend, number)
        self._phase(Stage.RELEASED, self._release, number)
        self._phase(Stage.REACQUIRED, self._reacquire if verifies else None, number)
        self.proof = replace(
            self.proof,
            rounds=self.proof.rounds + 1,
            contention_checks=self.proof.contention_checks + len(self.proof.members) - 1,
            release_checks=self.proof.release_checks + 1,
        )

    def _phase(self, stage: Stage, work: Callable[[int], Record] | None, number: int) -> None:
        """A phase. Ranks that have work in it do it as a step of its own before the exchange."""
        record = _NOTHING if work is None else self._exchange.attempt(stage, lambda: work(number))
        self._exchange.gather(stage, lambda: record, round=number)

    def _open_for_round(self) -> Record:
        self._descriptor = self._open(self._root, self._in_round)
        self._same(self._lock_node, self._verified(self._descriptor))
        return _NOTHING

    def _hold(self, number: int) -> Record:
        with action("Hold", rank=self._rank, round=number) as step:
            acquired = self._files.try_lock(self._descriptor)
            step.outcome = "Acquired" if acquired else "Blocked"
        if not acquired:
            return _failure(f"round {number}: the lock that nobody holds is refused to its holder")
        return _NOTHING

    def _contend(self, number: int) -> Record:
        with action("Contend", rank=self._rank, round=number) as step:
            acquired = self._files.try_lock(self._descriptor)
            step.outcome = "Acquired" if acquired else "Blocked"
        if acquired:
            return _failure(
                f"round {number}: the lock held on another host was given to this one too; "
                "locks are not shared between these mounts"
            )
        return _NOTHING

    def _release(self, number: int) -> Record:
        with action("Release", rank=self._rank, round=number):
            self._in_round.close()
        return _NOTHING

    def _reacquire(self, number: int) -> Record:
        # A shared lock, so that all other hosts can verify the release at the same time. The holder of the
        # next round shows that an exclusive lock can be taken too.
        with action("Reacquire", rank=self._rank, round=number) as step, ExitStack() as stack:
            descriptor = self._open(self._root, stack)
            self._same(self._lock_node, self._verified(descriptor))
            acquired = self._files.try_lock(descriptor, shared=True)
            step.outcome = "Acquired" if acquired else "Blocked"
        if not acquired:
            return _failure(f"round {number}: the lock is still refused after its holder released it")
        return _NOTHING

    # -- the end ----------------------------------------------------------------------------------------

    def _close_identity(self) -> None:
        record = self._exchange.attempt(Stage.IDENTITY, self._unchanged)
        self._exchange.gather(Stage.IDENTITY, lambda: record)
        self.proof = replace(self.proof, identity_checks=len(self.proof.members))

    def _unchanged(self) -> Record:
        with action("CloseIdentity", rank=self._rank) as step, ExitStack() as stack:
            step.outcome = "Changed"
            root = stack.enter_context(self._files.open_root(self._path))
            self._same(self._root_node, self._files.node(root.fd))
            self._same(self._lock_node, self._verified(self._open(root, stack)))
            step.outcome = "Same"
        return _NOTHING

    def _same(self, anchored: Node, found: Node) -> None:
        if found != anchored:
            raise OSError(errno.ESTALE, "the directory or its lock file was replaced meanwhile")


def _nothing() -> Record:
    return _NOTHING


def _failure(text: str) -> Record:
    return {"ok": False, "error": text}
