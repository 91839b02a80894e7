-- Drafts on Flowise whose session has ended or is gone: what is still to be looked for there and removed. No foreign
-- key, since the session may be gone.

CREATE TABLE abandoned_drafts (
    session_id    uuid PRIMARY KEY,
    instance_id   text NOT NULL,
    tag           text NOT NULL,
    abandoned_at  timestamptz NOT NULL DEFAULT now(),
    tried_at      timestamptz
);

CREATE INDEX write_intents_of_drafts ON write_intents (session_id) WHERE op = 'create' AND tag LIKE 'fda:%:draft';
