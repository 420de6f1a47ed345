"""Descriptors instead of paths: anchored directories, stable reads, durable writes, the lock.

When the machine refuses something, functions raise ``OSError``; docstrings name all other exceptions. Nothing
here knows what a query is.
"""

from smtspool.files.directory import Directory
from smtspool.files.lock import FileLock
from smtspool.files.reading import Entry, Identity, Unstable, open_entry, read_stable
from smtspool.files.writing import Draft, is_temporary, sync_drafts, temporary_name, write_durable

__all__ = [
    "Directory",
    "Draft",
    "Entry",
    "FileLock",
    "Identity",
    "Unstable",
    "is_temporary",
    "open_entry",
    "read_stable",
    "sync_drafts",
    "temporary_name",
    "write_durable",
]
