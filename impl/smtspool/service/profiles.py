"""Looking at what a campaign has learnt, from outside: nothing here writes or takes a lock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from smtspool.errors import AdmissionError, MisuseError
from smtspool.files import Directory, Unstable
from smtspool.profile import RUNTIME, STATE, Archive, Artifact, Domain

from .campaign import Campaign
from .config import Settings
from .profiling import coordinator_of

__all__ = ["Domain", "ProfileReport", "profile_report", "verify_profile"]

_UNSOUND = (OSError, AdmissionError, Unstable)


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """What a service that starts now would believe; ``replay_s`` is what finding out has taken."""

    snapshot: dict[str, Any]
    artifact: Artifact | None  # the current one, if it proves itself
    replay_s: float


def profile_report(campaign: Campaign, settings: Settings) -> ProfileReport:
    """Recover as a service does, by replay, without publishing. MisuseError if nothing was learnt yet."""
    with _folder(campaign) as directory:
        started = time.perf_counter()
        coordinator = coordinator_of(directory, settings)
        elapsed = time.perf_counter() - started
        try:
            artifact, _ = Archive(directory).read_generation()
        except _UNSOUND:
            artifact = None  # which is among the doubts of the snapshot
        return ProfileReport(coordinator.snapshot().to_json(), artifact, elapsed)


def verify_profile(campaign: Campaign) -> Iterator[tuple[str, str | None]]:
    """Every file of the profile folder, and what is wrong with it; None if it is sound in itself."""
    with _folder(campaign) as directory:
        archive = Archive(directory)
        try:
            digests = archive.digests()
        except _UNSOUND as error:
            digests = []
            yield "generations", str(error)
        for digest in digests:
            yield f"generations/{digest}.json", _fault(partial(archive.read_artifact, digest))
        yield RUNTIME, _fault(archive.read_generation)
        yield STATE, _fault(archive.verify_state)


def _fault(read: Callable[[], object]) -> str | None:
    try:
        read()
    except _UNSOUND as error:
        return str(error)
    return None


@contextmanager
def _folder(campaign: Campaign) -> Iterator[Directory]:
    try:
        directory = Directory.open(campaign.profile)
    except FileNotFoundError:
        raise MisuseError(
            f"{campaign.root} has learnt nothing yet: put telemetry into spool/telemetry/ and run "
            f"smtspool serve {campaign.root}"
        ) from None
    with directory:
        yield directory
