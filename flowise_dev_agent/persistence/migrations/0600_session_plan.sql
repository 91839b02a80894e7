-- The plan as the person approved it, for whoever asks later what was agreed on.
ALTER TABLE sessions ADD COLUMN plan jsonb;
