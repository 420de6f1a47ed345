"""Reports about the value profiles of a campaign, for commands. Nothing here writes or takes a lock."""

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

_GENERATIONS = "generations"
_NAMES = (_GENERATIONS, RUNTIME, STATE)
_UNSOUND = (OSError, AdmissionError, Unstable)


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """The profiles as a service that starts now would recover them; ``replay_s`` is how long that took."""

    snapshot: dict[str, Any]
    artifact: Artifact | None  # the current one, if it can be verified
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
            artifact = None  # the snapshot's doubts name the reason
        return ProfileReport(coordinator.snapshot().to_json(), artifact, elapsed)


def verify_profile(campaign: Campaign) -> Iterator[tuple[str, str | None]]:
    """Every file of the profile folder, and what is wrong with it; None if it is sound by itself.

    A missing file is an error only if another one refers to it. MisuseError if nothing was learnt yet.
    """
    with _folder(campaign) as directory:
        archive = Archive(directory)
        # Read in another order than they are written in, since a service may publish meanwhile.
        expected = {name for name in _NAMES if directory.exists(name)}
        if RUNTIME in expected:
            expected |= {_GENERATIONS, STATE}
        state_fault = None
        try:
            if archive.verify_state():
                expected |= {_GENERATIONS, RUNTIME}
        except _UNSOUND as error:
            state_fault = str(error)
        if _GENERATIONS in expected:
            yield from _verify_artifacts(archive)
        if RUNTIME in expected:
            yield RUNTIME, _fault(archive.read_generation)
        if STATE in expected:
            yield STATE, state_fault


def _verify_artifacts(archive: Archive) -> Iterator[tuple[str, str | None]]:
    try:
        digests = archive.digests()
    except _UNSOUND as error:
        yield _GENERATIONS, str(error)
        return
    for digest in digests:
        yield f"{_GENERATIONS}/{digest}.json", _fault(partial(archive.read_artifact, digest))


def _fault(read: Callable[[], object]) -> str | None:
    try:
        read()
    except _UNSOUND as error:
        return str(error)
    return None


@contextmanager
def _folder(campaign: Campaign) -> Iterator[Directory]:
    """The profile folder. MisuseError if it is empty: every service makes it, even if it learns nothing."""
    nothing_yet = MisuseError(
        f"{campaign.root} has learnt nothing yet: put telemetry into spool/telemetry/ and run "
        f"smtspool serve {campaign.root}"
    )
    try:
        directory = Directory.open(campaign.profile)
    except FileNotFoundError:
        raise nothing_yet from None
    with directory:
        if not any(map(directory.exists, _NAMES)):
            raise nothing_yet
        yield directory
