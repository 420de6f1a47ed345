"""The three kinds of files of a profile folder, and how they are read and written.

Artifacts are ``generations/<digest>.json``; beside them ``current.runtime`` and ``state.json``. Each is
written whole and durably; there is no transaction over all three, which is why recovery replays (F305 §7).
"""

from __future__ import annotations

from contextlib import suppress

from smtspool.errors import AdmissionError, Reason
from smtspool.files import Directory, is_temporary, read_stable, write_durable
from smtspool.profile.artifact import MAX_ARTIFACT_BYTES, Artifact
from smtspool.profile.candidate import Candidate, ProfileGeneration, materialise
from smtspool.profile.runtime import MAX_RUNTIME_BYTES, parse_runtime
from smtspool.profile.state import MAX_STATE_BYTES, damage, label_of

__all__ = ["RUNTIME", "STATE", "Archive"]

_GENERATIONS = "generations"
RUNTIME = "current.runtime"
STATE = "state.json"
_KEPT = 8  # artifacts, the current one among them


class Archive:
    """A profile folder, used by its one coordinator. The caller closes the directory."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory

    def read_state(self) -> bytes:
        """The checkpoint file; ``OSError``, ``AdmissionError`` or ``Unstable`` as :func:`read_stable`."""
        return read_stable(self._directory, STATE, MAX_STATE_BYTES)[0]

    def verify_state(self) -> str:
        """The digest of the artifact that the checkpoint names as current, "" for none.

        Raises as :meth:`read_state`, also if a record of the checkpoint is damaged.
        """
        data = self.read_state()
        doubts = damage(data)
        if doubts:
            raise AdmissionError(Reason.SCHEMA, "; ".join(doubts))
        return label_of(data)

    def write_state(self, data: bytes) -> None:
        write_durable(self._directory, STATE, data)

    def read_generation(self) -> tuple[Artifact, ProfileGeneration]:
        """The generation of the runtime file, if the file is byte for byte what its artifact gives.

        Raises as :meth:`read_state`; ``FileNotFoundError`` if there is no runtime file at all.
        """
        text = read_stable(self._directory, RUNTIME, MAX_RUNTIME_BYTES)[0]
        artifact, generation = self.read_artifact(parse_runtime(text).artifact_sha256)
        if generation.content != text:
            raise AdmissionError(Reason.SCHEMA, "the runtime file differs from what its artifact gives")
        return artifact, generation

    def read_artifact(self, digest: str) -> tuple[Artifact, ProfileGeneration]:
        """One artifact of any generation, verified."""
        try:
            with self._directory.child(_GENERATIONS) as generations:
                data = read_stable(generations, f"{digest}.json", MAX_ARTIFACT_BYTES)[0]
        except FileNotFoundError:
            raise AdmissionError(Reason.SCHEMA, f"the artifact {digest} is missing") from None
        artifact, generation = materialise(data)
        if generation.artifact_sha256 != digest:
            raise AdmissionError(Reason.SCHEMA, f"the file of artifact {digest} holds another artifact")
        return artifact, generation

    def write_artifact(self, candidate: Candidate) -> None:
        with self._directory.child(_GENERATIONS, create=True) as generations:
            write_durable(generations, f"{candidate.generation.artifact_sha256}.json", candidate.artifact)

    def write_runtime(self, candidate: Candidate) -> None:
        write_durable(self._directory, RUNTIME, candidate.generation.content)

    def digests(self) -> list[str]:
        """The digests of all artifacts, the newest first."""
        with self._directory.child(_GENERATIONS) as generations:
            named = [name for name in generations.names() if name.endswith(".json")]
            named.sort(key=lambda name: generations.stat(name).st_mtime_ns, reverse=True)
        return [name.removesuffix(".json") for name in named]

    def prune(self, current: str) -> None:
        """Remove all artifacts but ``current`` and the seven newest others, and files that a crash left."""
        others = [digest for digest in self.digests() if digest != current]
        with self._directory.child(_GENERATIONS) as generations:
            for digest in others[_KEPT - 1 :]:
                with suppress(FileNotFoundError):
                    generations.unlink(f"{digest}.json")
            for directory in (self._directory, generations):
                for name in filter(is_temporary, directory.names()):
                    with suppress(FileNotFoundError):
                        directory.unlink(name)
