-- What a chatflow held before and after each write of a session; the text itself is a blob of the same session.

CREATE TABLE flow_versions (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id    uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    instance_id   text NOT NULL,
    chatflow_id   text NOT NULL,
    number        integer NOT NULL,
    name          text NOT NULL,
    reason        text NOT NULL,
    iteration     integer NOT NULL,
    sha256        text NOT NULL,
    updated_date  text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    UNIQUE (session_id, number)
);

CREATE INDEX flow_versions_of_chatflow ON flow_versions (instance_id, chatflow_id, id DESC);

-- What the session said to a question about a flow.
ALTER TABLE sessions ADD COLUMN answer text;
