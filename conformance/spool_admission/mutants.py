"""Named faults in the code of spool admission: each restores a historical or plausible bug."""

from __future__ import annotations

from conformance.engine.mutants import Mutant, Substitution

__all__ = ["MUTANTS"]

_ADMISSION = "smtspool.spool.admission"
_SPOOL = "smtspool.spool.spool"
_QUARANTINE = "smtspool.spool.quarantine"
_READING = "smtspool.files.reading"
_LOCK = "smtspool.files.lock"
_DIRECTORY = "smtspool.files.directory"

MUTANTS = (
    Mutant(
        "no-nofollow",
        "files are opened through links",
        (
            Substitution(
                _DIRECTORY,
                "_FILE = _NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC",
                "_FILE = os.O_NONBLOCK | os.O_CLOEXEC",
            ),
        ),
    ),
    Mutant(
        "no-identity-check",
        "what was read is believed whatever happened to the file meanwhile",
        (Substitution(_READING, "        self._close_identity()\n", ""),),
    ),
    Mutant(
        "identity-by-path",
        "after the read only the inode behind the path is compared",
        (
            Substitution(
                _READING,
                "if self._fd >= 0 and Identity.of(os.fstat(self._fd)) != self.identity:",
                "if False:",
            ),
            Substitution(_READING, "if now != self.identity:", "if now.ino != self.identity.ino:"),
        ),
    ),
    Mutant(
        "lock-after-list",
        "the folder is listed before the lock is taken",
        (
            Substitution(
                _SPOOL,
                "            acquired = self._try_lock(lock, consumer)\n",
                "            with self._folders() as early, action('List', consumer=consumer):\n"
                "                listed = self._list(early.incoming, wall())\n"
                "            acquired = self._try_lock(lock, consumer)\n",
            ),
            Substitution(_SPOOL, "names = self._list(folders.incoming, wall())", "names = listed"),
        ),
    ),
    Mutant(
        "lock-unlinked",
        "the lock file is removed when it is let go",
        (
            Substitution(
                _LOCK,
                "                os.close(fd)\n",
                "                os.close(fd)\n"
                "                if self._directory.exists(self._name):\n"
                "                    self._directory.unlink(self._name)\n",
            ),
        ),
    ),
    Mutant(
        "move-before-commit",
        "files are moved, then their queries are stored",
        (
            Substitution(_ADMISSION, "        if good:\n            self._store(good)\n", ""),
            Substitution(
                _ADMISSION,
                "        if good:\n            self._accepted.sync()\n",
                "        if good:\n            self._store(good)\n            self._accepted.sync()\n",
            ),
        ),
    ),
    Mutant(
        "error-swallowed",
        "a move that the machine fails at is passed over",
        (
            Substitution(
                _ADMISSION,
                'with action("Move", consumer=self._consumer, file=file.name) as step:',
                'with suppress(OSError), action("Move", consumer=self._consumer, file=file.name) as step:',
            ),
        ),
    ),
    Mutant(
        "sidecar-not-paired",
        "a sidecar keeps the file's first name where the file gets a fresh one",
        (
            Substitution(
                _QUARANTINE,
                "draft.publish(name + ERROR, replace=False)",
                "draft.publish(rejection.name + ERROR)",
            ),
        ),
    ),
    Mutant(
        "unstable-quarantined",
        "a file that changed while it was read is taken for a bad one",
        (
            Substitution(
                _QUARANTINE,
                "from smtspool.errors import AdmissionError\n",
                "from smtspool.errors import AdmissionError, Reason\n",
            ),
            Substitution(
                _QUARANTINE,
                "        except AdmissionError as refusal:\n",
                "        except Unstable as change:\n"
                "            refusal = AdmissionError(Reason.NOT_REGULAR, str(change))\n"
                "            return Rejection(entry.name, entry.identity, refusal, None)\n"
                "        except AdmissionError as refusal:\n",
            ),
        ),
    ),
    Mutant(
        "busy-lists",
        "a scan that finds the lock busy looks into the folder",
        (
            Substitution(
                _SPOOL,
                "            if not acquired:\n",
                "            if not acquired:\n                self.backlog()\n",
            ),
        ),
    ),
    Mutant(
        "no-lock",
        "everybody gets the lock (F364 section 2)",
        (Substitution(_LOCK, "            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n", ""),),
    ),
    Mutant(
        "sidecar-after-move",
        "a rejected file moves before its sidecar is written",
        (
            Substitution(
                _ADMISSION,
                "kept = self._write_sidecars([file for file in batch if isinstance(file, Rejection)])",
                "kept = {file.name: file.name for file in batch if isinstance(file, Rejection)}",
            ),
            Substitution(
                _ADMISSION,
                "                        step.outcome = self._reject(file, kept[file.name])\n",
                "                        step.outcome = self._reject(file, kept[file.name])\n"
                "                        self._write_sidecars([file])\n",
            ),
        ),
    ),
    Mutant(
        "replaced-moves",
        "a file that was replaced after it was read moves all the same",
        (
            Substitution(_ADMISSION, "return Fate.REPLACED\n            moved", "pass\n            moved"),
            Substitution(
                _ADMISSION,
                "        if Identity.of(to.stat(moved)).moved_from(identity):\n",
                "        if True:\n",
            ),
        ),
    ),
    Mutant(
        "leftover-stays",
        "a sidecar that a crash left behind is never looked at again",
        (Substitution(_SPOOL, "quarantine.repair(wall())", "pass"),),
    ),
    Mutant(
        "do-nothing",
        "a scan returns at once and has found nothing",
        (
            Substitution(
                _SPOOL,
                'with _infrastructure("the scan ended early"),',
                'return _report(Tally(), 0, 0, 0)\n        with _infrastructure("the scan ended early"),',
            ),
        ),
    ),
    Mutant(
        "control",
        "nothing is changed but the spelling",
        (
            Substitution(
                _ADMISSION,
                "        if good:\n            self._store(good)\n",
                "        if len(good) > 0:\n            self._store(good)\n",
            ),
        ),
        control=True,
    ),
)
