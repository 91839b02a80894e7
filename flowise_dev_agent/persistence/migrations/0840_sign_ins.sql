-- People who are signed in at the page. Of a cookie only its hash is kept.
CREATE TABLE sign_ins (
    token_sha256  text PRIMARY KEY,
    subject       text NOT NULL,      -- the provider's id of the person
    name          text NOT NULL,
    groups        text[] NOT NULL,    -- as the provider named them; what they may do is a matter of settings
    created_at    timestamptz NOT NULL DEFAULT now(),
    expires_at    timestamptz NOT NULL
);

CREATE INDEX sign_ins_by_end ON sign_ins (expires_at);
