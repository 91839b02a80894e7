-- Webhooks: where a session's go to, and the outbox. Rows of the outbox are written by the transaction that they tell of.

-- Apart from `sessions`, whose rows are shown to clients: neither the URL nor the secret ever is.
CREATE TABLE webhook_endpoints (
    session_id   uuid PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    url          text NOT NULL,
    secret       text,  -- the session's own; without one it is signed with those of the service
    disabled_at  timestamptz
);

CREATE TABLE webhook_deliveries (
    id               uuid PRIMARY KEY,  -- the `webhook-id` of every attempt
    session_id       uuid NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    event_seq        bigint NOT NULL,
    type             text NOT NULL,
    interrupt_id     text,
    body             text NOT NULL,     -- as it is signed and sent, the same at each attempt
    status           text NOT NULL DEFAULT 'pending'
                     CHECK (status IN ('pending', 'delivered', 'failed', 'disabled')),
    attempts         integer NOT NULL DEFAULT 0,
    job_id           bigint,
    next_attempt_at  timestamptz,
    response_status  integer,
    error            text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    delivered_at     timestamptz,
    UNIQUE (session_id, event_seq)
);

CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (updated_at) WHERE status = 'pending';
