-- The address of the Flowise server that a test was asked for on: another one may be connected before a worker holds it.
ALTER TABLE flow_tests ADD COLUMN endpoint text;
