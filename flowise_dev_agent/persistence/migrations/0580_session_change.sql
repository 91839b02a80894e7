-- What a session does to its flow, by reference: hashes of blobs before and after, and the ops between them.
ALTER TABLE sessions ADD COLUMN change jsonb;

-- All deliveries of all sessions, newest first, and those of one state.
CREATE INDEX webhook_deliveries_newest ON webhook_deliveries (created_at DESC, id DESC);
