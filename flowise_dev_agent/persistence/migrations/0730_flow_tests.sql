-- Tests of flows outside of sessions: jobs of the workers. `flow_data` is there until the test is over, for a flow that
-- was sent as text.
CREATE TABLE flow_tests (
    id           uuid PRIMARY KEY,
    instance_id  text NOT NULL,
    chatflow_id  text,
    flow_data    text,
    draft        jsonb,           -- tag, name, type, sha256 of the draft that such a flow is tested as
    request      jsonb NOT NULL,  -- tests, trials
    status       text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'done', 'failed')),
    job_id       bigint,
    attempt      integer NOT NULL DEFAULT 0,
    trials       jsonb NOT NULL DEFAULT '[]',
    error        jsonb,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX flow_tests_newest ON flow_tests (instance_id, created_at DESC);

CREATE TABLE flow_test_traces (
    test_id  uuid NOT NULL REFERENCES flow_tests (id) ON DELETE CASCADE,
    sha256   text NOT NULL,
    trace    text NOT NULL,
    PRIMARY KEY (test_id, sha256)
);
