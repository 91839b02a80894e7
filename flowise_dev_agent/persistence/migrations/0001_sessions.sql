-- The read model of sessions, their runs (one row per leg), their event log, and what belongs to them.
--
-- Lock order everywhere: the sessions row first (NO KEY UPDATE, so that foreign keys can still be checked), then runs,
-- then the queue's job.

CREATE TABLE sessions (
    id               uuid PRIMARY KEY,
    name             text,
    requirement      text NOT NULL,
    request          jsonb NOT NULL,
    instance_id      text NOT NULL,
    status           text NOT NULL DEFAULT 'queued'
                     CHECK (status IN ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
    outcome          text,
    phase            text,
    operation_mode   text,
    iteration        integer NOT NULL DEFAULT 0,
    chatflow_id      text,
    interrupt        jsonb,
    interrupt_id     text,
    error            jsonb,
    totals           jsonb NOT NULL DEFAULT '{}',
    degraded         jsonb NOT NULL DEFAULT '[]',
    event_seq        bigint NOT NULL DEFAULT 0,
    idempotency_key  text UNIQUE,
    fingerprint      text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    CHECK ((status = 'waiting') = (interrupt_id IS NOT NULL))
) WITH (fillfactor = 70);  -- room for HOT updates of event_seq

CREATE INDEX sessions_newest ON sessions (created_at DESC, id DESC);
CREATE INDEX sessions_by_status ON sessions (status, created_at DESC, id DESC);

CREATE TABLE runs (
    id               uuid PRIMARY KEY,
    session_id       uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    kind             text NOT NULL CHECK (kind IN ('start', 'resume', 'retry')),
    status           text NOT NULL DEFAULT 'queued'
                     CHECK (status IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    epoch            integer NOT NULL DEFAULT 0,
    job_id           bigint,
    attempt          integer NOT NULL DEFAULT 0,
    interrupt_id     text,
    answer           jsonb,
    idempotency_key  text,
    fingerprint      text,
    error            jsonb,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    UNIQUE (session_id, idempotency_key)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX runs_one_active ON runs (session_id) WHERE status IN ('queued', 'running');
CREATE INDEX runs_active ON runs (updated_at) WHERE status IN ('queued', 'running');

CREATE TABLE session_events (
    session_id   uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq          bigint NOT NULL,
    ts           timestamptz NOT NULL,
    run_id       uuid,
    type         text NOT NULL,
    node         text,
    phase        text,
    status       text,
    duration_ms  integer,
    summary      text NOT NULL DEFAULT '',
    data         jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (session_id, seq)
);

CREATE TABLE blobs (
    session_id  uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    sha256      text NOT NULL,
    content     bytea NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, sha256)
);

CREATE INDEX blobs_by_hash ON blobs (sha256);

CREATE TABLE write_intents (
    key             uuid PRIMARY KEY,
    session_id      uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    status          text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'done', 'failed')),
    op              text NOT NULL CHECK (op IN ('create', 'update', 'delete', 'deploy')),
    iteration       integer NOT NULL,
    target_id       text,
    payload_sha256  text,
    base_sha256     text,
    tag             text,
    result          jsonb,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX write_intents_of_session ON write_intents (session_id, created_at);

-- The fence: raises FD001 unless this claim still owns the run, and holds off a takeover until the transaction ends.
-- A function, since a plain SELECT cannot make a pipeline fail.
CREATE FUNCTION assert_owner(p_run uuid, p_epoch integer) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM runs WHERE id = p_run AND epoch = p_epoch AND status = 'running' FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'run % is not owned by epoch %', p_run, p_epoch USING ERRCODE = 'FD001';
    END IF;
    RETURN true;
END
$$;
