"""The store: queries, leases, results, reuse of proven answers, and the outbox, in one SQLite file."""

from typing import TYPE_CHECKING

from smtspool.lazily import exports

if TYPE_CHECKING:
    from .backup import back_up_store
    from .database import BUSY_TIMEOUT_SECONDS, INDEX_NAME
    from .fsck import Fault, Finding
    from .journal import LONG_JOURNAL_BYTES
    from .listing import Found, Wanted
    from .outbox import Backoff
    from .owners import Owner
    from .pace import Pace, Rate
    from .presence import Presence, Seen, present
    from .queue import Patience
    from .salvage import Salvaged
    from .store import Store
    from .submissions import Submission, Submissions
    from .values import Counts, Lease, Order, Publication, Result, State

__all__ = [
    "BUSY_TIMEOUT_SECONDS",
    "INDEX_NAME",
    "LONG_JOURNAL_BYTES",
    "Backoff",
    "Counts",
    "Fault",
    "Finding",
    "Found",
    "Lease",
    "Order",
    "Owner",
    "Pace",
    "Patience",
    "Presence",
    "Publication",
    "Rate",
    "Result",
    "Salvaged",
    "Seen",
    "State",
    "Store",
    "Submission",
    "Submissions",
    "Wanted",
    "back_up_store",
    "present",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "backup": ("back_up_store",),
        "database": ("BUSY_TIMEOUT_SECONDS", "INDEX_NAME"),
        "fsck": ("Fault", "Finding"),
        "journal": ("LONG_JOURNAL_BYTES",),
        "listing": ("Found", "Wanted"),
        "outbox": ("Backoff",),
        "owners": ("Owner",),
        "pace": ("Pace", "Rate"),
        "presence": ("Presence", "Seen", "present"),
        "queue": ("Patience",),
        "salvage": ("Salvaged",),
        "store": ("Store",),
        "submissions": ("Submission", "Submissions"),
        "values": ("Counts", "Lease", "Order", "Publication", "Result", "State"),
    },
)
