-- The roles that the service acts as, whatever it connects as: neither bypasses row-level security. Made by whoever may
-- make roles; they are there for all databases of a server.

DO $$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['fda_app', 'fda_system'] LOOP
        IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = v_role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE', v_role);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;  -- another database's migration was quicker
            END;
        END IF;
        -- Later migrations change rows of all owners, as a member of fda_system.
        IF NOT (pg_has_role(v_role, 'SET') AND pg_has_role(v_role, 'USAGE')) THEN
            BEGIN
                EXECUTE format('GRANT %I TO CURRENT_USER WITH INHERIT TRUE, SET TRUE', v_role);
            EXCEPTION WHEN insufficient_privilege THEN
                RAISE EXCEPTION 'The roles fda_app and fda_system of this server belong to another login'
                    USING ERRCODE = 'FD002';
            END;
        END IF;
    END LOOP;
END
$$;
