-- What a session keeps of its last review once the question is answered: tests, verdict, warnings.
ALTER TABLE sessions ADD COLUMN result jsonb;
