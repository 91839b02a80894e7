-- What a test of a flow showed beside its trials: lines with their codes.
ALTER TABLE flow_tests ADD COLUMN ways jsonb NOT NULL DEFAULT '[]';
