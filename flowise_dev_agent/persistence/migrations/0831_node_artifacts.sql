-- What steps of the graph leave as a record: plan, memory, milestone, decision. A row is added in the statement that
-- adds its event, and goes by age or number (RETENTION_MODE_*), or with its session.
CREATE TABLE node_artifacts (
    id              uuid PRIMARY KEY,
    session_id      uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    run_id          uuid,
    kind            text NOT NULL CHECK (kind IN ('plan', 'memory', 'milestone', 'decision')),
    node            text NOT NULL,
    memory_id       bigint,          -- the pattern that a memory is about; it may be gone
    payload         jsonb NOT NULL,
    request_id      text,
    correlation_id  text,
    audit_seq       integer,         -- the row of the session's ledger that is the same fact
    created_at      timestamptz NOT NULL
);

CREATE INDEX node_artifacts_of_session ON node_artifacts (session_id, kind, node, created_at);
CREATE INDEX node_artifacts_of_memory ON node_artifacts (memory_id, created_at) WHERE memory_id IS NOT NULL;
CREATE INDEX node_artifacts_by_age ON node_artifacts (kind, created_at);
