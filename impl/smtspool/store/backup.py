"""A copy of a store while it is in use."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from time import time

from .database import INDEX_NAME, Database, described
from .owners import bury_all
from .presence import OWNERS_NAME
from .views import connect_view, unused

__all__ = ["back_up_store"]


def back_up_store(directory: Path, target: Path) -> None:
    """Copy the store in ``directory``, as it is at one moment, into the folder ``target``, which has none.

    No lease is held in the copy: queries that were leased are pending there. Raises InfrastructureError.
    """
    (target / OWNERS_NAME).mkdir(parents=True)
    path = directory / INDEX_NAME
    with described(path, writes=False):
        while True:
            connection, state = connect_view(path)
            with closing(connection), closing(sqlite3.connect(target / INDEX_NAME)) as copy:
                connection.backup(copy)
            if state is None or state == unused(path):
                break  # else a service began to write while the copy was read without locks
    with closing(Database(target, clock=time)) as db:
        bury_all(db)
