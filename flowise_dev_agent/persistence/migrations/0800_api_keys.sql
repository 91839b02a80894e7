-- Keys of people and programs. Of a key only its hash is kept; it is random enough that a plain hash cannot be undone.
CREATE TABLE api_keys (
    id               uuid PRIMARY KEY,
    name             text NOT NULL,
    scopes           text[] NOT NULL CHECK (cardinality(scopes) > 0
                     AND scopes <@ ARRAY['read', 'build', 'approve', 'admin']),
    sha256           text NOT NULL UNIQUE,
    previous_sha256  text UNIQUE,       -- of the key before the last rotation, which opens until then
    previous_until   timestamptz,
    created_by       text NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    expires_at       timestamptz,
    rotated_at       timestamptz,
    last_used_at     timestamptz,
    revoked_at       timestamptz
);

CREATE UNIQUE INDEX api_keys_in_use ON api_keys (name) WHERE revoked_at IS NULL;
