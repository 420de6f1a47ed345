"""Value profiles: the values that programs were seen to compare become domains that a solver tries first.

* :class:`Coordinator` - telemetry in, generations out; recovered by replay after a restart (F305).
* :func:`build_candidate` - the one path from records to domains.
* :func:`parse_runtime` - the domains of a generation, as a prober loads them.

A domain is a hint: a model under it is a model, and that there is none says nothing.
"""

from smtspool.profile.aggregate import Domain, Key
from smtspool.profile.archive import RUNTIME, STATE, Archive
from smtspool.profile.artifact import Artifact, parse_artifact
from smtspool.profile.candidate import Candidate, Generation, build_candidate
from smtspool.profile.coordinator import Coordinator, Snapshot
from smtspool.profile.counters import CONSUMPTION, Counters
from smtspool.profile.policy import Policy
from smtspool.profile.record import MAX_FEEDBACK, MAX_TELEMETRY_BYTES, Record, parse_telemetry
from smtspool.profile.runtime import Runtime, parse_runtime

__all__ = [
    "CONSUMPTION",
    "MAX_FEEDBACK",
    "MAX_TELEMETRY_BYTES",
    "RUNTIME",
    "STATE",
    "Archive",
    "Artifact",
    "Candidate",
    "Coordinator",
    "Counters",
    "Domain",
    "Generation",
    "Key",
    "Policy",
    "Record",
    "Runtime",
    "Snapshot",
    "build_candidate",
    "parse_artifact",
    "parse_runtime",
    "parse_telemetry",
]
