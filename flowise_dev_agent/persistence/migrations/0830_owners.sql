-- Persons and teams that sessions and all that belongs to them are kept for. A key belongs to one owner.
CREATE TABLE owners (
    id          text PRIMARY KEY CHECK (id ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    name        text NOT NULL,
    kind        text NOT NULL DEFAULT 'team' CHECK (kind IN ('team', 'person')),
    created_at  timestamptz NOT NULL DEFAULT now()
);

INSERT INTO owners (id, name) VALUES ('default', 'default');

ALTER TABLE api_keys ADD COLUMN owner text NOT NULL DEFAULT 'default' REFERENCES owners (id);
