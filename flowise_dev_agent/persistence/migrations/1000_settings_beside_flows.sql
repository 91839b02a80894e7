-- What Flowise keeps beside the text of a flow (columns of `FlowSettings`); NULL for versions of earlier releases, which
-- have `settings` alone. That column goes on being written for the release before.
ALTER TABLE flow_versions ADD COLUMN beside jsonb;
ALTER TABLE watched_versions ADD COLUMN beside jsonb;

-- Flows are read once more by the watch, so that the newest version of each has its settings before they are changed.
ALTER TABLE instance_flows ADD COLUMN settings_seen boolean NOT NULL DEFAULT false;
