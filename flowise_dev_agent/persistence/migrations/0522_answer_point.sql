-- Where the event log stood when a run was queued: what a repeated request for its stream begins after.
ALTER TABLE runs ADD COLUMN after_seq bigint NOT NULL DEFAULT 0;
