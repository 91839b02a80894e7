-- What somebody saved in Flowise, as the watch saw it. Rows of an instance belong to nobody: whoever may use the instance
-- sees its flows. Ids are those of versions: the newest row of both tables is the newest state.
CREATE TABLE watched_versions (
    id            bigint PRIMARY KEY,
    instance_id   text NOT NULL,
    chatflow_id   text NOT NULL,
    version       integer NOT NULL,
    name          text NOT NULL,
    type          text NOT NULL,
    sha256        text NOT NULL,
    updated_date  text NOT NULL,
    settings      jsonb NOT NULL,
    first         boolean NOT NULL,  -- the flow as it was found, which is nobody's edit
    moved         boolean,           -- only nodes were moved; NULL until it is compared
    created_at    timestamptz NOT NULL DEFAULT now()
);
DO $$
BEGIN
    EXECUTE format('ALTER TABLE watched_versions ALTER COLUMN id SET DEFAULT nextval(%L::regclass)',
                   pg_get_serial_sequence('flow_versions', 'id'));
END
$$;
CREATE INDEX watched_versions_of_chatflow ON watched_versions (chatflow_id, id DESC);
CREATE INDEX watched_versions_by_text ON watched_versions (sha256);
CREATE INDEX watched_versions_new ON watched_versions (instance_id, id) WHERE moved IS NULL;

-- Their texts, compressed by zlib.
CREATE TABLE watched_texts (
    sha256   text PRIMARY KEY,
    content  bytea STORAGE EXTERNAL NOT NULL,
    seen_at  timestamptz NOT NULL DEFAULT now()
);

-- Flows that are gone from their server and were not deleted by a session.
CREATE TABLE deleted_flows (
    instance_id  text NOT NULL,
    endpoint     text NOT NULL,
    id           text NOT NULL,
    name         text NOT NULL,
    type         text NOT NULL,
    noticed_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (instance_id, endpoint, id)
);

-- When each server is to be looked at next, by whichever process comes first.
CREATE TABLE flow_watches (
    instance_id  text NOT NULL,
    endpoint     text NOT NULL,
    due_at       timestamptz NOT NULL,
    PRIMARY KEY (instance_id, endpoint)
);

CREATE INDEX write_intents_by_payload ON write_intents (payload_sha256);
CREATE INDEX write_intents_by_target ON write_intents (target_id);

-- The text that the watch has recorded; NULL: the flow is not watched yet.
ALTER TABLE instance_flows ADD COLUMN sha256 text;
