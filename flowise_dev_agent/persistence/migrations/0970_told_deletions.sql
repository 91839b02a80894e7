-- Whether a deletion has been told to the receiver of flow events.
ALTER TABLE deleted_flows ADD COLUMN told boolean NOT NULL DEFAULT false;
