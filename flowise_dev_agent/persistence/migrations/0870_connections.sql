-- The Flowise server and the model provider that people connect at the page. What is in `sealed`, keys included, can be
-- read with SECRETS_KEY only. All owners use the same.
CREATE TABLE connections (
    kind        text PRIMARY KEY CHECK (kind IN ('flowise', 'model')),
    sealed      bytea NOT NULL,
    changed_at  timestamptz NOT NULL DEFAULT now(),
    changed_by  text NOT NULL
);

ALTER TABLE connections ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_service ON connections TO fda_system USING (true);
