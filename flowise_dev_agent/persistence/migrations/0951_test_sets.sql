-- The tests of each flow that people marked, accepted or gave: at most 50 test cases.
CREATE TABLE test_sets (
    owner        text NOT NULL DEFAULT NULLIF(current_setting('app.owner', true), ''),
    instance_id  text NOT NULL,
    chatflow_id  text NOT NULL,
    tests        jsonb NOT NULL CHECK (pg_column_size(tests) < 1000000),
    updated_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner, instance_id, chatflow_id)
);

ALTER TABLE test_sets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON test_sets TO fda_app USING (owner = NULLIF(current_setting('app.owner', true), ''));
CREATE POLICY of_service ON test_sets TO fda_system USING (true);
