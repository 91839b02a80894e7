-- Files that people hand over with a requirement. One that no session uses goes when it expires; the others go with
-- their session.
CREATE TABLE attachments (
    id          uuid PRIMARY KEY,
    session_id  uuid REFERENCES sessions (id) ON DELETE CASCADE,
    name        text NOT NULL,
    media_type  text NOT NULL,
    size        bigint NOT NULL,
    sha256      text NOT NULL,
    content     bytea NOT NULL,
    facts       jsonb NOT NULL,   -- kind, pages, rows, first lines, ...
    text        text NOT NULL,    -- what could be read of it, shortened
    text_sha256 text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL
);

CREATE INDEX attachments_of_session ON attachments (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX attachments_unused ON attachments (expires_at) WHERE session_id IS NULL;
