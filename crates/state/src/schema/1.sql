-- Runs, one row each. Times are text in UTC; `sequence` is the order in which they began.
CREATE TABLE runs (
    sequence      INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id        TEXT NOT NULL UNIQUE,
    pipeline      TEXT NOT NULL,
    unit          TEXT NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('running', 'finished', 'failed')),
    fingerprint   TEXT NOT NULL,
    rules_digest  TEXT NOT NULL,
    started_at    TEXT NOT NULL,
    ended_at      TEXT,
    decision      TEXT,
    rows_read     INTEGER,
    rows_published INTEGER,
    rows_quarantined INTEGER,
    score         REAL,
    report        TEXT,
    error         TEXT
);
CREATE INDEX runs_by_unit ON runs (pipeline, unit, state);
