-- The engine and the model that a session began with: what sessions like it cost is the average of those.
ALTER TABLE sessions ADD COLUMN planned_with text;
CREATE INDEX sessions_planned_with ON sessions (owner, planned_with, created_at DESC) WHERE planned_with IS NOT NULL;
