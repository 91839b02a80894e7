-- One row, written by each check of readiness: a database that only reads takes no new work.
CREATE TABLE probe (id integer PRIMARY KEY CHECK (id = 1), checked_at timestamptz NOT NULL);
