-- Reading anew what is known of a Flowise instance, as a job with its progress.

CREATE TABLE knowledge_refreshes (
    id           uuid PRIMARY KEY,
    instance_id  text NOT NULL,
    status       text NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'running', 'done', 'failed')),
    job_id       bigint,
    attempt      integer NOT NULL DEFAULT 0,
    step         text,     -- what is being read now
    steps_done   integer NOT NULL DEFAULT 0,
    result       jsonb NOT NULL DEFAULT '{}',  -- by step: what was found
    error        jsonb,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX knowledge_refreshes_one_active ON knowledge_refreshes (instance_id)
    WHERE status IN ('queued', 'running');
CREATE INDEX knowledge_refreshes_newest ON knowledge_refreshes (instance_id, created_at DESC);
