-- Flows that are guarded: their test sets are held on a schedule and after changes.
CREATE TABLE guards (
    owner        text NOT NULL DEFAULT NULLIF(current_setting('app.owner', true), ''),
    instance_id  text NOT NULL,
    chatflow_id  text NOT NULL,
    settings     jsonb NOT NULL,
    due_at       timestamptz NOT NULL DEFAULT now(),
    running      jsonb,          -- the tests that are being held, and what they are about
    seen         jsonb NOT NULL DEFAULT '{}',  -- flow, node types and server at the last run
    passed       jsonb,          -- the same when all tests passed last, with the time
    alarm        jsonb,          -- what fails, since when; NULL: nothing
    told_at      timestamptz,    -- when the receiver took the alarm
    PRIMARY KEY (owner, instance_id, chatflow_id)
);

CREATE TABLE guard_results (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner        text NOT NULL DEFAULT NULLIF(current_setting('app.owner', true), ''),
    instance_id  text NOT NULL,
    chatflow_id  text NOT NULL,
    at           timestamptz NOT NULL DEFAULT now(),
    result       jsonb NOT NULL CHECK (pg_column_size(result) < 20000),
    usd          double precision NOT NULL DEFAULT 0,
    FOREIGN KEY (owner, instance_id, chatflow_id) REFERENCES guards ON DELETE CASCADE
);
CREATE INDEX guard_results_of_flow ON guard_results (owner, instance_id, chatflow_id, at DESC);

DO $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['guards', 'guard_results'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', v_table);
        EXECUTE format('CREATE POLICY of_owner ON %I TO fda_app USING (owner = %s)', v_table,
                       'NULLIF(current_setting(''app.owner'', true), '''')');
        EXECUTE format('CREATE POLICY of_service ON %I TO fda_system USING (true)', v_table);
    END LOOP;
END
$$;
