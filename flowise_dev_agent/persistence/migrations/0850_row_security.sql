-- Rows belong to an owner, and the database shows nobody those of another (FORCE ROW LEVEL SECURITY): each transaction
-- says by `app.owner` for whom it acts, and what says nothing sees nothing. The role fda_system sees all rows.

DO $$
DECLARE
    v_table text;
    v_owner CONSTANT text := 'NULLIF(current_setting(''app.owner'', true), '''')';
BEGIN
    FOREACH v_table IN ARRAY ARRAY[
        'sessions', 'runs', 'session_events', 'blobs', 'write_intents', 'webhook_endpoints', 'webhook_deliveries',
        'flow_versions', 'version_bookmarks', 'kept_flows', 'leftovers', 'attachments', 'patterns', 'pattern_uses',
        'knowledge_refreshes', 'flow_tests', 'flow_test_traces', 'audit_log', 'audit_heads', 'audit_words',
        'checkpoints', 'checkpoint_blobs', 'checkpoint_writes', 'node_artifacts'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ADD COLUMN IF NOT EXISTS owner text NOT NULL DEFAULT ''default''', v_table);
        EXECUTE format('ALTER TABLE %I ALTER COLUMN owner SET DEFAULT %s', v_table, v_owner);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', v_table);
        EXECUTE format('CREATE POLICY of_owner ON %I TO fda_app USING (owner = %s)', v_table, v_owner);
        EXECUTE format('CREATE POLICY of_service ON %I TO fda_system USING (true)', v_table);
    END LOOP;
    -- Keys and cookies open before it is known for whom.
    FOREACH v_table IN ARRAY ARRAY['api_keys', 'owners', 'sign_ins'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', v_table);
        EXECUTE format('CREATE POLICY of_service ON %I TO fda_system USING (true)', v_table);
    END LOOP;
END
$$;

ALTER TABLE sessions
    ADD UNIQUE (id, owner),
    DROP CONSTRAINT sessions_idempotency_key_key,
    ADD UNIQUE (owner, idempotency_key);

-- What belongs to a session belongs to its owner.
DO $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY[
        'runs', 'session_events', 'blobs', 'write_intents', 'webhook_endpoints', 'webhook_deliveries', 'flow_versions',
        'attachments', 'node_artifacts'
    ] LOOP
        EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', v_table, v_table || '_session_id_fkey');
        EXECUTE format(
            'ALTER TABLE %I ADD FOREIGN KEY (session_id, owner) REFERENCES sessions (id, owner) ON DELETE CASCADE',
            v_table);
    END LOOP;
END
$$;

ALTER TABLE version_bookmarks DROP CONSTRAINT version_bookmarks_pkey, ADD PRIMARY KEY (owner, chatflow_id, version);
DROP INDEX knowledge_refreshes_one_active;
CREATE UNIQUE INDEX knowledge_refreshes_one_active ON knowledge_refreshes (owner, instance_id)
    WHERE status IN ('queued', 'running');

-- Lists are those of an owner.
DROP INDEX sessions_newest, sessions_by_status, sessions_by_instance, sessions_by_chatflow, sessions_costs;
CREATE INDEX sessions_newest ON sessions (owner, created_at DESC, id DESC);
CREATE INDEX sessions_by_status ON sessions (owner, status, created_at DESC, id DESC);
CREATE INDEX sessions_by_instance ON sessions (owner, instance_id, created_at DESC, id DESC);
CREATE INDEX sessions_by_chatflow ON sessions (owner, chatflow_id, created_at DESC, id DESC)
    WHERE chatflow_id IS NOT NULL;
CREATE INDEX sessions_costs ON sessions (owner, status, instance_id) INCLUDE (input_tokens, output_tokens, usd);
DROP INDEX webhook_deliveries_newest;
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (owner, created_at DESC, id DESC);
CREATE INDEX audit_log_newest ON audit_log (owner, id DESC);

-- Row-level security keeps this one from being used, since the match of words may leak what it compares. An owner's
-- sessions are looked through instead, by their kept words.
DROP INDEX sessions_words;

-- Statistics after many new rows, which only the owner of a table may make.
CREATE FUNCTION learn_flows() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'ANALYZE instance_flows';
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION learn_flows SET search_path = %I, pg_temp', current_schema());
END
$$;

-- Rows of a chain belong to whom its session belongs to. What belongs to no session has a chain per owner.
CREATE OR REPLACE FUNCTION audit_add(
    p_caller jsonb, p_action text, p_session uuid, p_instance text, p_chatflow text, p_version text, p_words text,
    p_before text, p_after text
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_owner  text;
    v_chain  uuid;
    v_ts     timestamptz;
    v_seq    integer;
    v_prev   text;
    v_salt   text := gen_random_uuid();
    v_words  text;
    v_hash   text;
BEGIN
    IF p_session IS NOT NULL THEN
        SELECT owner INTO v_owner FROM audit_heads WHERE chain = p_session;
        IF v_owner IS NULL THEN
            SELECT owner INTO v_owner FROM sessions WHERE id = p_session;
        END IF;
    END IF;
    v_owner := COALESCE(v_owner, NULLIF(p_caller ->> 'owner', ''), 'default');
    v_chain := COALESCE(p_session, CASE v_owner WHEN 'default' THEN '00000000-0000-0000-0000-000000000000'::uuid
                                   ELSE md5('owner ' || v_owner)::uuid END);
    -- The head stays locked until the transaction ends: rows of a chain are added one after the other.
    INSERT INTO audit_heads (owner, chain, seq) VALUES (v_owner, v_chain, 0)
    ON CONFLICT (chain) DO UPDATE SET chain = excluded.chain RETURNING seq + 1, hash INTO v_seq, v_prev;
    v_ts := clock_timestamp();
    IF p_words IS NOT NULL THEN
        v_words := encode(sha256(convert_to(v_salt || p_words, 'UTF8')), 'hex');
        INSERT INTO audit_words (owner, chain, seq, salt, words) VALUES (v_owner, v_chain, v_seq, v_salt, p_words);
    END IF;
    v_hash := encode(sha256(convert_to(json_build_array(
        v_owner, v_chain, v_seq, to_char(v_ts AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'),
        p_caller ->> 'name', p_caller ->> 'key_id', p_caller ->> 'door', p_action, p_session, p_instance, p_chatflow,
        p_version, v_words, p_before, p_after, p_caller ->> 'request_id', v_prev)::text, 'UTF8')), 'hex');
    INSERT INTO audit_log (owner, chain, seq, ts, actor, key_id, door, action, session_id, instance_id, chatflow_id,
        version, words_sha256, before_sha256, after_sha256, request_id, prev_hash, hash)
    VALUES (v_owner, v_chain, v_seq, v_ts, p_caller ->> 'name', p_caller ->> 'key_id', p_caller ->> 'door', p_action,
        p_session, p_instance, p_chatflow, p_version, v_words, p_before, p_after, p_caller ->> 'request_id', v_prev,
        v_hash);
    UPDATE audit_heads SET seq = v_seq, hash = v_hash WHERE chain = v_chain;
    RETURN v_seq;
END
$$;
