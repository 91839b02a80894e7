-- When the run last lost its worker: the session's last checkpoint ('' before the first one) and the claim.
ALTER TABLE runs ADD COLUMN lost_at text, ADD COLUMN lost_epoch integer;
