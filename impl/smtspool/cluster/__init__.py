"""Cluster lock qualification: does ``flock`` in a shared directory exclude between hosts? (F355)"""

from .capability import FULL, Capability, Operation, Requirements, merged
from .communicator import FLEET, FROM_ROOT, TO_ROOT, Communicator, OversizeMessage, Sending
from .diagnostics import TEXT_LIMIT, Code, Diagnostic, Position, Stage, contained, describe, one_line
from .directoryprobe import ProbeFailed, probe_directory
from .exchange import ExchangeView
from .inputs import Host, QualificationAttempt, Time
from .lockfiles import LockFiles
from .master import ABORT_FAILED, ABORT_UNQUALIFIED, Master, MasterView, Rights
from .mpi import MpiCommunicator, processor_name, started_by_mpi, world
from .notices import Notice
from .observation import Observation, boot_id, heartbeat_error, observe_inputs
from .proof import Member, Proof, require_complete, transcript_of
from .qualification import qualify
from .renewal import AgreedPlan, Completion, Ledger, RenewalController, RenewalPlan, complete_renewal
from .result import QualificationResult

__all__ = [
    "ABORT_FAILED",
    "ABORT_UNQUALIFIED",
    "FLEET",
    "FROM_ROOT",
    "FULL",
    "TEXT_LIMIT",
    "TO_ROOT",
    "AgreedPlan",
    "Capability",
    "Code",
    "Communicator",
    "Completion",
    "Diagnostic",
    "ExchangeView",
    "Host",
    "Ledger",
    "LockFiles",
    "Master",
    "MasterView",
    "Member",
    "MpiCommunicator",
    "Notice",
    "Observation",
    "Operation",
    "OversizeMessage",
    "Position",
    "ProbeFailed",
    "Proof",
    "QualificationAttempt",
    "QualificationResult",
    "RenewalController",
    "RenewalPlan",
    "Requirements",
    "Rights",
    "Sending",
    "Stage",
    "Time",
    "boot_id",
    "complete_renewal",
    "contained",
    "describe",
    "heartbeat_error",
    "merged",
    "observe_inputs",
    "one_line",
    "probe_directory",
    "processor_name",
    "qualify",
    "require_complete",
    "started_by_mpi",
    "transcript_of",
    "world",
]
