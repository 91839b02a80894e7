-- Links that show a session, or the history of a flow, to people without a key. The link itself is kept nowhere: it is
-- the id and the end, signed.
CREATE TABLE shares (
    id           uuid PRIMARY KEY,
    owner        text NOT NULL DEFAULT NULLIF(current_setting('app.owner', true), ''),
    session_id   uuid,                  -- of a session; else of a flow
    chatflow_id  text,
    title        text NOT NULL,         -- of the session or flow when the link was made
    made_by      text NOT NULL,
    made_at      timestamptz NOT NULL DEFAULT now(),
    ends_at      timestamptz NOT NULL,
    revoked_at   timestamptz,
    opened_on    date,                  -- the last day
    CHECK (session_id IS NULL OR chatflow_id IS NULL),
    FOREIGN KEY (session_id, owner) REFERENCES sessions (id, owner) ON DELETE CASCADE
);
CREATE INDEX shares_newest ON shares (owner, made_at DESC, id);
CREATE INDEX shares_of_session ON shares (session_id) WHERE session_id IS NOT NULL;

ALTER TABLE shares ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON shares TO fda_app USING (owner = NULLIF(current_setting('app.owner', true), ''));
-- A link opens before it is known for whom.
CREATE POLICY of_service ON shares TO fda_system USING (true);
