-- What is known about each Flowise instance: the same for every worker.

-- Which node list holds. `revision` grows with every change, so that a worker knows by one small row whether what it
-- has in memory is what all the others have.
CREATE TABLE instance_nodes (
    instance_id      text PRIMARY KEY,
    endpoint         text NOT NULL,
    revision         bigint NOT NULL DEFAULT 1,
    fingerprint      text,  -- null: the list was never read, only single types were
    etag             text,
    checked_at       timestamptz
);

-- The lists themselves, with Flowise's own descriptions; the last few of each instance, to tell what changed.
CREATE TABLE node_catalogues (
    instance_id      text NOT NULL REFERENCES instance_nodes (instance_id) ON DELETE CASCADE,
    fingerprint      text NOT NULL,
    flowise_version  text NOT NULL,
    node_count       integer NOT NULL,
    nodes            text NOT NULL,
    fetched_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (instance_id, fingerprint)
);

-- Node types that were asked for one by one, and why what the server said was taken over.
CREATE TABLE repaired_nodes (
    instance_id      text NOT NULL REFERENCES instance_nodes (instance_id) ON DELETE CASCADE,
    name             text NOT NULL,
    node             text NOT NULL,
    decision         jsonb NOT NULL,
    repaired_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (instance_id, name)
);

-- What each instance's marketplace holds, without the flows.
CREATE TABLE instance_templates (
    instance_id      text PRIMARY KEY,
    endpoint         text NOT NULL,
    templates        jsonb NOT NULL,
    fetched_at       timestamptz NOT NULL DEFAULT now()
);

-- The flows (and tools) of templates by their SHA-256; instances share them.
CREATE TABLE template_contents (
    sha256           text PRIMARY KEY,
    content          text NOT NULL
);
