-- What a deleted session leaves behind unless it is purged: the flows that it found and wrote, as long as its chatflow
-- may still be in use. No foreign key, since the session is gone.

CREATE TABLE kept_flows (
    session_id   uuid NOT NULL,
    chatflow_id  text NOT NULL,
    sha256       text NOT NULL,
    instance_id  text NOT NULL,
    content      bytea NOT NULL,
    written_at   timestamptz NOT NULL,
    PRIMARY KEY (session_id, chatflow_id, sha256)
);

CREATE INDEX kept_flows_by_hash ON kept_flows (sha256);
CREATE INDEX kept_flows_by_chatflow ON kept_flows (chatflow_id, written_at);
