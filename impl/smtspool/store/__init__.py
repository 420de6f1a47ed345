"""The store: queries, leases, results, reuse of proven answers, and the outbox, in one SQLite file."""

from .fsck import Fault, Finding
from .outbox import Backoff
from .owners import Owner
from .queue import Patience
from .store import Store
from .submissions import Submission, Submissions
from .values import Counts, Lease, Order, Publication, Result, State

__all__ = [
    "Backoff",
    "Counts",
    "Fault",
    "Finding",
    "Lease",
    "Order",
    "Owner",
    "Patience",
    "Publication",
    "Result",
    "State",
    "Store",
    "Submission",
    "Submissions",
]
