-- What is searched of the flows of each server: enough to find and to name one, never what is written. Rows of an
-- instance belong to nobody: whoever may use the instance sees its flows.

CREATE TABLE instance_flows (
    instance_id   text NOT NULL,
    endpoint      text NOT NULL,
    id            text NOT NULL,
    updated_date  text COLLATE "C" NOT NULL,  -- as Flowise spells it, which sorts like the time
    name          text NOT NULL,
    name_words    text NOT NULL,
    type          text NOT NULL,
    tags          text[] NOT NULL,
    draft         boolean NOT NULL,
    deployed      boolean NOT NULL,
    public        boolean NOT NULL,
    nodes         integer NOT NULL,
    node_types    text[] NOT NULL,
    about         text NOT NULL,
    heading       tsvector NOT NULL,  -- A: words of name, id and tags; B: of types and titles of nodes
    words         tsvector NOT NULL,  -- these and the words of its texts, without places
    PRIMARY KEY (instance_id, endpoint, id)
);

CREATE INDEX instance_flows_newest ON instance_flows (instance_id, endpoint, updated_date DESC, id DESC)
    INCLUDE (draft, type);
CREATE INDEX instance_flows_names ON instance_flows (instance_id, endpoint, name_words);
CREATE INDEX instance_flows_words ON instance_flows USING gin (words);
