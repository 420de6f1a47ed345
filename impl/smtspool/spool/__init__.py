"""Admission: from files in a spool to queries in a store (F363, F364, F365).

``<spool>/{incoming,accepted,rejected}/`` and ``.ingest.lock``. One consumer at a time lists, reads, commits
and moves; producers only publish. What a store is stays with the caller: :meth:`Spool.scan` takes a function.
"""

from smtspool.spool.report import Outcome, ScanReport
from smtspool.spool.spool import Spool

__all__ = ["Outcome", "ScanReport", "Spool"]
