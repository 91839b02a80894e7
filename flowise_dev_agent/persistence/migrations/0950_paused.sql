-- A restored copy: workers that start wait until they are told to act (`flowise-dev-agent resume`).
ALTER TABLE probe ADD COLUMN paused boolean NOT NULL DEFAULT false;
