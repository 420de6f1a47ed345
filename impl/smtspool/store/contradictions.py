"""Contradictions between rows of different tables, as statements that find them."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["CONTRADICTIONS", "Fault"]


class Fault(StrEnum):
    """What kind of thing is wrong."""

    DATABASE = "database"  # SQLite's own check, or the file cannot be read
    REFERENCE = "reference"  # a row refers to one that does not exist
    TEXT = "text"  # a query's text is missing, damaged, or not what its row says
    WITNESS = "witness"  # a witness is damaged
    SUBMISSION = "submission"  # a submission is damaged, or there are more or fewer than are counted
    PREFIX = "prefix"  # a prefix chain does not lead where its query says
    RESULT = "result"  # an answer is damaged, or one that may not be kept, or missing, or too many
    OUTBOX = "outbox"  # a result without a publication
    FORM = "form"  # a form whose state contradicts its queries
    LEASE = "lease"  # a lease of an owner that is not registered
    OWNER = "owner"  # an owner without its lock file
    TREE = "tree"  # a digest that cannot be found, or is found twice
    COUNTER = "counter"  # a counter that differs from what it counts


# Statements that select the subjects of a contradiction between rows.
CONTRADICTIONS = (
    (
        Fault.SUBMISSION,
        "it counts other submissions than there are",
        "SELECT lower(hex(id)) FROM queries q "
        "WHERE submissions <> (SELECT count(*) FROM submissions WHERE query = q.number)",
    ),
    (
        Fault.OUTBOX,
        "its result has no publication",
        "SELECT lower(hex(q.id)) FROM results r JOIN queries q ON q.number = r.query "
        "WHERE r.number NOT IN (SELECT result FROM publications)",
    ),
    (
        Fault.PREFIX,
        "is not the empty prefix",
        "SELECT 'prefix 0' WHERE NOT EXISTS (SELECT 1 FROM prefixes "
        "WHERE number = 0 AND parent IS NULL AND digest = x'' AND depth = 0)",
    ),
    (
        Fault.WITNESS,
        "its witnesses are not numbered from 0 upwards",
        "SELECT DISTINCT lower(hex(q.id)) FROM queries q JOIN witnesses w ON w.query = q.number "
        "GROUP BY w.query HAVING min(w.position) <> 0 OR max(w.position) <> count(*) - 1",
    ),
    (
        Fault.FORM,
        "takes its answer from a query of another form",
        "SELECT 'form ' || f.number FROM forms f LEFT JOIN queries q ON q.number = f.source "
        "WHERE f.source IS NOT NULL AND q.form IS NOT f.number",
    ),
    (
        Fault.FORM,
        "is in no state that there is",
        "SELECT 'form ' || number FROM forms WHERE state NOT IN ('open', 'answered', 'quarantined') "
        "OR status NOT IN ('sat', 'unsat') OR draining NOT IN (0, 1) OR (draining = 1 AND state = 'open')",
    ),
    (
        Fault.OWNER,
        "its name is not made of its host, boot, process and token",
        "SELECT name FROM owners WHERE name IS NOT host || ':' || boot || ':' || pid || ':' || token",
    ),
    (
        Fault.PREFIX,
        "its depth is not one more than that of its parent",
        "SELECT 'prefix ' || p.number FROM prefixes p LEFT JOIN prefixes up ON up.number = p.parent "
        "WHERE p.number <> 0 AND p.depth IS NOT up.depth + 1",
    ),
    (
        Fault.FORM,
        "waits, and nothing is being solved for it",
        "SELECT lower(hex(q.id)) FROM queries q JOIN forms f ON f.number = q.form WHERE q.state = 'waiting' "
        "AND NOT (f.draining = 1 OR (f.state = 'open' AND f.leader IS NOT NULL))",
    ),
    (
        Fault.FORM,
        "its leader is not an unsolved query of the form",
        "SELECT 'form ' || f.number FROM forms f LEFT JOIN queries q ON q.number = f.leader "
        "WHERE f.leader IS NOT NULL AND (q.number IS NULL OR q.form <> f.number "
        "OR q.state NOT IN ('pending', 'leased'))",
    ),
    (
        Fault.FORM,
        "is being solved although another query of its open form leads",
        "SELECT lower(hex(q.id)) FROM queries q JOIN forms f ON f.number = q.form "
        "WHERE q.state IN ('pending', 'leased') AND f.state = 'open' AND f.leader IS NOT q.number",
    ),
    (
        Fault.FORM,
        "the query it takes its answer from does not have that answer",
        "SELECT 'form ' || f.number FROM forms f LEFT JOIN queries q ON q.number = f.source "
        "LEFT JOIN results r ON r.query = f.source "
        "WHERE f.state = 'answered' AND (q.form IS NOT f.number OR r.status IS NOT f.status)",
    ),
    (
        Fault.LEASE,
        "is leased by an owner that is not registered",
        # Names chosen by callers of `claim` are not registered; those of owners end in a 32 digit token.
        "SELECT lower(hex(id)) FROM queries WHERE state = 'leased' "
        "AND owner NOT IN (SELECT name FROM owners) "
        "AND owner GLOB '*:*:*:' || replace(hex(zeroblob(16)), '0', '[0-9a-f]')",
    ),
    (
        Fault.LEASE,
        "is leased without ever having been handed out",
        "SELECT lower(hex(id)) FROM queries WHERE state = 'leased' AND (token < 1 OR attempts < 1)",
    ),
)
