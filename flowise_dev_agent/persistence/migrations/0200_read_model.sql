-- The list of sessions: each filter has an index in the list's own order, and what sessions cost is kept in columns of
-- which one index holds all, so that sums read no session.

ALTER TABLE sessions
    ADD COLUMN flowise_calls integer NOT NULL DEFAULT 0,
    ADD COLUMN input_tokens bigint NOT NULL
        GENERATED ALWAYS AS (COALESCE((totals ->> 'input_tokens')::bigint, 0)) STORED,
    ADD COLUMN output_tokens bigint NOT NULL
        GENERATED ALWAYS AS (COALESCE((totals ->> 'output_tokens')::bigint, 0)) STORED,
    ADD COLUMN usd numeric NOT NULL
        GENERATED ALWAYS AS (COALESCE((totals ->> 'usd')::numeric, 0)) STORED;

CREATE INDEX sessions_by_instance ON sessions (instance_id, created_at DESC, id DESC);
CREATE INDEX sessions_by_chatflow ON sessions (chatflow_id, created_at DESC, id DESC) WHERE chatflow_id IS NOT NULL;
CREATE INDEX sessions_words ON sessions
    USING gin (to_tsvector('simple', COALESCE(name, '') || ' ' || left(requirement, 4000)));
CREATE INDEX sessions_costs ON sessions (status, instance_id) INCLUDE (input_tokens, output_tokens, usd);
