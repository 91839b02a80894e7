-- What writes with an unknown outcome, and sessions that ended or are gone, may have left on Flowise: what to look for
-- there, and by which names and texts it is recognised. No foreign key, since the session may be gone.

ALTER TABLE write_intents ADD COLUMN name text, ADD COLUMN unsure boolean NOT NULL DEFAULT false;

DROP TABLE abandoned_drafts;
CREATE TABLE leftovers (
    tag          text PRIMARY KEY,
    session_id   uuid NOT NULL,
    instance_id  text NOT NULL,
    names        text[] NOT NULL,
    texts        text[] NOT NULL,
    noted_at     timestamptz NOT NULL DEFAULT now(),
    tried_at     timestamptz
);

DROP INDEX write_intents_of_drafts;
CREATE INDEX write_intents_of_creates ON write_intents (session_id) WHERE op = 'create';
