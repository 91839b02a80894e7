-- Rare words of sessions are looked up by an index again. Row-level security keeps one from being used, since the match
-- of words may tell of rows that it compares; so it happens as whoever owns the table, limited by the setting that the
-- policy uses. The results are ids of the same owner, to whose rows the policy is applied again, and sums over them.
CREATE INDEX sessions_words ON sessions USING gin (words);

-- The ids of the owner's sessions that have the words; null for more than so many: those are found by looking through
-- the newest ones. What is executed is fixed, and planned anew for the words of each call.
CREATE FUNCTION sessions_with_words(p_words tsquery, p_most integer) RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    v_ids uuid[];
BEGIN
    EXECUTE 'SELECT array_agg(id) FROM ('
        'SELECT id FROM sessions WHERE owner = $1 AND words @@ $2 LIMIT $3) AS found'
        INTO v_ids USING NULLIF(current_setting('app.owner', true), ''), p_words, p_most + 1;
    RETURN CASE WHEN cardinality(v_ids) > p_most THEN NULL ELSE COALESCE(v_ids, '{}') END;
END
$$;

-- What the owner's sessions with the words cost together. To look through them instead would read each one's words.
CREATE FUNCTION sums_with_words(p_words tsquery, p_statuses text[], p_instance text, p_chatflow text)
RETURNS TABLE (sessions bigint, input_tokens bigint, output_tokens bigint, usd double precision)
LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    RETURN QUERY EXECUTE
        'SELECT count(*), COALESCE(sum(input_tokens), 0)::bigint, COALESCE(sum(output_tokens), 0)::bigint, '
        'COALESCE(sum(usd), 0)::float8 FROM sessions WHERE owner = $1 AND words @@ $2 '
        'AND ($3 IS NULL OR status = ANY($3)) AND ($4 IS NULL OR instance_id = $4) '
        'AND ($5 IS NULL OR chatflow_id = $5)'
        USING NULLIF(current_setting('app.owner', true), ''), p_words, p_statuses, p_instance, p_chatflow;
END
$$;

DO $$
DECLARE
    v_function regproc;
BEGIN
    FOREACH v_function IN ARRAY ARRAY['sessions_with_words', 'sums_with_words']::regproc[] LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', v_function, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', v_function);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO fda_app', v_function);
    END LOOP;
END
$$;
