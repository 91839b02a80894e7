-- What POST requests with an Idempotency-Key were answered, per owner and for a day. Without a status the request is
-- still being carried out; without a body its answer is not kept.
CREATE TABLE done_requests (
    owner        text NOT NULL DEFAULT NULLIF(current_setting('app.owner', true), ''),
    key          text NOT NULL,
    fingerprint  text NOT NULL,      -- SHA-256 of method, path, query and body
    claim        uuid NOT NULL,      -- of the request that carries it out
    status       integer,
    body         bytea,
    location     text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner, key)
);
CREATE INDEX done_requests_by_age ON done_requests (created_at);

ALTER TABLE done_requests ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON done_requests TO fda_app USING (owner = NULLIF(current_setting('app.owner', true), ''));
CREATE POLICY of_service ON done_requests TO fda_system USING (true);
