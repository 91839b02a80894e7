-- What models take, as learned from their refusals. Of the service, not of an owner.
CREATE TABLE model_capabilities (
    server      text NOT NULL CHECK (length(server) BETWEEN 1 AND 500),
    model       text NOT NULL CHECK (length(model) BETWEEN 1 AND 500),
    known       jsonb NOT NULL CHECK (pg_column_size(known) < 20000),
    learned_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (server, model)
);

ALTER TABLE model_capabilities ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_service ON model_capabilities TO fda_system USING (true);
