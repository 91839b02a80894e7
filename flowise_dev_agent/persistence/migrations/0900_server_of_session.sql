-- The address of the Flowise server that a session began on: another server may be connected under the same instance.
ALTER TABLE sessions ADD COLUMN endpoint text;
ALTER TABLE leftovers ADD COLUMN endpoint text;
