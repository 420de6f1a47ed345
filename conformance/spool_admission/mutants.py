"""Named faults in the code of spool admission: each restores a historical or plausible bug."""

from __future__ import annotations

from conformance.engine.mutants import Mutant

__all__ = ["MUTANTS"]

_ADMISSION = "smtspool.spool.admission"
_SPOOL = "smtspool.spool.spool"
_QUARANTINE = "smtspool.spool.quarantine"
_READING = "smtspool.files.reading"
_LOCK = "smtspool.files.lock"
_DIRECTORY = "smtspool.files.directory"

MUTANTS = (
    Mutant.of(
        "no-nofollow",
        "files are opened through links",
        (
            _DIRECTORY,
            "_FILE = _NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC",
            "_FILE = os.O_NONBLOCK | os.O_CLOEXEC",
        ),
    ),
    Mutant.of(
        "no-identity-check",
        "what was read is believed whatever happened to the file meanwhile",
        (_READING, "        self._close_identity()\n", ""),
    ),
    Mutant.of(
        "identity-by-path",
        "after the read only the inode behind the path is compared",
        (_READING, "if self._fd >= 0 and Identity.of(os.fstat(self._fd)) != self.identity:", "if False:"),
        (_READING, "if now != self.identity:", "if now.ino != self.identity.ino:"),
    ),
    Mutant.of(
        "lock-after-list",
        "the folder is listed before the lock is taken",
        (
            _SPOOL,
            "            acquired = self._try_lock(lock, consumer)\n",
            "            with self._folders() as early, action('List', consumer=consumer):\n"
            "                listed = self._list(early.incoming, wall())\n"
            "            acquired = self._try_lock(lock, consumer)\n",
        ),
        (_SPOOL, "names = self._list(folders.incoming, wall())", "names = listed"),
    ),
    Mutant.of(
        "lock-unlinked",
        "the lock file is removed when it is let go",
        (
            _LOCK,
            "                os.close(fd)\n",
            "                os.close(fd)\n"
            "                if self._directory.exists(self._name):\n"
            "                    self._directory.unlink(self._name)\n",
        ),
    ),
    Mutant.of(
        "move-before-commit",
        "files are moved, then their queries are stored",
        (_ADMISSION, "        if good:\n            self._store(good)\n", ""),
        (
            _ADMISSION,
            "        if good:\n            self._accepted.sync()\n",
            "        if good:\n            self._store(good)\n            self._accepted.sync()\n",
        ),
    ),
    Mutant.of(
        "error-swallowed",
        "a move that the machine fails at is passed over",
        (
            _ADMISSION,
            'with action("Move", consumer=self._consumer, file=file.name) as step:',
            'with suppress(OSError), action("Move", consumer=self._consumer, file=file.name) as step:',
        ),
    ),
    Mutant.of(
        "sidecar-not-paired",
        "a sidecar keeps the file's first name where the file gets a fresh one",
        (_QUARANTINE, "draft.publish(name + ERROR, replace=False)", "draft.publish(rejection.name + ERROR)"),
    ),
    Mutant.of(
        "unstable-quarantined",
        "a file that changed while it was read is taken for a bad one",
        (
            _QUARANTINE,
            "from smtspool.errors import AdmissionError\n",
            "from smtspool.errors import AdmissionError, Reason\n",
        ),
        (
            _QUARANTINE,
            "        except AdmissionError as refusal:\n",
            "        except Unstable as change:\n"
            "            refusal = AdmissionError(Reason.NOT_REGULAR, str(change))\n"
            "            return Rejection(entry.name, entry.identity, refusal, None)\n"
            "        except AdmissionError as refusal:\n",
        ),
    ),
    Mutant.of(
        "busy-lists",
        "a scan that finds the lock busy looks into the folder",
        (
            _SPOOL,
            "            if not acquired:\n",
            "            if not acquired:\n                self.backlog()\n",
        ),
    ),
    Mutant.of(
        "no-lock",
        "everybody gets the lock (F364 section 2)",
        (_LOCK, "            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n", ""),
    ),
    Mutant.of(
        "sidecar-after-move",
        "a rejected file moves before its sidecar is written",
        (
            _ADMISSION,
            "kept = self._write_sidecars([file for file in batch if isinstance(file, Rejection)])",
            "kept = {file.name: file.name for file in batch if isinstance(file, Rejection)}",
        ),
        (
            _ADMISSION,
            "                        step.outcome = self._reject(file, kept[file.name])\n",
            "                        step.outcome = self._reject(file, kept[file.name])\n"
            "                        self._write_sidecars([file])\n",
        ),
    ),
    Mutant.of(
        "replaced-moves",
        "a file that was replaced after it was read moves all the same",
        (_ADMISSION, "return Fate.REPLACED\n            moved", "pass\n            moved"),
        (_ADMISSION, "        if Identity.of(to.stat(moved)).moved_from(identity):\n", "        if True:\n"),
    ),
    Mutant.of(
        "leftover-stays",
        "a sidecar that a crash left behind is never looked at again",
        (_SPOOL, "quarantine.repair(wall())", "pass"),
    ),
    Mutant.of(
        "do-nothing",
        "a scan returns at once and has found nothing",
        (
            _SPOOL,
            'with _infrastructure("the scan ended early"),',
            'return _report(Tally(), 0, 0, 0)\n        with _infrastructure("the scan ended early"),',
        ),
    ),
    Mutant.of(
        "control",
        "nothing is changed but the spelling",
        (
            _ADMISSION,
            "        if good:\n            self._store(good)\n",
            "        if len(good) > 0:\n            self._store(good)\n",
        ),
        control=True,
    ),
)
