-- Accepted results to start similar flows from, as ops without credentials; scoped to an owner and an instance.

CREATE TABLE patterns (
    id                  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner               text NOT NULL,
    instance_id         text NOT NULL,
    domain              text NOT NULL DEFAULT 'flowise',
    name                text NOT NULL,
    requirement         text NOT NULL,
    -- The words of the requirement that say something; what is searched and what makes a pattern one of a kind.
    terms               text NOT NULL,
    flow_kind           text NOT NULL,
    ops                 jsonb NOT NULL,
    node_types          text[] NOT NULL,
    category            text NOT NULL CHECK (category IN ('rag', 'tool_agent', 'conversational', 'custom')),
    schema_fingerprint  text NOT NULL DEFAULT '',
    success_count       integer NOT NULL DEFAULT 0,
    failure_count       integer NOT NULL DEFAULT 0,
    created_at          timestamptz NOT NULL DEFAULT now(),
    last_used_at        timestamptz,
    search              tsvector NOT NULL GENERATED ALWAYS AS (to_tsvector('simple'::regconfig, terms)) STORED
);

CREATE UNIQUE INDEX patterns_one_of_a_kind ON patterns (owner, instance_id, md5(terms));
CREATE INDEX patterns_search ON patterns USING gin (search);

-- One row per session that made or used a pattern: a leg that runs twice counts once. The session may be gone.
CREATE TABLE pattern_uses (
    pattern_id  bigint NOT NULL REFERENCES patterns (id) ON DELETE CASCADE,
    session_id  uuid NOT NULL,
    accepted    boolean NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (pattern_id, session_id)
);
