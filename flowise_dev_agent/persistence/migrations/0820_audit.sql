-- Who answered what, and what was written: kept when sessions go. Rows are only added. Those of a chain (a session; one
-- chain for what belongs to none) are linked by their hashes, and `audit_heads` says where each chain ends.

ALTER TABLE runs ADD COLUMN caller jsonb;  -- who asked for it: name, key_id, door

CREATE TABLE audit_log (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner          text NOT NULL,
    chain          uuid NOT NULL,
    seq            integer NOT NULL,
    ts             timestamptz NOT NULL,
    actor          text NOT NULL,
    key_id         text,
    door           text NOT NULL,
    action         text NOT NULL,
    session_id     uuid,
    instance_id    text,
    chatflow_id    text,
    version        text,
    words_sha256   text,
    before_sha256  text,
    after_sha256   text,
    request_id     text,
    prev_hash      text,
    hash           text NOT NULL,
    UNIQUE (chain, seq)
);

CREATE INDEX audit_log_of_session ON audit_log (session_id, id);
CREATE INDEX audit_log_of_chatflow ON audit_log (chatflow_id, id);
CREATE INDEX audit_log_of_actor ON audit_log (actor, id);

CREATE TABLE audit_heads (
    chain  uuid PRIMARY KEY,
    seq    integer NOT NULL,
    hash   text
) WITH (fillfactor = 70);

-- What was said. Its hash in the ledger is made with the salt, so that erased words cannot be guessed from it.
CREATE TABLE audit_words (
    chain  uuid NOT NULL,
    seq    integer NOT NULL,
    salt   text NOT NULL,
    words  text NOT NULL,
    PRIMARY KEY (chain, seq)
);

-- Adds a row to a chain and returns its number. Its hash is the SHA-256 of the JSON list of its columns from `owner` to
-- `prev_hash`. Whoever calls it holds the lock of the session's row, or needs none after it.
CREATE FUNCTION audit_add(
    p_caller jsonb, p_action text, p_session uuid, p_instance text, p_chatflow text, p_version text, p_words text,
    p_before text, p_after text
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_chain  uuid := COALESCE(p_session, '00000000-0000-0000-0000-000000000000');
    v_ts     timestamptz;
    v_seq    integer;
    v_prev   text;
    v_salt   text := gen_random_uuid();
    v_words  text;
    v_hash   text;
BEGIN
    -- The head stays locked until the transaction ends: rows of a chain are added one after the other.
    INSERT INTO audit_heads (chain, seq) VALUES (v_chain, 0)
    ON CONFLICT (chain) DO UPDATE SET chain = excluded.chain RETURNING seq + 1, hash INTO v_seq, v_prev;
    v_ts := clock_timestamp();
    IF p_words IS NOT NULL THEN
        v_words := encode(sha256(convert_to(v_salt || p_words, 'UTF8')), 'hex');
        INSERT INTO audit_words (chain, seq, salt, words) VALUES (v_chain, v_seq, v_salt, p_words);
    END IF;
    v_hash := encode(sha256(convert_to(json_build_array(
        'default', v_chain, v_seq, to_char(v_ts AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"'),
        p_caller ->> 'name', p_caller ->> 'key_id', p_caller ->> 'door', p_action, p_session, p_instance, p_chatflow,
        p_version, v_words, p_before, p_after, p_caller ->> 'request_id', v_prev)::text, 'UTF8')), 'hex');
    INSERT INTO audit_log (owner, chain, seq, ts, actor, key_id, door, action, session_id, instance_id, chatflow_id,
        version, words_sha256, before_sha256, after_sha256, request_id, prev_hash, hash)
    VALUES ('default', v_chain, v_seq, v_ts, p_caller ->> 'name', p_caller ->> 'key_id', p_caller ->> 'door', p_action,
        p_session, p_instance, p_chatflow, p_version, v_words, p_before, p_after, p_caller ->> 'request_id', v_prev,
        v_hash);
    UPDATE audit_heads SET seq = v_seq, hash = v_hash WHERE chain = v_chain;
    RETURN v_seq;
END
$$;

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: rows are only added', TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END
$$;

CREATE TRIGGER audit_log_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_heads_stay BEFORE DELETE OR TRUNCATE ON audit_heads
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
-- Words are erased by deleting their row.
CREATE TRIGGER audit_words_stay_as_said BEFORE UPDATE OR TRUNCATE ON audit_words
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
