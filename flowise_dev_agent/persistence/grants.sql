-- What the roles may do. Applied after every migration, so that new tables are covered, and after a restore that left
-- rights and policies out because the roles were not there.
--
-- fda_app does what people and runs ask for: everything but keys, in the rows of one owner. fda_system finds work and
-- removes what is old, for all owners: it takes no part in sessions.

DO $$
DECLARE
    v_schema text := current_schema();
    v_table text;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO fda_app, fda_system', v_schema);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %I TO fda_app', v_schema);
    EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO fda_app, fda_system', v_schema);
    FOR v_table IN SELECT tablename FROM pg_tables WHERE schemaname = v_schema AND tablename LIKE 'procrastinate\_%' LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I.%I TO fda_system', v_schema, v_table);
    END LOOP;
END
$$;

REVOKE ALL ON api_keys, owners, sign_ins, connections, model_capabilities FROM fda_app;
REVOKE INSERT, UPDATE, DELETE ON schema_migrations, schema_parts, checkpoint_migrations FROM fda_app;
REVOKE INSERT, UPDATE, DELETE ON watched_versions, watched_texts, deleted_flows FROM fda_app;

GRANT SELECT ON schema_migrations, schema_parts TO fda_system;
GRANT SELECT, INSERT, UPDATE ON api_keys, owners, probe TO fda_system;
GRANT SELECT, INSERT, DELETE ON sign_ins TO fda_system;
GRANT SELECT, INSERT, UPDATE, DELETE ON connections, model_capabilities TO fda_system;
-- A run sees with its claim whether keys have changed, not the keys.
GRANT SELECT (kind, changed_at) ON connections TO fda_app;
GRANT SELECT ON shares TO fda_system;
GRANT SELECT ON guards, instance_nodes, node_catalogues TO fda_system;
-- Finding and claiming work; UPDATE of one column of a session is what locking its row takes.
GRANT SELECT, UPDATE ON runs, webhook_deliveries, knowledge_refreshes, flow_tests, write_intents TO fda_system;
GRANT SELECT, UPDATE (updated_at) ON sessions TO fda_system;
GRANT SELECT ON webhook_endpoints TO fda_system;
-- What the watch sees belongs to no owner. It is told from what sessions of all owners found and wrote.
GRANT SELECT, INSERT, UPDATE, DELETE ON watched_versions, watched_texts, deleted_flows TO fda_system;
GRANT SELECT ON flow_versions, version_bookmarks, kept_flows, instance_flows TO fda_system;
-- Removing what is old.
GRANT SELECT, DELETE ON session_events, blobs, attachments, node_artifacts TO fda_system;
GRANT SELECT, UPDATE, DELETE ON checkpoints, checkpoint_blobs, checkpoint_writes TO fda_system;
GRANT SELECT, INSERT, UPDATE, DELETE ON leftovers TO fda_system;
GRANT SELECT, DELETE ON done_requests TO fda_system;
-- Recording that in the ledger.
GRANT SELECT, INSERT, UPDATE ON audit_heads TO fda_system;
GRANT SELECT, INSERT ON audit_log, audit_words TO fda_system;

GRANT EXECUTE ON FUNCTION sessions_with_words, sums_with_words TO fda_app;

-- Tables with row-level security show fda_app the rows of its owner, and fda_system all of them.
DO $$
DECLARE
    v_table regclass;
    v_owner CONSTANT text := 'NULLIF(current_setting(''app.owner'', true), '''')';
BEGIN
    IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = 'connections'::regclass AND polname = 'of_all') THEN
        CREATE POLICY of_all ON connections FOR SELECT TO fda_app USING (true);
    END IF;
    FOR v_table IN
        SELECT oid FROM pg_class WHERE relforcerowsecurity AND relnamespace = current_schema()::regnamespace
    LOOP
        IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = v_table AND polname = 'of_service') THEN
            EXECUTE format('CREATE POLICY of_service ON %s TO fda_system USING (true)', v_table);
        END IF;
        IF has_table_privilege('fda_app', v_table, 'SELECT')
            AND NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = v_table AND polname = 'of_owner') THEN
            EXECUTE format('CREATE POLICY of_owner ON %s TO fda_app USING (owner = %s)', v_table, v_owner);
        END IF;
    END LOOP;
END
$$;
