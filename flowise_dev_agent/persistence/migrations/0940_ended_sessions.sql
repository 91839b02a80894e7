-- Retention looks for old ended sessions every ten minutes.
CREATE INDEX sessions_ended ON sessions (updated_at) WHERE status IN ('completed', 'failed', 'cancelled');
