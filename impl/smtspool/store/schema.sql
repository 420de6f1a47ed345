-- Version 1 of the store.
--
-- A query is one small row of `queries`, because that row changes with every lease; its text lies in
-- `texts`, written once. All digests are raw SHA-256 (32 bytes). Times are seconds since the epoch.
-- Rows of queries, forms and prefixes are numbered from 1 (prefixes: 0) upwards and never deleted; those
-- tables are searched by digest through their trees, see digests.py.

CREATE TABLE prefixes (                      -- chain of path prefixes; row 0 is the empty prefix
    number  INTEGER PRIMARY KEY,
    parent  INTEGER REFERENCES prefixes (number),
    digest  BLOB NOT NULL,                   -- key of the level; covers the whole chain up to it
    depth   INTEGER NOT NULL                 -- assertions on the way from row 0
) STRICT;
CREATE INDEX prefix_children ON prefixes (parent);
INSERT INTO prefixes (number, parent, digest, depth) VALUES (0, NULL, x'', 0);

CREATE TABLE forms (                         -- queries equal up to the names of their symbols
    number   INTEGER PRIMARY KEY,
    digest   BLOB NOT NULL,                  -- includes the version of the normaliser
    state    TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'answered', 'quarantined')),
    leader   INTEGER,                        -- the query solved for the waiting ones; not a foreign key,
                                             -- because it is written first and checking it later is a scan
    source   INTEGER REFERENCES queries (number),      -- whose answer is reused
    status   TEXT CHECK (status IN ('sat', 'unsat')),  -- of that answer
    draining INTEGER NOT NULL DEFAULT 0,     -- 1: no longer open, and queries still wait to be let go
    CHECK ((state = 'open' AND source IS NULL) OR (state <> 'open' AND leader IS NULL)),
    CHECK (state <> 'answered' OR (source IS NOT NULL AND status IS NOT NULL))
) STRICT;
CREATE INDEX forms_draining ON forms (number) WHERE draining = 1;

CREATE TABLE queries (
    number      INTEGER PRIMARY KEY,         -- order of admission
    id          BLOB NOT NULL,
    form        INTEGER NOT NULL REFERENCES forms (number),
    prefix      INTEGER NOT NULL REFERENCES prefixes (number),
    depth       INTEGER NOT NULL,
    priority    REAL NOT NULL,
    timeout_ms  INTEGER NOT NULL,
    created     REAL NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('pending', 'waiting', 'leased', 'done')),
    token       INTEGER NOT NULL DEFAULT 0,  -- fencing number of the latest lease
    attempts    INTEGER NOT NULL DEFAULT 0,  -- leases handed out and not given back
    deaths      INTEGER NOT NULL DEFAULT 0,  -- helpers that died of it
    owner       TEXT,                        -- of the lease, while leased
    deadline    REAL,
    failure     TEXT,                        -- why the latest attempt failed
    CHECK ((state = 'leased') = (owner IS NOT NULL AND deadline IS NOT NULL))
) STRICT;
CREATE INDEX pending_dfs      ON queries (depth DESC, priority DESC, number) WHERE state = 'pending';
CREATE INDEX pending_bfs      ON queries (depth, priority DESC, number)      WHERE state = 'pending';
CREATE INDEX pending_priority ON queries (priority DESC, number)             WHERE state = 'pending';
CREATE INDEX pending_fifo     ON queries (number)                            WHERE state = 'pending';
CREATE INDEX pending_prefix   ON queries (prefix, number)                    WHERE state = 'pending';
CREATE INDEX waiting_form     ON queries (form, number)                      WHERE state = 'waiting';
CREATE INDEX leased_deadline  ON queries (deadline)                          WHERE state = 'leased';
CREATE INDEX leased_owner     ON queries (owner)                             WHERE state = 'leased';

CREATE TABLE trees (                         -- which rows the trees below hold: those up to `merged`
    name    TEXT PRIMARY KEY,
    merged  INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
INSERT INTO trees (name) VALUES ('queries'), ('forms'), ('prefixes');
CREATE TABLE queries_tree (                  -- key: the first 8 bytes of the digest
    key     BLOB NOT NULL,
    number  INTEGER NOT NULL,
    PRIMARY KEY (key, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE forms_tree (
    key     BLOB NOT NULL,
    number  INTEGER NOT NULL,
    PRIMARY KEY (key, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE prefixes_tree (
    key     BLOB NOT NULL,
    number  INTEGER NOT NULL,
    PRIMARY KEY (key, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE texts (                         -- the encoded query without its witness
    query   INTEGER PRIMARY KEY REFERENCES queries (number),
    body    BLOB NOT NULL                    -- carries its own digest
) STRICT;

CREATE TABLE witnesses (                     -- inputs known to reach the query, oldest first
    query     INTEGER NOT NULL REFERENCES queries (number),
    position  INTEGER NOT NULL,
    digest    BLOB NOT NULL,
    body      BLOB NOT NULL,
    PRIMARY KEY (query, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE results (
    number     INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of completion, never used twice
    query      INTEGER NOT NULL UNIQUE REFERENCES queries (number),
    status     TEXT NOT NULL CHECK (status IN ('sat', 'unsat', 'unknown', 'error')),
    digest     BLOB NOT NULL,
    body       BLOB NOT NULL,                      -- the answer as JSON
    completed  REAL NOT NULL
) STRICT;

CREATE TABLE publications (                  -- outbox: one row a result
    result    INTEGER PRIMARY KEY REFERENCES results (number) ON DELETE CASCADE,
    state     TEXT NOT NULL DEFAULT 'due' CHECK (state IN ('due', 'published', 'dead')),
    due       REAL NOT NULL,                 -- not before
    failures  INTEGER NOT NULL DEFAULT 0,
    failure   TEXT
) STRICT;
CREATE INDEX publications_due  ON publications (due)    WHERE state = 'due';
CREATE INDEX publications_dead ON publications (result) WHERE state = 'dead';

CREATE TABLE owners (                        -- service processes; each holds the flock of owners/<token>.lock
    name        TEXT PRIMARY KEY,            -- host:boot:pid:token, as in queries.owner
    host        TEXT NOT NULL,
    boot        TEXT NOT NULL,
    pid         INTEGER NOT NULL,
    token       TEXT NOT NULL,
    registered  REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE knowledge (                     -- what the service learns and wants back after a restart
    name   TEXT PRIMARY KEY,
    value  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Counters change in the transaction of what they count. Those of the tables are kept by the triggers
-- below, so that no writer can forget one; the rest is telemetry.
CREATE TABLE counters (
    name   TEXT PRIMARY KEY,
    value  ANY NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES
    ('queries.pending', 0), ('queries.waiting', 0), ('queries.leased', 0), ('queries.done', 0),
    ('results.sat', 0), ('results.unsat', 0), ('results.unknown', 0), ('results.error', 0),
    ('publications.due', 0), ('publications.published', 0), ('publications.dead', 0);

CREATE TRIGGER count_new_query AFTER INSERT ON queries BEGIN
    UPDATE counters SET value = value + 1 WHERE name = 'queries.' || NEW.state;
END;
CREATE TRIGGER count_query AFTER UPDATE OF state ON queries WHEN OLD.state <> NEW.state BEGIN
    UPDATE counters SET value = value - 1 WHERE name = 'queries.' || OLD.state;
    UPDATE counters SET value = value + 1 WHERE name = 'queries.' || NEW.state;
END;
CREATE TRIGGER count_new_result AFTER INSERT ON results BEGIN
    UPDATE counters SET value = value + 1 WHERE name = 'results.' || NEW.status;
END;
CREATE TRIGGER count_gone_result AFTER DELETE ON results BEGIN
    UPDATE counters SET value = value - 1 WHERE name = 'results.' || OLD.status;
END;
CREATE TRIGGER count_new_publication AFTER INSERT ON publications BEGIN
    UPDATE counters SET value = value + 1 WHERE name = 'publications.' || NEW.state;
END;
CREATE TRIGGER count_publication AFTER UPDATE OF state ON publications WHEN OLD.state <> NEW.state BEGIN
    UPDATE counters SET value = value - 1 WHERE name = 'publications.' || OLD.state;
    UPDATE counters SET value = value + 1 WHERE name = 'publications.' || NEW.state;
END;
CREATE TRIGGER count_gone_publication AFTER DELETE ON publications BEGIN
    UPDATE counters SET value = value - 1 WHERE name = 'publications.' || OLD.state;
END;
