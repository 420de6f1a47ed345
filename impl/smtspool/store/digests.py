"""Finding the row of a digest among millions, while writing little for each new one.

Digests are random, so a B-tree over them dirties another page for nearly every row, and at a million rows
a batch would write several times its own size. Therefore the tree (table ``<table>_tree``) holds only the
older rows. The newer ones, the *tail*, are kept in a dictionary by each connection, filled by reading the
table in order; when the tail is long, one sorted pass moves it into the tree and every page takes several.

Rows are numbered upwards and never deleted, which is all this relies on.
"""

from __future__ import annotations

import sqlite3

__all__ = ["DIGEST_COLUMNS", "Digests"]

# At a million rows a tree has some six thousand pages, so a tail of this length writes a page per five rows.
TAIL_ROWS = 32 * 1024

# The tables that are searched by a digest, and the column that holds it.
DIGEST_COLUMNS = {"queries": "id", "forms": "digest", "prefixes": "digest"}


class Digests:
    """The digests of one table as one connection sees them; a cache of what is in the database."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        column = DIGEST_COLUMNS[table]
        self._connection = connection
        self._table = table
        self._tail: dict[bytes, int] = {}
        self._merged = 0  # rows up to this number are in the tree
        self._seen = 0  # rows up to this number are in the tree or in the tail
        self._news = f"SELECT number, {column} FROM {table} WHERE number > ? ORDER BY number"
        self._search = (
            f"SELECT t.number FROM {table}_tree t JOIN {table} r ON r.number = t.number "
            f"WHERE t.key = ?1 AND r.{column} = ?2"
        )
        self._merge = (
            f"INSERT INTO {table}_tree (key, number) SELECT substr({column}, 1, 8), number "
            f"FROM {table} WHERE number > ? AND number <= ? ORDER BY 1, 2"
        )

    def refresh(self) -> None:
        """Read what was committed since the last call. To be called first in a transaction that searches."""
        (merged,) = self._connection.execute(
            "SELECT merged FROM trees WHERE name = ?", (self._table,)
        ).fetchone()
        if merged != self._merged:
            self._tail.clear()
            self._merged = self._seen = merged
        for number, digest in self._connection.execute(self._news, (self._seen,)):
            self._tail[digest] = self._seen = number

    @property
    def last(self) -> int:
        """The highest row number there is."""
        return self._seen

    def find(self, digest: bytes) -> int | None:
        """Row of the digest, or None."""
        number = self._tail.get(digest)
        if number is not None:
            return number
        found = self._connection.execute(self._search, (digest[:8], digest)).fetchone()
        return None if found is None else int(found[0])

    def merge_if_long(self) -> None:
        """Move a long tail into the tree; inside a write transaction."""
        if len(self._tail) < TAIL_ROWS:
            return
        self._connection.execute(self._merge, (self._merged, self._seen))
        self._connection.execute("UPDATE trees SET merged = ? WHERE name = ?", (self._seen, self._table))
