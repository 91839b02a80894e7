-- What a check of each flow found: codes of all findings, and keys of those that are errors. NULL: not checked yet.
ALTER TABLE instance_flows
    ADD COLUMN codes text[],
    ADD COLUMN errors text[],
    ADD COLUMN checked_sha256 text,
    ADD COLUMN checked_at timestamptz;

CREATE INDEX flow_tests_of_flow ON flow_tests (chatflow_id, updated_at DESC) WHERE status = 'done';
