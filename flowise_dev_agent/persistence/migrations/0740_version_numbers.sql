-- Versions of a flow as people count them: over all sessions, another number for each other text.

ALTER TABLE flow_versions ADD COLUMN version integer NOT NULL DEFAULT 1;

UPDATE flow_versions AS stored SET version = counted.version
FROM (
    SELECT id, sum(is_other::int) OVER (PARTITION BY instance_id, chatflow_id ORDER BY id) AS version
    FROM (
        SELECT id, instance_id, chatflow_id, sha256 IS DISTINCT FROM
               lag(sha256) OVER (PARTITION BY instance_id, chatflow_id ORDER BY id) AS is_other
        FROM flow_versions
    ) AS compared
) AS counted
WHERE counted.id = stored.id;

CREATE INDEX flow_versions_by_number ON flow_versions (chatflow_id, version DESC, id);

CREATE TABLE version_bookmarks (
    chatflow_id  text NOT NULL,
    version      integer NOT NULL,
    note         text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (chatflow_id, version)
);
