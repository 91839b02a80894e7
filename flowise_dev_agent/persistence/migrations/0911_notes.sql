-- What people have the service remember for their flows. Ids are those of memories: no note has that of a pattern.
CREATE TABLE notes (
    id           bigint PRIMARY KEY,
    owner        text NOT NULL DEFAULT NULLIF(current_setting('app.owner', true), ''),
    instance_id  text NOT NULL,
    text         text NOT NULL CHECK (length(text) BETWEEN 1 AND 2000),
    terms        text NOT NULL,         -- its words that say something
    created_at   timestamptz NOT NULL DEFAULT now(),
    search       tsvector NOT NULL GENERATED ALWAYS AS (to_tsvector('simple'::regconfig, terms)) STORED
);
DO $$
BEGIN
    EXECUTE format('ALTER TABLE notes ALTER COLUMN id SET DEFAULT nextval(%L::regclass)',
                   pg_get_serial_sequence('patterns', 'id'));
END
$$;
CREATE INDEX notes_newest ON notes (owner, instance_id, id DESC);

ALTER TABLE notes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON notes TO fda_app USING (owner = NULLIF(current_setting('app.owner', true), ''));
CREATE POLICY of_service ON notes TO fda_system USING (true);
