-- Custom tools have no tag on Flowise: those that are looked for are known by the ids that Flowise gave the session.
ALTER TABLE leftovers ADD COLUMN ids text[] NOT NULL DEFAULT '{}';
