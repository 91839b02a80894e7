-- What the search of sessions looks at, kept: to make it again of each text costs more than all else when most sessions
-- have the word.
DROP INDEX sessions_words;
ALTER TABLE sessions ADD COLUMN words tsvector NOT NULL
    GENERATED ALWAYS AS (strip(to_tsvector('simple', COALESCE(name, '') || ' ' || left(requirement, 4000)))) STORED;
CREATE INDEX sessions_words ON sessions USING gin (words);
