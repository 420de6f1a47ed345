"""Value profiles: the values that programs were seen to compare become domains that a solver tries first.

* :class:`Coordinator` - makes generations from telemetry; recovers by replay after a restart (F305).
* :func:`build_candidate` - the one path from records to domains.
* :func:`parse_runtime` - the domains of a generation, as a prober loads them.

A domain is a hint. A model in which the operand has a value of the domain is a model of the query; if there
is no such model, the query may have others.
"""

from smtspool.profile.aggregate import Domain, Key
from smtspool.profile.archive import RUNTIME, STATE, Archive
from smtspool.profile.artifact import Artifact, parse_artifact
from smtspool.profile.candidate import Candidate, ProfileGeneration, build_candidate
from smtspool.profile.coordinator import Coordinator, ProfileSnapshot
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
    "Key",
    "Policy",
    "ProfileGeneration",
    "ProfileSnapshot",
    "Record",
    "Runtime",
    "build_candidate",
    "parse_artifact",
    "parse_runtime",
    "parse_telemetry",
]
