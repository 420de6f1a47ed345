-- Version 2 of the store.

-- Who asked what: a row for every check-sat of every file that was admitted, also when its query was there
-- already. The rows of a query are in the order of the files' times.
CREATE TABLE submissions (
    query      INTEGER NOT NULL REFERENCES queries (number),
    mark       BLOB NOT NULL,                -- tells this very file from all others, see query/submission.py
    number     INTEGER NOT NULL,             -- of the check-sat in the file, from 1; 0: not known
    file       TEXT,                         -- its name in the spool; NULL: not known
    metadata   TEXT,                         -- JSON object; NULL: empty
    submitted  REAL NOT NULL,                -- when it was admitted
    digest     BLOB NOT NULL,                -- of number, file and metadata
    PRIMARY KEY (query, mark, number)
) STRICT, WITHOUT ROWID;

-- Version 1 knew one submission of each query: its metadata and its time. The query's text begins with 18
-- bytes of version and digest; of one that is damaged, which fsck reports, no metadata can be known.
ALTER TABLE queries ADD COLUMN submissions INTEGER NOT NULL DEFAULT 1;  -- how many rows it has above
INSERT INTO submissions (query, mark, number, file, metadata, submitted, digest)
SELECT number, x'', 0, NULL, metadata, created, short_digest(0, NULL, metadata) FROM (
    SELECT q.number, q.created, nullif(json_extract(text, '$[10]'), '{}') AS metadata
    FROM queries q LEFT JOIN (
        SELECT query, CAST(substr(body, 19) AS TEXT) AS text FROM texts
    ) ON query = q.number AND json_valid(text)
);

-- A result that a larger time limit may change says which limit it had.
ALTER TABLE results ADD COLUMN limit_ms INTEGER;
UPDATE results SET limit_ms = (SELECT timeout_ms FROM queries WHERE number = results.query)
WHERE status = 'unknown' AND json_valid(CAST(body AS TEXT))
AND json_extract(CAST(body AS TEXT), '$.at_limit') AND NOT json_extract(CAST(body AS TEXT), '$.disagreement');

-- How many new inputs a result has given: what is written again is not counted again.
ALTER TABLE publications ADD COLUMN inputs INTEGER NOT NULL DEFAULT 0;
