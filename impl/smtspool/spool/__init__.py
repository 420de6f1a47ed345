"""Admission: from files in a spool to queries in a store (F363, F364, F365).

``<spool>/{incoming,accepted,rejected}/`` and ``.ingest.lock``. One consumer at a time lists, reads, commits
and moves; producers only publish. The store belongs to the caller, who passes :meth:`Spool.scan` a function
that commits. Code that reads other files from a spool uses the same names and the same judge,
:class:`Quarantine`.
"""

from smtspool.spool.names import is_published, may_submit
from smtspool.spool.quarantine import Quarantine, Rejection
from smtspool.spool.report import Outcome, ScanReport
from smtspool.spool.spool import Spool

__all__ = [
    "Outcome",
    "Quarantine",
    "Rejection",
    "ScanReport",
    "Spool",
    "is_published",
    "may_submit",
]
